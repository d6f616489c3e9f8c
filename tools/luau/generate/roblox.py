"""The Roblox API as `@rbxts/types` tells it: classes, datatypes, enums, globals."""

from dataclasses import dataclass, replace

import typescript as ts

FILES = [
    "include/roblox.d.ts",
    "include/macro_math.d.ts",
    "include/generated/None.d.ts",
    "include/generated/PluginSecurity.d.ts",
    "include/generated/enums.d.ts",
    "plugin.d.ts",
]

# The typings spell these differently from Roblox.
RENAMED = {"RBXObject": "Object"}

# Lists of names for the typings' own use, and what Luau itself declares.
NOT_API = {"Services", "CreatableInstances", "Instances", "Objects", "buffer", "vector", "Number"}
NOT_API |= {"RBXScriptSignal", "CheckablePrimitives", "CheckableTypes", "BrickColorsByNumber", "BrickColorsByPalette"}

# Datatypes that the typings describe as if they were tables.
OPAQUE = {"RBXScriptConnection", "RaycastResult"}

OPERATORS = {"add", "sub", "mul", "div", "idiv"}


@dataclass
class Type:
    """A class, a datatype, or a table type; which of them is said by where it is kept."""

    name: str
    parent: str | None
    members: list


class Api:
    """`classes` are ordered so that a class stands after its parent; all else is by name."""

    def __init__(self, package):
        self.declarations = ts.read([package / file for file in FILES])
        interfaces = [found for name, found in self.declarations.interfaces.items() if name not in NOT_API]
        kept = [self._type(found) for found in interfaces if not found.name.endswith("Constructor")]
        known = {found.name: found for found in kept}
        self.classes = sorted(
            (found for found in kept if _line(known, found)[-1] == "Object"),
            key=lambda found: (len(_line(known, found)), found.name),
        )
        classes = {found.name for found in self.classes}
        nominal = {interface_name(found) for found in interfaces if _is_nominal(found)}
        nominal |= {name for name, _ in self.constructors()} | OPAQUE
        others = sorted((found for found in kept if found.name not in classes), key=lambda found: found.name)
        self.datatypes = [found for found in others if found.name in nominal]
        self.tables = [found for found in others if found.name not in nominal and found.name not in ("Enum", "EnumItem")]
        self.enums = {
            name: sorted(enum.values) for name, enum in sorted(self.declarations.namespaces["Enum"].namespaces.items())
        }
        self.services = sorted(member.name for member in self.declarations.interfaces["Services"].members)
        self.creatable = sorted(member.name for member in self.declarations.interfaces["CreatableInstances"].members)

    def _type(self, interface):
        parent = RENAMED.get(interface.parent, interface.parent)
        return Type(interface_name(interface), parent, _merged(interface.members))

    def constructors(self):
        """What stands behind a datatype's name as a value, as (name, members), by name."""
        for name, kind in sorted(self.declarations.values.items()):
            if not isinstance(kind, ts.Named) or kind.name == name or not kind.name.endswith("Constructor"):
                continue
            if kind.name in self.declarations.aliases:
                _, signature = self.declarations.aliases[kind.name]
                yield name, [ts.Member("new", signature, is_method=True)]
            else:
                yield name, self.declarations.interfaces[kind.name].members


def interface_name(interface):
    return RENAMED.get(interface.name, interface.name)


def _is_nominal(interface):
    return any(member.name.startswith("_nominal_") for member in interface.members)


def _line(known, found):
    """The names from `found` up to its last known ancestor."""
    names = [found.name]
    while found.parent in known:
        found = known[found.parent]
        names.append(found.name)
    return names


def _merged(members):
    """Without the typings' own marks, and with each member once; overloads stay.

    A property that is only read here and written there, by a setter or for plugins, can be written.
    """
    kept = {}
    for member in members:
        if member.name.startswith("_nominal_"):
            continue
        key = (member.name, member.type if member.is_method else None)
        known = kept.setdefault(key, member)
        kept[key] = replace(known, readonly=known.readonly and member.readonly)
    return list(kept.values())
