"""Syntax errors explained: from the place where parsing failed to a diagnostic that helps.

`explain` tries the mistakes of `mpl/syntax/mistakes.py` in order and falls back to "unexpected X, expected Y". It
reports exactly one diagnostic per failure, or none when the lexer has already reported the token.
"""

from __future__ import annotations

from mpl.codes.syntax import UNCLOSED, UNEXPECTED, UNOPENED
from mpl.diagnostic import Diagnostic, Diagnostics, Note, did_you_mean
from mpl.syntax.expected import expected_words, found_words
from mpl.syntax.mistakes import MISTAKES, Problem
from mpl.syntax.tables import Failure, Tables
from mpl.syntax.tokens import BAD, END, NAME, Token

PAIRS = {"OPEN": "CLOSE", "OPEN_RANGE": "CLOSE_RANGE", "CASE": "END"}
WRITTEN = {"OPEN": "(", "OPEN_RANGE": "[", "CASE": "case", "CLOSE": ")", "CLOSE_RANGE": "]", "END": "end"}

FOREIGN_TYPES = {
    **dict.fromkeys(("string", "varchar", "char", "str"), "text"),
    **dict.fromkeys(("integer", "bigint", "int64", "long", "smallint"), "int"),
    **dict.fromkeys(("timestamp", "datetime", "date"), "time"),
    **dict.fromkeys(("double", "real", "float64"), "float"),
    **dict.fromkeys(("numeric", "number"), "decimal(10,2)"),
    **dict.fromkeys(("boolean",), "bool"),
    **dict.fromkeys(("interval",), "duration"),
}


def explain(
    tables: Tables, tokens: list[Token], start: int, end: int, failure: Failure, diagnostics: Diagnostics
) -> None:
    """Report why the statement at tokens `start` up to `end` failed."""
    if any(token.type == BAD for token in tokens[failure.index : min(failure.index + 2, end + 1)]):
        return  # what stands next to a token that was reported is part of the same slip
    problem = Problem(tokens, start, end, failure.index, tables.accepted(failure.states))
    diagnostic = _unbalanced(problem)
    for mistake in MISTAKES:
        diagnostic = diagnostic or mistake(problem)
    add(diagnostic or _unexpected(problem, tables), diagnostics)


def add(diagnostic: Diagnostic, diagnostics: Diagnostics) -> None:
    diagnostics.report(
        diagnostic.code,
        diagnostic.span,
        diagnostic.message,
        diagnostic.label,
        note=diagnostic.note,
        help=diagnostic.help,
    )


def _open_tokens(problem: Problem) -> list[Token]:
    """What is still open at the failure, outermost first."""
    opened: list[Token] = []
    for token in problem.tokens[problem.start : problem.index]:
        if token.type in PAIRS:
            opened.append(token)
        elif opened and token.type == PAIRS[opened[-1].type]:
            opened.pop()
    return opened


def _unbalanced(problem: Problem) -> Diagnostic | None:
    token = problem.token
    opened = _open_tokens(problem)
    if token.type == END and opened:
        first = opened[-1]
        return Diagnostic(
            UNCLOSED,
            first.span,
            f"this `{WRITTEN[first.type]}` is not closed before the statement ends",
            f"no `{WRITTEN[PAIRS[first.type]]}` follows",
            help=f"add the missing `{WRITTEN[PAIRS[first.type]]}`",
        )
    if token.type in ("CLOSE", "CLOSE_RANGE") and (not opened or PAIRS[opened[-1].type] != token.type):
        return Diagnostic(
            UNOPENED,
            token.span,
            f"nothing is open here that `{token.text}` could close",
            "no matching opening before it",
            note=Note(f"`{WRITTEN[opened[-1].type]}` is still open", opened[-1].span) if opened else None,
            help="delete it, or write the missing opening",
        )
    return None


def _unexpected(problem: Problem, tables: Tables) -> Diagnostic:
    token = problem.token
    opened = _open_tokens(problem)
    remedy = _help(problem, tables)
    note = None
    if remedy is None and opened and PAIRS[opened[-1].type] in problem.expected:
        note = Note(f"`{WRITTEN[opened[-1].type]}` is still open", opened[-1].span)
    return Diagnostic(
        UNEXPECTED,
        token.span,
        f"unexpected {found_words(token)}{_where(problem)}",
        f"expected {expected_words(problem.expected, problem.before, tables.lexicon)}",
        note,
        remedy,
    )


def _where(problem: Problem) -> str:
    """`in view "q3"`: which statement this is about, when it got far enough to say."""
    first = problem.tokens[problem.start]
    if problem.index == problem.start:
        return ", where a statement begins"
    second = problem.tokens[problem.start + 1]
    named = f" `{second.text}`" if problem.index > problem.start + 1 and second.type == NAME else ""
    return f" in this `{first.text.lower()}`" if not named else f" in `{first.text.lower()} {second.text}`"


def _help(problem: Problem, tables: Tables) -> str | None:
    token = problem.token
    if problem.before and problem.before.type == "COMMA" and token.type not in (NAME, "INT", "TEXT"):
        return "delete the comma before it"
    if token.type == "NOT" and "NULL" in problem.expected:
        return "leave `not null` out: nothing is null here unless it is declared `null`"
    if token.type == "TIMES" and problem.before and problem.before.type == "OPEN":
        return "to count all rows write `count()`"
    if not token.text.isidentifier() or len(token.text) < 3:
        return None
    if "ENUM" in problem.expected and token.text.lower() in FOREIGN_TYPES:
        return f"did you mean `{FOREIGN_TYPES[token.text.lower()]}`?"
    words = [word for word, kind in tables.lexicon.keywords.items() if kind in problem.expected]
    return did_you_mean(token.text, sorted(words))
