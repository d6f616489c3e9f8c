"""Reads TypeScript declaration files into plain values.

Only what `@rbxts/types` uses is understood. A type that has no counterpart in Luau anyway
(conditional, mapped, `keyof`, template) becomes `Other`.
"""

from dataclasses import dataclass, field

from tokens import tokens_of

MODIFIERS = {"declare", "export", "const"}


@dataclass(frozen=True)
class Named:
    name: str  # dotted, as in `Enum.Material`
    arguments: tuple = ()


@dataclass(frozen=True)
class Literal:
    text: str  # as it is written, quotes included


@dataclass(frozen=True)
class Union:
    parts: tuple


@dataclass(frozen=True)
class Array:
    element: object


@dataclass(frozen=True)
class Tuple:
    elements: tuple


@dataclass(frozen=True)
class Indexed:
    base: object


@dataclass(frozen=True)
class Object:
    members: tuple


@dataclass(frozen=True)
class Other:
    pass


@dataclass(frozen=True)
class Parameter:
    name: str
    type: object
    optional: bool = False
    rest: bool = False


@dataclass(frozen=True)
class Function:
    parameters: tuple
    returns: object
    generics: tuple = ()  # of (name, constraint or None)
    constructs: bool = False


@dataclass(frozen=True)
class Member:
    """A property, or a method if `type` is a `Function` and `is_method`."""

    name: str
    type: object
    is_method: bool = False
    optional: bool = False
    readonly: bool = False


@dataclass
class Interface:
    name: str
    parent: str | None
    generics: tuple
    members: list


@dataclass
class Declarations:
    """All that some files declare. Interfaces of one name are merged, as TypeScript does."""

    interfaces: dict = field(default_factory=dict)
    aliases: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)
    functions: dict = field(default_factory=dict)
    namespaces: dict = field(default_factory=dict)

    def add_interface(self, interface):
        known = self.interfaces.setdefault(interface.name, interface)
        if known is not interface:
            known.parent = known.parent or interface.parent
            known.members += interface.members


