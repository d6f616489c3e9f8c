"""Cuts TypeScript into tokens. A documentation comment stays with the token it stands before."""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<doc>/\*\*.*?\*/)
  | (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)
  | (?P<number>-?\d[\d_.]*(?:e[+-]?\d+)?)
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<mark>=>|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    doc: str


def tokens_of(text):
    tokens, doc = [], ""
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "doc":
            doc = match.group()
        elif kind != "skip":
            tokens.append(Token(kind, match.group(), doc))
            doc = ""
    tokens.append(Token("end", "", ""))
    return tokens
