"""Writes ../api.json: which members each Roblox class has, by name,
which of them yield and which are for plugins alone.

    python3 generate.py <folder of the npm package @rbxts/types> > ../api.json

The package (MIT, https://github.com/roblox-ts/types) is made from Roblox' own
API dump and, unlike the reflection database the crate uses for properties, it
lists methods, events and the members that plugins alone may touch.

Shape of the output:

    {"source": "@rbxts/types <version>",
     "classes": {<class>: [[methods], [events], [properties],
                           [properties only a plugin may touch],
                           [methods that yield],
                           [methods and events only a plugin may use]]}}

A property in both lists is one that everybody reads and a plugin writes. The
last list repeats names of the first two, and holds no name that None.d.ts has
as well. For a class that is out of a game's reach (`Plugin`, `Selection`) the
package lists every member as a plugin's. A method yields if it has the tag
`Yields`; `WaitForChild`, alone with `CanYield`, only may.

Superclasses are the reflection database's business; a class that adds no
member is left out.
"""

import json
import pathlib
import re
import sys

INTERFACE = re.compile(
    r"^interface (\w+)(?:<[^{\n]*>)?(?: extends ([^{\n]+?))? \{\n(.*?)^\}", re.S | re.M
)
MEMBER = re.compile(
    r"^(?:[\t ]+(@yields)\n)?(?:\t| {4})((?:readonly |get |set )?)([A-Za-z_]\w*)\??(?:<[^(\n]*?>)?([(:])([^;]*);", re.M
)
COMMENT = re.compile(r"/\*\*.*?\*/", re.S)
YIELDS = re.compile(r"\*\*Tags\*\*:[^\n]*\bYields\b")
# `Services`, `Instances` and so on are tables of the type package, not classes.
NOT_CLASSES = {"Services", "CreatableInstances", "AbstractInstances", "Instances", "Objects"}
ROOT = {"RBXObject": "Object"}
KINDS = ("methods", "events", "properties", "plugin", "yields", "plugin_only")


def classes_of(text, plugin_only, classes):
    for name, parent, body in INTERFACE.findall(text):
        if name in NOT_CLASSES:
            continue
        entry = classes.setdefault(
            ROOT.get(name, name), {"super": None, **{kind: set() for kind in KINDS}}
        )
        if parent:
            parent = re.sub(r"<.*", "", parent.split(",")[0]).strip()
            entry["super"] = ROOT.get(parent, parent)
        body = COMMENT.sub(lambda text: "@yields" if YIELDS.search(text[0]) else "", body)
        for yields, access, member, kind, rest in MEMBER.findall(body):
            if member.startswith("_nominal"):
                continue
            is_method = kind == "(" and not access
            if not is_method and "RBXScriptSignal" not in rest:
                entry["plugin" if plugin_only else "properties"].add(member)
                continue
            # The file for plugins is read last: what is there by now is everybody's.
            members = entry["methods" if is_method else "events"]
            if plugin_only and member not in members:
                entry["plugin_only"].add(member)
            if is_method and yields:
                entry["yields"].add(member)
            members.add(member)


def descends_from_object(name, classes):
    while name:
        if name == "Object":
            return True
        name = classes[name]["super"] if name in classes else None
    return False


def main():
    package = pathlib.Path(sys.argv[1])
    version = json.loads((package / "package.json").read_text())["version"]
    include = package / "include"
    classes = {}
    classes_of((include / "roblox.d.ts").read_text(), False, classes)
    classes_of((include / "generated" / "None.d.ts").read_text(), False, classes)
    classes_of((include / "generated" / "PluginSecurity.d.ts").read_text(), True, classes)
    lines = [
        "%s:%s"
        % (
            json.dumps(name),
            json.dumps(
                [sorted(entry[key]) for key in KINDS],
                separators=(",", ":"),
            ),
        )
        for name, entry in sorted(classes.items())
        if descends_from_object(name, classes) and any(entry[key] for key in KINDS)
    ]
    print('{"source":"@rbxts/types %s","classes":{\n%s\n}}' % (version, ",\n".join(lines)))


main()
