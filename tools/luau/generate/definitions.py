"""Writes the Roblox API as a definition file for Luau's type checker."""

import re

import typescript as ts
from roblox import OPERATORS

RESERVED = set(
    "and break continue do else elseif end false for function if in local nil not or repeat return then true "
    "until while".split()
)

NAMED = {
    "number": "number",
    "string": "string",
    "boolean": "boolean",
    "thread": "thread",
    "buffer": "buffer",
    "vector": "vector",
    "undefined": "nil",
    "true": "true",
    "false": "false",
    "void": "()",
    "RBXObject": "Object",
    "ContentId": "string",
    "BinaryString": "string",
    "SharedString": "string",
    "ProtectedString": "string",
    "InstancePropertyNames": "string",
    "Callback": "(...any) -> ...any",
    "RBXScriptSignal": "RBXScriptSignal<...any>",
}

# A magic function of the checker narrows what these give; see tools/luau-check/src/roblox.cpp.
INSTANCES = {"Instances", "CreatableInstances", "Services", "Objects", "S"}

# What the typings say in a way that Luau has no words for.
OVERRIDES = {
    ("Object", "Changed"): "Changed: RBXScriptSignal<...any>",
    ("Instance", "GetAttribute"): "function GetAttribute(self, attribute: string): any",
    ("Instance", "GetAttributes"): "function GetAttributes(self): { [string]: any }",
    ("Instance", "QueryDescendants"): "function QueryDescendants(self, selector: string): { Instance }",
    ("ServiceProvider", "FindService"): "function FindService(self, className: string): Instance?",
    ("BindableFunction", "OnInvoke"): "OnInvoke: (...any) -> ...any",
    ("RemoteFunction", "OnServerInvoke"): "OnServerInvoke: (player: Player, ...any) -> ...any",
    ("RemoteFunction", "OnClientInvoke"): "OnClientInvoke: (...any) -> ...any",
}

NEGATED = {"UDim", "UDim2", "Vector2", "Vector2int16", "Vector3", "Vector3int16"}

FIXED = """\
export type RBXScriptSignal<T... = ...any> = {
	Connect: (self: RBXScriptSignal<T...>, callback: (T...) -> ...any) -> RBXScriptConnection,
	ConnectParallel: (self: RBXScriptSignal<T...>, callback: (T...) -> ...any) -> RBXScriptConnection,
	Once: (self: RBXScriptSignal<T...>, callback: (T...) -> ...any) -> RBXScriptConnection,
	Wait: (self: RBXScriptSignal<T...>) -> T...,
}

declare extern type Enum with
	function GetEnumItems(self): { EnumItem }
	function FromName(self, name: string): EnumItem?
	function FromValue(self, value: number): EnumItem?
end

declare extern type EnumItem with
	read Name: string
	read Value: number
	read EnumType: Enum
	function IsA(self, enumName: string): boolean
end
"""

GLOBALS = """\
declare game: DataModel
declare workspace: Workspace
declare plugin: Plugin
-- A script's children are known to no class; `require` follows their names without types.
declare script: any
declare shared: { [any]: any }

declare Instance: {
	new: (className: string, parent: Instance?) -> Instance,
	fromExisting: <T>(existing: T) -> T,
}

declare task: {
	spawn: <A..., R...>(callback: thread | ((A...) -> R...), A...) -> thread,
	defer: <A..., R...>(callback: thread | ((A...) -> R...), A...) -> thread,
	delay: <A..., R...>(duration: number?, callback: thread | ((A...) -> R...), A...) -> thread,
	wait: (duration: number?) -> number,
	cancel: (thread: thread) -> (),
	synchronize: () -> (),
	desynchronize: () -> (),
}

declare function warn(...: any): ()
declare function tick(): number
declare function time(): number
declare function elapsedTime(): number
declare function version(): string
declare function wait(seconds: number?): (number, number)
declare function spawn(callback: (number, number) -> ()): ()
declare function delay(delayTime: number?, callback: (number, number) -> ()): ()
declare function settings(): GlobalSettings
declare function UserSettings(): UserSettings
declare function DebuggerManager(): DebuggerManager
"""


def key(name):
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in RESERVED else f'["{name}"]'


