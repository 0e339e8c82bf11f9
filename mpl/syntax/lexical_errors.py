"""Errors in single tokens: what is no token of MPL, and numbers that do not fit.

Called by the lexer for what its pattern found but the grammar does not know. Each case is reported once, with the MPL
way to write it, and the lexer goes on with the token that was meant, so that one slip gives one error.
"""

from __future__ import annotations

import re
import unicodedata
from math import isinf

from mpl.codes.syntax import (
    BAD_NUMBER,
    FORBIDDEN_CHARACTER,
    NEEDS_BACKTICKS,
    NUMBER_TOO_LARGE,
    STRAY_CHARACTER,
    UNCLOSED_QUOTE,
    WRONG_COMMENT,
    WRONG_QUOTES,
    WRONG_SIGN,
)
from mpl.diagnostic import DIAGNOSTICS_MAX, Diagnostics
from mpl.nodes import DURATION_UNITS
from mpl.source import Source, Span
from mpl.syntax.tokens import BAD, NAME, Token

INT_MAX = 2**63 - 1
DECIMAL_DIGITS_MAX = 38

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]|(?<!^)\ufeff|\r(?!\r*+\n)"
)
"""Controls, marks that reverse the direction of text, half characters: never right, not even in a comment or a text.

A carriage return that ends no line is one of them: editors begin a line there, but to us a comment goes on.
"""

SIGNS = {
    "==": ("=", "EQUAL", "equality is one `=`"),
    "!=": ("<>", "NOT_EQUAL", "inequality is `<>`"),
    "=>": (">=", "GREATER_EQUAL", "this comparison is `>=`"),
    "=<": ("<=", "LESS_EQUAL", "this comparison is `<=`"),
    "&&": ("and", "AND", "write the word `and`"),
    "&": ("and", "AND", "write the word `and`"),
    "!": ("not", "NOT", "write the word `not`"),
    "|": ("|>", "PIPE", "steps are joined by `|>`"),
}
"""Signs of other languages: the MPL sign, the token to go on with, and what to say."""

QUOTES = {
    "'": "text",
    '"': "address or path",
    "`": "name",
}

UNITS = ", ".join(f"`{unit}`" for unit in DURATION_UNITS)


def check_characters(source: Source, diagnostics: Diagnostics) -> None:
    """Report characters that no text of MPL may hold, wherever they are."""
    for match in FORBIDDEN.finditer(source.text):
        if len(diagnostics) >= DIAGNOSTICS_MAX:
            return
        character = match.group()
        what = unicodedata.name(character, "").lower() or "a control character"
        if "\ud800" <= character <= "\udfff":
            what = "half of a broken character"
        diagnostics.report(
            FORBIDDEN_CHARACTER,
            Span(source, match.start(), match.end()),
            f"the text holds an invisible or broken character, U+{ord(character):04X}",
            what,
            help="delete it; if the whole file looks odd, save it again as UTF-8",
        )


def recover(kind: str, span: Span, diagnostics: Diagnostics) -> str | None:
    """Report what is no token, and say with which kind of token to go on; None leaves it out."""
    match kind:
        case "UNCLOSED_QUOTE":
            return _unclosed_quote(span, diagnostics)
        case "WRONG_COMMENT":
            diagnostics.report(
                WRONG_COMMENT,
                _first_line(span),
                "a comment begins with `--` and ends with its line",
                "not a comment in MPL",
                help="write `--` before every line of the comment",
            )
            return None
        case "CURLY_QUOTE":
            diagnostics.report(
                WRONG_QUOTES,
                span,
                "typographic quotes have no meaning in MPL",
                "these are curly",
                help="write a text in straight single quotes: 'like this'",
            )
            return "TEXT"
        case "WRONG_SIGN":
            return _wrong_sign(span, diagnostics)
        case "BAD_WORD":
            return _bad_word(span, diagnostics)
        case _:
            return _stray(span, diagnostics)


def _first_line(span: Span) -> Span:
    return Span(span.source, span.start, span.start + len(span.text.split("\n", 1)[0]))


