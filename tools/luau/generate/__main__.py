"""Writes `roblox.d.luau` and `roblox.yml`; `tools/luau/regenerate` calls it."""

import argparse
import json
from pathlib import Path

import definitions
import standard_library
from roblox import Api


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", type=Path, required=True, help="the unpacked npm package @rbxts/types")
    parser.add_argument("--selene-lib", type=Path, required=True, help="the unpacked crate selene-lib")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    given = parser.parse_args()

    api = Api(given.types)
    package = json.loads((given.types / "package.json").read_text())
    types = f"{package['name']} {package['version']} ({package['license']})"
    (given.out / "roblox.d.luau").write_text(definitions.write(api, types))
    base = (given.selene_lib / "default_std" / "roblox_base.yml").read_text()
    sources = f"roblox_base.yml of {given.selene_lib.name} (MPL-2.0) and {types}"
    (given.out / "roblox.yml").write_text(standard_library.write(api, sources, base))


main()
