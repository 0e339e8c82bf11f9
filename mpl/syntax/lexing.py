"""Tokens: source text cut into words, numbers, texts and signs.

The terminals of `grammar.lark` say what a token is; this module finds them, because lark's own lexer stops at the
first error and is too slow for long programs. Called by `mpl/parser.py`, and by the formatter for comments. What is no
token is given to `mpl/syntax/lexical_errors.py`, which reports it and says what to go on with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern

from lark.lexer import PatternStr, TerminalDef

from mpl.diagnostic import DIAGNOSTICS_MAX, Diagnostics
from mpl.source import Source, Span
from mpl.syntax.lexical_errors import check_number, recover
from mpl.syntax.limits import NAME_CHARACTERS_MAX, check_name
from mpl.syntax.tokens import END, NAME, Token

SAFE_DIGITS = 18
"""A whole number of so many digits always fits in 64 bits."""

MISTAKES = (
    r"(?P<UNCLOSED_QUOTE>['\"`](?:[^\n;]|;(?![ \t\r]*(?:\n|\Z)))*+)",
    r"(?P<CURLY_QUOTE>[\u2018\u2019\u201c\u201d\u00b4][^\u2018\u2019\u201c\u201d\u00b4\n;]*+[\u2018\u2019\u201c\u201d\u00b4]?)",
    r"(?P<WRONG_COMMENT>/\*(?:[^*]|\*(?!/))*+(?:\*/)?|//[^\n]*+|\#[^\n]*+)",
    r"(?P<WRONG_SIGN>==+|!=|&&|!|&|=>|=<|\|(?![|>]))",
    r"(?P<BAD_WORD>[0-9]++\.[0-9]\w*+|\w++)",
)
"""What is not MPL but has a meaning elsewhere. Tried after the grammar's words, before its signs."""


@dataclass(frozen=True)
class Lexicon:
    """What the grammar's terminals look like: one pattern for all, and the words and signs among them."""

    pattern: re.Pattern[str]
    keywords: dict[str, str]
    signs: dict[str, str]

    @staticmethod
    def of(terminals: Iterable[TerminalDef]) -> Lexicon:
        """Read the terminals of the grammar; those that are patterns are tried in the order of the grammar."""
        keywords: dict[str, str] = {}
        signs: dict[str, str] = {";": END}
        patterns: list[str] = [r"(?P<COMMENT>--[^\n]*+)"]
        for terminal in sorted(terminals, key=lambda terminal: -terminal.priority):
            name = intern(str(terminal.name))
            if not isinstance(terminal.pattern, PatternStr):
                patterns.append(f"(?P<{name}>{terminal.pattern.to_regexp()})")
            elif terminal.pattern.value.isalpha():
                keywords[terminal.pattern.value] = name
            else:
                signs[terminal.pattern.value] = name
        longest_first = sorted(signs, key=lambda sign: -len(sign))
        patterns += MISTAKES
        patterns.append(f"(?P<SIGN>{'|'.join(re.escape(sign) for sign in longest_first)})")
        patterns.append(r"(?P<BAD>(?P<stray>\S)(?P=stray)*+)")
        patterns.append(r"(?P<NOTHING>\Z)")  # else blanks at the end would be tried again from each of them
        return Lexicon(re.compile(r"\s*+(?:" + "|".join(patterns) + ")"), keywords, signs)


def tokenize(source: Source, lexicon: Lexicon, diagnostics: Diagnostics) -> list[Token]:
    """All tokens; the last is always an end token, with empty text when the user wrote no `;` there.

    Reading stops when there are more errors than anybody will be shown.
    """
    keywords = lexicon.keywords
    signs = lexicon.signs
    tokens: list[Token] = []
    for match in lexicon.pattern.finditer(source.text):
        kind: str | None = match.lastgroup
        assert kind is not None
        start, end = match.span(kind)
        text = match.group(kind)
        if kind == NAME:
            kind = keywords.get(text) or keywords.get(text.lower(), NAME)
            token = Token(kind, text, Span(source, start, end))
            if end - start > NAME_CHARACTERS_MAX:
                check_name(token, diagnostics)
        elif kind == "SIGN":
            token = Token(signs[text], text, Span(source, start, end))
        elif kind == "COMMENT" or kind == "NOTHING":
            continue
        elif kind == "TEXT" or kind == "STRING" or (kind == "INT" and end - start <= SAFE_DIGITS):
            token = Token(kind, text, Span(source, start, end))
        elif kind in ("INT", "DECIMAL", "FLOAT", "DURATION"):
            token = check_number(Token(kind, text, Span(source, start, end)), tokens, diagnostics)
        else:
            kind = recover(kind, Span(source, start, end), diagnostics)
            if len(diagnostics) >= DIAGNOSTICS_MAX:
                break
            if kind is None:
                continue
            token = Token(kind, text, Span(source, start, end))
        tokens.append(token)
    if tokens and tokens[-1].type != END:
        last = tokens[-1].span.end
        tokens.append(Token(END, "", Span(source, last, last)))
    return tokens


def comments(source: Source, lexicon: Lexicon) -> list[Span]:
    """The places of all comments, without the blanks at their ends."""
    places: list[Span] = []
    for match in lexicon.pattern.finditer(source.text):
        if match.lastgroup == "COMMENT":
            start = match.start("COMMENT")
            places.append(Span(source, start, start + len(match.group("COMMENT").rstrip())))
    return places
