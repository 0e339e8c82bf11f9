"""Fitting a layout back to its source: names and literals get their text, comments their words.

The words of a layout are the tokens of the source in the same order, except that the layout has lost needless
parentheses and `asc`. That is checked here word by word, so a slip in the printer fails loudly instead of changing what
a program means.
"""

from __future__ import annotations

import re
from functools import cache

from mpl.formatter.layout import Word
from mpl.source import Span
from mpl.syntax.tables import Tables
from mpl.syntax.tokens import NAME, RESERVED, Token

DROPPED = frozenset(("(", ")", "asc"))
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fit(words: list[Word], tokens: list[Token], tables: Tables) -> list[tuple[Word, Token]]:
    """Give every word its token, and names and literals their text."""
    pairs: list[tuple[Word, Token]] = []
    remaining = iter(tokens)
    for word in words:
        for token in remaining:
            is_value = word.text is None and token.type not in tables.lexicon.signs.values()
            if is_value or word.text == token.text.lower():
                break
            assert token.text.lower() in DROPPED, f"the formatter lost `{token.text}` at {token.span}"
        else:
            raise AssertionError(f"the formatter invented `{word.text}` at {tokens[-1].span}")
        if word.text is None:
            word.text = _value_text(token, tables)
        pairs.append((word, token))
    for token in remaining:
        assert token.text.lower() in DROPPED, f"the formatter lost `{token.text}` at {token.span}"
    return pairs


def _value_text(token: Token, tables: Tables) -> str:
    text = token.text
    match token.type:
        case "DURATION":
            amount = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").rstrip()
            return f"{amount} {text[len(amount) :].strip().lower()}"
        case "FLOAT":
            return text.lower()
        case "NAME" if text[0] == "`" and _is_plain(text[1:-1], tables):
            return text[1:-1]
        case _:
            return text


def _is_plain(name: str, tables: Tables) -> bool:
    """Whether a name needs no backticks, wherever it stands."""
    kind = tables.lexicon.keywords.get(name.lower())
    return PLAIN_NAME.fullmatch(name) is not None and name.lower() not in RESERVED and kind not in _contested(tables)


@cache
def _contested(tables: Tables) -> frozenset[str]:
    """Keywords that somewhere compete with a name: there the keyword wins, so backticks stay."""
    return frozenset(kind for row in tables.actions if NAME in row for kind in row)


def attach(pairs: list[tuple[Word, Token]], comments: list[Span]) -> None:
    """Hang the comments of a statement, which begin after its first token, on its words.

    A comment before `,` or `;` goes behind it, so that formatting again finds it at the same word.
    """
    following = 0
    for comment in comments:
        while following < len(pairs) and pairs[following][1].span.start < comment.start:
            following += 1
        before_sign = following < len(pairs) and pairs[following][0].text in (",", ";")
        if owns_line(comment) and not before_sign:
            pairs[following][0].leading.append(comment.text)
        else:
            pairs[following if before_sign else following - 1][0].trailing.append(comment.text)


def owns_line(comment: Span) -> bool:
    """Whether nothing but blanks stands before the comment on its line."""
    text = comment.source.text
    return not text[text.rfind("\n", 0, comment.start) + 1 : comment.start].strip()