def _unclosed_quote(span: Span, diagnostics: Diagnostics) -> str:
    quote = span.text[0]
    if span.text.startswith("``"):
        diagnostics.report(
            UNCLOSED_QUOTE,
            Span(span.source, span.start, span.start + 2),
            "a name in backticks is empty",
            "no name here",
        )
        return BAD
    diagnostics.report(
        UNCLOSED_QUOTE,
        Span(span.source, span.start, span.start + 1),
        f"this {QUOTES[quote]} is not closed on its line",
        f"opened here, and no {quote} follows",
        help="a quote inside a text is written twice: 'it''s'" if quote == "'" else f"close it with {quote}",
    )
    return BAD


def _wrong_sign(span: Span, diagnostics: Diagnostics) -> str:
    text = "==" if span.text.startswith("==") else span.text
    sign, kind, reason = SIGNS[text]
    diagnostics.report(
        WRONG_SIGN, span, f"`{span.text}` is not a sign of MPL", reason, help=f"write `{sign}` instead of `{span.text}`"
    )
    return kind


def _bad_word(span: Span, diagnostics: Diagnostics) -> str:
    word = shorten(span.text)
    if not span.text[0].isdecimal():
        diagnostics.report(
            NEEDS_BACKTICKS,
            span,
            f"the name `{word}` needs backticks around it",
            "without backticks, a name has the letters a to z, digits and `_`",
            help=f"write it between backticks: `{word}`",
        )
        return NAME
    diagnostics.report(
        BAD_NUMBER,
        span,
        f"`{word}` is neither a number nor a name",
        "a name cannot begin with a digit",
        help=f"a duration is a whole number and one of {UNITS}",
    )
    return BAD


def _stray(span: Span, diagnostics: Diagnostics) -> str | None:
    character = span.text[0]
    if FORBIDDEN.match(character) or character == "\ufeff":
        return None  # reported by check_characters
    diagnostics.report(
        STRAY_CHARACTER, span, f"`{shorten(span.text)}` has no meaning in MPL", "this character is not used"
    )
    return BAD


def check_number(token: Token, before: list[Token], diagnostics: Diagnostics) -> Token:
    """Report a number that does not fit, and go on with a zero in its place."""
    reason = _out_of_range(token, before)
    if reason is None:
        return token
    diagnostics.report(NUMBER_TOO_LARGE, token.span, f"the number `{shorten(token.text)}` is out of range", reason)
    zero = {"INT": "0", "DECIMAL": "0.0", "FLOAT": "0e0", "DURATION": "0 s"}[token.type]
    return Token(token.type, zero, token.span)


def _out_of_range(token: Token, before: list[Token]) -> str | None:
    text = token.text
    match token.type:
        case "DECIMAL":
            digits = len(text.replace(".", "").lstrip("0"))
            return f"a decimal has at most {DECIMAL_DIGITS_MAX} digits" if digits > DECIMAL_DIGITS_MAX else None
        case "FLOAT":
            return "larger than any 64-bit float" if isinf(float(text)) else None
        case "DURATION":
            digits_text = re.match(r"[0-9]+", text)
            assert digits_text is not None
            unit = text[digits_text.end() :].strip().lower()
            amount = _whole(digits_text.group())
            too_long = amount is None or amount * DURATION_UNITS[unit] > INT_MAX
            return "a duration is at most about 292,000 years" if too_long else None
        case _:
            value = _whole(text)
            # The lowest 64-bit number is written as the negation of one that does not fit.
            if value is not None and (value <= INT_MAX or (value == INT_MAX + 1 and _negated(before))):
                return None
            return f"whole numbers go from -{INT_MAX + 1} to {INT_MAX}"


def _whole(digits: str) -> int | None:
    """The value, or None when it is far too long to be worth computing."""
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) < 30 else None


def _negated(before: list[Token]) -> bool:
    """Whether the tokens so far end in a minus that negates, rather than one that subtracts."""
    if not before or before[-1].type != "MINUS_SIGN":
        return False
    operands = ("NAME", "INT", "DECIMAL", "FLOAT", "DURATION", "TEXT", "CLOSE", "END", "NULL", "TRUE", "FALSE")
    return len(before) < 2 or before[-2].type not in operands


def shorten(text: str, width: int = 40) -> str:
    """Text from the user, short enough for a sentence."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= width and line == text else line[: width - 3] + "..."
