"""Tokens: source text cut into words, numbers, texts and signs.

The terminals of `grammar.lark` say what a token is; this module finds them, because lark's own lexer neither reports
several errors of one text nor is fast enough for long programs. Called by `mpl/parser.py` and, for comments, by the
formatter. What is no token at all is reported here and becomes a `BAD` token, which no statement accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lark.lexer import PatternStr, TerminalDef

from mpl.source import Source, Span

NAME = "NAME"
BAD = "BAD"
END = "$END"
"""What lark calls the end of its input: here the `;` after a statement, or the end of the text."""

RESERVED = frozenset(
    [
        "and",
        "as",
        "between",
        "case",
        "cast",
        "else",
        "end",
        "false",
        "from",
        "in",
        "is",
        "join",
        "like",
        "not",
        "null",
        "on",
        "or",
        "then",
        "true",
        "using",
        "when",
        "where",
    ]
)
"""Words that are names only in backticks. All other keywords are names wherever the grammar wants a name."""


class Token:
    """One token: `type` is a terminal of the grammar, `text` is as written."""

    __slots__ = ("span", "text", "type")

    def __init__(self, type: str, text: str, span: Span) -> None:
        self.type = type
        self.text = text
        self.span = span

    def __repr__(self) -> str:
        return f"Token({self.type}, {self.text!r})"


@dataclass(frozen=True)
class Lexicon:
    """What the grammar's terminals look like: one pattern for all, and the words and signs among them."""

    pattern: re.Pattern[str]
    keywords: dict[str, str]
    signs: dict[str, str]

    @staticmethod
    def of(terminals: Iterable[TerminalDef]) -> Lexicon:
        """Read the terminals of the grammar; regular ones are tried in the order of the grammar, NAME first."""
        keywords: dict[str, str] = {}
        signs: dict[str, str] = {";": END}
        regular: list[str] = [r"(?P<COMMENT>--[^\n]*+)"]
        for terminal in terminals:
            if not isinstance(terminal.pattern, PatternStr):
                regular.append(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})")
            elif terminal.pattern.value.isalpha():
                keywords[terminal.pattern.value] = terminal.name
            else:
                signs[terminal.pattern.value] = terminal.name
        longest_first = sorted(signs, key=lambda sign: -len(sign))
        regular.append(f"(?P<SIGN>{'|'.join(re.escape(sign) for sign in longest_first)})")
        regular.append(r"(?P<BAD>\S)")
        return Lexicon(re.compile(r"\s*+(?:" + "|".join(regular) + ")"), keywords, signs)


def tokenize(source: Source, lexicon: Lexicon) -> list[Token]:
    keywords = lexicon.keywords
    signs = lexicon.signs
    tokens: list[Token] = []
    append = tokens.append
    for match in lexicon.pattern.finditer(source.text):
        kind = match.lastgroup
        assert kind is not None
        start, end = match.span(kind)
        text = match.group(kind)
        if kind == NAME:
            kind = keywords.get(text) or keywords.get(text.lower(), NAME)
        elif kind == "SIGN":
            kind = signs[text]
        elif kind == "COMMENT":
            continue
        append(Token(kind, text, Span(source, start, end)))
    return tokens