class Writer:
    def __init__(self, api):
        self.api = api
        found = [*api.classes, *api.datatypes, *api.tables]
        self.types = {kind.name for kind in found} | {"Enum", "EnumItem", "Object"}

    # Types

    def type(self, kind, generics=()):
        """A type as Luau text. What cannot be said is `any`."""
        match kind:
            case ts.Literal(text):
                return text if text.startswith('"') else "number"
            case ts.Array(element):
                return self.array(element, generics)
            case ts.Indexed(ts.Named(name)) if name in INSTANCES:
                return "Instance"
            case ts.Union(parts):
                return self.union(parts, generics)
            case ts.Object(members):
                return self.table(members, generics)
            case ts.Function():
                return self.function(kind, generics)
            case ts.Tuple(elements):
                return self.array(ts.Union(elements), generics)
            case ts.Named(name, arguments):
                return self.named(name, arguments, dict(generics))
        return "any"

    def array(self, element, generics):
        return "{ " + self.type(element, generics) + " }"

    def named(self, name, arguments, generics):
        scope = tuple(generics.items())
        if name in generics:
            return self.constraint(generics[name])
        match name, arguments:
            case "Array" | "ReadonlyArray", (element,):
                return self.array(element, scope)
            case "Map" | "ReadonlyMap" | "Record", (key, value):
                return "{ [" + self.type(key, scope) + "]: " + self.type(value, scope) + " }"
            case "Set" | "ReadonlySet", (element,):
                return "{ [" + self.type(element, scope) + "]: boolean }"
            case "CastsToEnum", (enum,):
                return self.type(enum, scope) + " | string | number"
            case "RBXScriptSignal", (ts.Function() as callback,):
                return f"RBXScriptSignal<{self.pack(callback.parameters, scope)}>"
        if name in NAMED:
            return NAMED[name]
        if name.startswith("Enum."):
            enum = name.split(".")[1]
            return "Enum" + enum if enum in self.api.enums else "any"
        if name in self.types:
            return name
        if name in self.api.declarations.aliases:
            parameters, meant = self.api.declarations.aliases[name]
            return "any" if parameters else self.type(meant)
        return "any"

    def constraint(self, constraint):
        """What stands for a type parameter: its bound, if that is one type."""
        return self.type(constraint) if isinstance(constraint, ts.Named) else "any"

    def union(self, parts, generics):
        written = ["nil" if part == ts.Named("void") else self.type(part, generics) for part in parts]
        if "any" in written:
            return "any"
        kept = [f"({part})" if "->" in part else part for part in dict.fromkeys(written) if part != "nil"]
        text = " | ".join(kept)
        if "nil" not in written:
            return text
        return text + "?" if len(kept) == 1 and " | " not in text else f"({text})?"

    def table(self, members, generics):
        indexers = [member for member in members if member.name == "[]"]
        fields = [self.field(member, generics) for member in members if member.name not in ("[]", "()", "new")]
        for indexer in indexers[:1]:
            of = self.type(indexer.type.parameters[0].type, generics)
            fields.append(f"[{of}]: {self.type(indexer.type.returns, generics)}")
        return "{ " + ", ".join(fields) + " }" if fields else "{}"

    def field(self, member, generics):
        return f"{key(member.name)}: {self.optional(self.type(member.type, generics), member.optional)}"

    def optional(self, text, optional):
        if not optional or text == "any" or text.endswith("?"):
            return text
        return f"({text})?" if "|" in text or "->" in text else text + "?"

    # Functions

    def function(self, signature, generics=(), this=None):
        """A function type. `this` names the type of `self`, if there is one."""
        scope = (*generics, *signature.generics)
        parameters = [self.parameter(parameter, scope) for parameter in signature.parameters if parameter.name != "this"]
        if this:
            parameters.insert(0, f"self: {this}")
        return f"({', '.join(parameters)}) -> {self.returns(signature.returns, scope)}"

    def parameter(self, parameter, generics, rest="..."):
        if parameter.rest:
            return rest + self.element(parameter.type, generics)
        name = parameter.name + ("_" if parameter.name in RESERVED else "")
        return f"{name}: {self.optional(self.type(parameter.type, generics), parameter.optional)}"

    def element(self, kind, generics):
        """What each of a rest parameter's values is."""
        match kind:
            case ts.Array(element) | ts.Named("Array" | "ReadonlyArray", (element,)):
                return self.type(element, generics)
        return "any"

    def pack(self, parameters, generics):
        return ", ".join(
            "..." + self.element(parameter.type, generics)
            if parameter.rest
            else self.optional(self.type(parameter.type, generics), parameter.optional)
            for parameter in parameters
        ) or "()"

    def returns(self, kind, generics):
        match kind:
            case ts.Named("LuaTuple", (ts.Tuple(elements),)):
                return "(" + ", ".join(self.type(element, generics) for element in elements) + ")"
            case ts.Named("LuaTuple", (ts.Array() | ts.Named("Array") as many,)):
                return "..." + self.element(many, generics)
            case ts.Named("LuaTuple"):
                return "...any"
        text = self.type(kind, generics)
        return f"({text})" if text.endswith("?") or " | " in text or "->" in text else text

    # Declarations

    def extern(self, kind):
        """A class or datatype."""
        parent = f" extends {kind.parent}" if kind.parent in self.types else ""
        lines = [f"declare extern type {kind.name}{parent} with"]
        names = dict.fromkeys(member.name for member in kind.members)
        for name in names:
            members = [member for member in kind.members if member.name == name]
            line = OVERRIDES.get((kind.name, name)) or self.extern_member(kind, members)
            if line:
                lines.append("\t" + line)
        if kind.name in NEGATED:
            lines.append(f"\tfunction __unm(self): {kind.name}")
        lines.append("end\n")
        return "\n".join(lines)

    def extern_member(self, kind, members):
        member = members[0]
        if member.name in ("[]", "()", "new"):
            return None
        if not member.is_method:
            # Luau takes no `read` before a name in brackets.
            return ("read " if member.readonly and key(member.name) == member.name else "") + self.field(member, ())
        name = "__" + member.name if member.name in OPERATORS else member.name
        if len(members) == 1 and name not in RESERVED:
            return self.method(name, member.type)
        overloads = [self.function(one.type, this=kind.name) for one in members]
        return f"{key(name)}: " + " & ".join(f"({overload})" for overload in overloads)

    def method(self, name, signature):
        scope = signature.generics
        parameters = [self.parameter(one, scope, "...: ") for one in signature.parameters if one.name != "this"]
        return f"function {name}({', '.join(['self', *parameters])}): {self.returns(signature.returns, scope)}"

    def table_type(self, kind):
        own = self.table(kind.members, ())
        return f"export type {kind.name} = {own if kind.parent not in self.types else f'{kind.parent} & {own}'}"

    def constructor(self, name, members):
        lines = [f"declare {name}: {{"]
        for field in dict.fromkeys(member.name for member in members):
            if field in ("[]", "()"):
                continue
            types = [self.type(member.type) for member in members if member.name == field]
            whole = types[0] if len(types) == 1 else " & ".join(f"({one})" for one in types)
            lines.append(f"\t{key(field)}: {whole},")
        lines.append("}\n")
        return "\n".join(lines)

    def enum(self, name, items):
        lines = [f"declare extern type Enum{name} extends EnumItem with", "end"]
        lines.append(f"declare extern type Enum{name}_Items extends Enum with")
        for item in items:
            lines.append(f"\tread {item}: Enum{name}" if item not in RESERVED else f"\t{key(item)}: Enum{name}")
        lines.append(f"\tfunction GetEnumItems(self): {{ Enum{name} }}")
        lines.append(f"\tfunction FromName(self, name: string): Enum{name}?")
        lines.append(f"\tfunction FromValue(self, value: number): Enum{name}?")
        lines.append("end\n")
        return "\n".join(lines)

    def enums(self):
        lines = ["declare extern type Enums with", "\tfunction GetEnums(self): { Enum }"]
        lines += [f"\tread {name}: Enum{name}_Items" for name in self.api.enums]
        lines += ["end", "declare Enum: Enums\n"]
        return "\n".join(lines)


def write(api, source):
    """The whole definition file."""
    writer = Writer(api)
    parts = [f"-- Generated by tools/luau/regenerate from {source}. Do not edit.\n", FIXED]
    parts += [writer.enum(name, items) for name, items in api.enums.items()]
    parts += [writer.enums()]
    parts += [writer.extern(kind) for kind in api.datatypes]
    parts += [writer.table_type(kind) for kind in api.tables]
    parts += [""]
    parts += [writer.extern(kind) for kind in api.classes]
    parts += [writer.constructor(name, members) for name, members in api.constructors() if name != "Instance"]
    parts += [GLOBALS]
    return "\n".join(parts)