class Parser:
    def __init__(self, text):
        self.tokens = tokens_of(text)
        self.at = 0

    # Tokens

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def sees(self, *texts):
        return all(self.peek(index).text == text for index, text in enumerate(texts))

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def accept(self, text):
        if self.sees(text):
            return self.next()
        return None

    def expect(self, text):
        token = self.next()
        if token.text != text:
            before = " ".join(known.text for known in self.tokens[max(0, self.at - 12) : self.at])
            raise ValueError(f"expected {text!r} at the end of: {before}")
        return token

    def closing(self, start):
        """The index of the token that closes the bracket at `start`."""
        depth = 0
        for index in range(start, len(self.tokens)):
            text = self.tokens[index].text
            if text in ("(", "[", "{"):
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
                if depth == 0:
                    return index
        raise ValueError("a bracket is never closed")

    def separated(self, parse, end):
        """What `parse` reads, between commas, up to and with `end`."""
        found = []
        while not self.accept(end):
            found.append(parse())
            if not self.accept(","):
                self.expect(end)
                break
        return tuple(found)

    # Declarations

    def declarations(self, into, end=""):
        while self.peek().text != end:
            self.declaration(into)
        return into

    def declaration(self, into):
        while self.peek().text in MODIFIERS and self.peek(1).kind == "name":
            self.next()
        word = self.next().text
        if word == "interface":
            into.add_interface(self.interface())
        elif word == "type":
            name, generics = self.next().text, self.generics()
            self.expect("=")
            into.aliases[name] = (generics, self.type())
            self.accept(";")
        elif word == "namespace":
            name = self.next().text
            self.expect("{")
            self.declarations(into.namespaces.setdefault(name, Declarations()), "}")
            self.expect("}")
        elif word == "function":
            name = self.next().text
            into.functions.setdefault(name, []).append(self.signature())
            self.accept(";")
        elif word == "enum":
            self.next()
            self.at = self.closing(self.at) + 1
        elif self.accept(":"):
            into.values[word] = self.type()
            self.accept(";")
        elif word != ";":
            raise ValueError(f"a declaration may not begin with {word!r}")

    def interface(self):
        name, generics = self.next().text, self.generics()
        parent = None
        if self.accept("extends"):
            parents = [self.type()]
            while self.accept(","):
                parents.append(self.type())
            parent = parents[0].name
        self.expect("{")
        return Interface(name, parent, generics, list(self.members()))

    def members(self):
        """The members of an interface or object type, up to and with the closing brace."""
        found = []
        while not self.accept("}"):
            member = self.member()
            if member:
                found.append(member)
            if not self.accept(";"):
                self.accept(",")
        return tuple(found)

    def member(self):
        readonly = False
        accessor = None
        while self.peek().text in ("readonly", "get", "set") and self.peek(1).text not in (":", "(", "?", "<"):
            word = self.next().text
            readonly = readonly or word == "readonly"
            accessor = word if word != "readonly" else accessor
        if self.accept("["):
            return self.indexer()
        if self.peek().text in ("(", "<"):
            return Member("()", self.signature(), is_method=True)
        name = self.next().text.strip("\"'")
        optional = bool(self.accept("?"))
        if self.peek().text in ("(", "<"):
            signature = self.signature(constructs=name == "new")
            if accessor == "set":
                return Member(name, signature.parameters[0].type)
            if accessor == "get":
                return Member(name, signature.returns, readonly=True)
            return Member(name, signature, True, optional)
        self.expect(":")
        return Member(name, self.type(), False, optional, readonly)

    def indexer(self):
        """`[key: K]: V`. A computed or mapped key has no counterpart and is left out."""
        self.next()
        key = self.type() if self.accept(":") else None
        while not self.accept("]"):
            self.next()
        self.accept("?")
        self.expect(":")
        value = self.type()
        return Member("[]", Function((Parameter("key", key),), value)) if key else None

    # Types

    def generics(self):
        if not self.accept("<"):
            return ()
        return self.separated(self.generic, ">")

    def generic(self):
        name = self.next().text
        constraint = self.type() if self.accept("extends") else None
        if self.accept("="):
            self.type()
        return name, constraint

    def signature(self, arrow=":", constructs=False):
        generics = self.generics()
        self.expect("(")
        parameters = self.separated(self.parameter, ")")
        returns = self.type() if self.accept(arrow) else Named("void")
        return Function(parameters, returns, generics, constructs)

    def parameter(self):
        rest = bool(self.accept("..."))
        name = self.next().text
        optional = bool(self.accept("?"))
        kind = self.type() if self.accept(":") else Other()
        return Parameter(name, kind, optional, rest)

    def type(self):
        if self.sees("new", "("):
            self.next()
            return self.signature("=>", constructs=True)
        if self.sees("<") or (self.sees("(") and self.tokens[self.closing(self.at) + 1].text == "=>"):
            return self.signature("=>")
        found = self.union()
        if self.accept("extends"):
            self.type()
            self.expect("?")
            self.type()
            self.expect(":")
            self.type()
            return Other()
        return found

    def union(self):
        self.accept("|")
        parts = [self.intersection()]
        while self.accept("|"):
            parts.append(self.intersection())
        return parts[0] if len(parts) == 1 else Union(tuple(parts))

    def intersection(self):
        self.accept("&")
        first = self.postfix()
        alone = True
        while self.accept("&"):
            self.postfix()
            alone = False
        return first if alone else Other()

    def postfix(self):
        found = self.primary()
        while self.accept("["):
            if self.accept("]"):
                found = Array(found)
            else:
                self.type()
                self.expect("]")
                found = Indexed(found)
        return found

    def primary(self):
        token = self.next()
        if token.kind == "string":
            return Other() if token.text.startswith("`") else Literal(token.text)
        if token.kind == "number":
            return Literal(token.text)
        if token.text == "(":
            found = self.type()
            self.expect(")")
            return found
        if token.text == "[":
            return Tuple(self.separated(self.element, "]"))
        if token.text == "{":
            if self.peek(2).text == "in":
                self.at = self.closing(self.at - 1) + 1
                return Other()
            return Object(self.members())
        if token.text == "readonly":
            return self.postfix()
        if token.text in ("keyof", "typeof", "unique", "infer", "asserts"):
            self.postfix()
            return Named("string") if token.text == "keyof" else Other()
        return self.reference(token.text)

    def element(self):
        """A tuple's element, whose name is only a comment."""
        self.accept("...")
        if self.peek().kind == "name" and self.peek(1).text in (":", "?"):
            self.next()
            self.accept("?")
            self.expect(":")
        found = self.type()
        return Union((found, Named("undefined"))) if self.accept("?") else found

    def reference(self, name):
        if self.accept("is"):
            self.type()
            return Named("boolean")
        while self.accept("."):
            name += "." + self.next().text
        arguments = self.separated(self.type, ">") if self.accept("<") else ()
        return Named(name.removeprefix("globalThis."), arguments)


def read(paths):
    """The declarations of several files."""
    declarations = Declarations()
    for path in paths:
        Parser(path.read_text(encoding="utf-8")).declarations(declarations)
    return declarations
