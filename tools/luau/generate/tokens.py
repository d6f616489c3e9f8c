"""Cuts TypeScript into tokens, without its comments."""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
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


def tokens_of(text):
    found = (Token(match.lastgroup, match.group()) for match in TOKEN.finditer(text))
    return [token for token in found if token.kind != "skip"] + [Token("end", "")]
