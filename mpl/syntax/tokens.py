"""The token: one word, number, text or sign of a program, with its place."""

from __future__ import annotations

from mpl.source import Span

NAME = "NAME"
BAD = "BAD"
"""Type of a token that was already reported; no statement accepts it."""

END = "$END"
"""What lark calls the end of its input: here the `;` after a statement, or the end of the text."""

RESERVED = frozenset(
    (
        *("and", "as", "between", "case", "cast", "else", "end", "false", "from", "in", "is", "join", "like"),
        *("not", "null", "on", "or", "then", "true", "using", "when", "where"),
    )
)
"""Words that are names only in backticks. All other keywords are names wherever the grammar wants a name."""


class Token:
    """`type` is a terminal of the grammar, `text` is as written. The parser turns a keyword's type into `NAME`."""

    __slots__ = ("span", "text", "type")

    def __init__(self, type: str, text: str, span: Span) -> None:
        self.type = type
        self.text = text
        self.span = span

    def __repr__(self) -> str:
        return f"Token({self.type}, {self.text!r})"
