"""Common mistakes: one function for each, which recognises it and says what to write instead.

Called in the order of `MISTAKES` by `mpl/syntax/errors.py` when a statement could not be parsed. A mistake looks only
at the tokens around the failure and at what was expected there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpl.codes.syntax import (
    BAD_NUMBER,
    CHAINED_COMPARISON,
    MISSING_PIPE,
    NEEDS_BACKTICKS,
    NOT_A_DEFINITION,
    NOT_A_PIPELINE,
    NOT_AN_AGGREGATE,
    WRONG_QUOTES,
    WRONG_SIGN,
)
from mpl.diagnostic import Diagnostic
from mpl.nodes import DURATION_UNITS
from mpl.syntax.expected import COMPARISONS, STEP_WORDS, TYPES
from mpl.syntax.lexical_errors import UNITS, shorten
from mpl.syntax.tokens import END, NAME, RESERVED, Token


@dataclass(frozen=True)
class Problem:
    """A statement (tokens `start` up to `end`) that failed at token `index`, where `expected` could have followed."""

    tokens: list[Token]
    start: int
    end: int
    index: int
    expected: frozenset[str]

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def before(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index > self.start else None

    @property
    def after(self) -> Token | None:
        return self.tokens[self.index + 1] if self.index < self.end else None

    @property
    def step(self) -> str:
        """The first word of the pipeline step that failed, or of the statement."""
        for index in range(self.index - 1, self.start, -1):
            if self.tokens[index - 1].type == "PIPE":
                return self.tokens[index].type
        return self.tokens[self.start].type


SQL_WORDS: dict[str, tuple[str, str]] = {
    "select": ("MPL is a pipeline: it starts with `from`", "from R |> where ... |> project a, b"),
    "with": ("every intermediate result is a view of its own", "view name = from ..."),
    "having": ("a condition on groups is a `where` after the `aggregate`", "|> aggregate n := count() |> where n > 1"),
    "order": ("rows are ordered only to take the first few, by `top`", "|> top 10 by price desc"),
    "limit": ("the first few rows are taken by `top`", "|> top 10 by price desc"),
    "group": ("`group by` belongs to `aggregate`, after its definitions", "|> aggregate n := count() group by a"),
    "inner": ("`join` alone is the inner join", "|> join R using id"),
    "outer": ("`left join` and `full join` are outer joins already", "|> left join R using id"),
    "right": ("there is no right join: start from the other relation", "from R |> left join S using id"),
    "cross": ("every join needs a condition", "|> join R using id"),
    "semi": ("rows that have a partner are kept by `matching`", "|> matching R using id"),
    "anti": ("rows without a partner are kept by `not matching`", "|> not matching R using id"),
    "except": ("the difference of two relations is `minus`", "|> minus R"),
    "over": ("there are no window functions", "|> top 1 per a by b desc"),
    "create": ("declarations begin with what they declare", "view name = from ...` or `stream name (a int)"),
    "insert": ("rows arrive through streams and tables only", 'table R (a int) key a from "rows.csv"'),
}
"""Words of SQL: why they are not here, and what to write."""


def sql_word(problem: Problem) -> Diagnostic | None:
    word = problem.token.text.lower()
    if word not in SQL_WORDS or (word == "with" and problem.index > problem.start):
        return None
    reason, example = SQL_WORDS[word]
    if word == "select" and problem.before is not None and problem.before.type == "PIPE":
        reason, example = "columns are chosen by `project`", "|> project a, b"
    return Diagnostic(
        NOT_A_PIPELINE,
        problem.token.span,
        reason,
        f"`{word}` cannot be here",
        help=f"write `{example}`",
    )


def missing_pipe(problem: Problem) -> Diagnostic | None:
    token = problem.token
    if token.type not in STEP_WORDS or "PIPE" not in problem.expected:
        return None
    return Diagnostic(
        MISSING_PIPE,
        token.span,
        f"`|>` is missing before `{token.text.lower()}`",
        "this begins a new step",
        help=f"write `|> {token.text.lower()}`",
    )


def wrong_definition(problem: Problem) -> Diagnostic | None:
    token, before = problem.token, problem.before
    if "DEFINE" in problem.expected and token.type == "EQUAL":
        name = shorten(before.text) if before else "name"
        return Diagnostic(
            NOT_A_DEFINITION,
            token.span,
            "a definition is written with `:=`",
            "`=` compares",
            help=f"write `{name} := ...`",
        )
    if "DEFINE" in problem.expected and before is not None:
        return _nameless(before)
    if problem.expected == {NAME} and before is not None and before.type in ("EXTEND", "AGGREGATE", "DEFAULT"):
        return None if token.type == END or token.text.lower() in RESERVED else _nameless(token)
    if token.type == "DEFINE" and "EQUAL" in problem.expected:
        what = "a comparison is written" if "LESS" in problem.expected else "this is declared"
        return Diagnostic(WRONG_SIGN, token.span, f"{what} with `=`", "`:=` defines a column", help="write `=`")
    return None


def _nameless(first: Token) -> Diagnostic:
    return Diagnostic(
        NOT_A_DEFINITION,
        first.span,
        "what is computed here has no name",
        "a name and `:=` are missing before it",
        help=f"write `name := {shorten(first.text)} ...`",
    )


def wrong_quotes(problem: Problem) -> Diagnostic | None:
    token = problem.token
    inner = token.text[1:-1]
    if token.type == "STRING" and "TEXT" in problem.expected:
        escaped = shorten(inner.replace("'", "''"))
        return Diagnostic(
            WRONG_QUOTES,
            token.span,
            "a text is written in single quotes",
            "double quotes are for addresses and paths",
            help=f"write '{escaped}', or `{shorten(inner)}` if it is a column",
        )
    if token.type == "TEXT" and "STRING" in problem.expected:
        return Diagnostic(
            WRONG_QUOTES,
            token.span,
            "an address or path is written in double quotes",
            "single quotes are for texts",
            help=f'write "{shorten(inner)}"',
        )
    return None


def chained_comparison(problem: Problem) -> Diagnostic | None:
    """Also `a > 1 || b > 2`, which is one comparison of `1 || b`."""
    if problem.token.type not in COMPARISONS or "AND" not in problem.expected or "EQUAL" in problem.expected:
        return None
    for token in reversed(problem.tokens[problem.start : problem.index]):
        if token.type in COMPARISONS:
            break
        if token.type == "CONCAT":
            return Diagnostic(
                WRONG_SIGN, token.span, "conditions are joined by `or`", "`||` joins texts", help="write `or`"
            )
    return Diagnostic(
        CHAINED_COMPARISON,
        problem.token.span,
        "comparisons do not chain",
        "the second comparison in a row",
        help="write `a < b and b < c`, or `b between a and c`",
    )


def wrong_duration(problem: Problem) -> Diagnostic | None:
    """`4 sec`, `late 4`, `1.5 s`."""
    token, before, after = problem.token, problem.before, problem.after
    if token.type == "INT" and "DURATION" in problem.expected:
        if after is not None and after.type == NAME:
            return _unknown_unit(after)
        return Diagnostic(
            BAD_NUMBER,
            token.span,
            "a duration needs a unit",
            "a number alone",
            help=f"write for example `{shorten(token.text)} s`; units are {UNITS}",
        )
    if token.type == "DECIMAL" and after is not None and after.text.lower() in DURATION_UNITS:
        return _decimal_duration(token, after)
    if token.type == NAME and before is not None and before.type in ("INT", "DECIMAL") and "PLUS" in problem.expected:
        return _decimal_duration(before, token) if token.text.lower() in DURATION_UNITS else _unknown_unit(token)
    return None


def _unknown_unit(unit: Token) -> Diagnostic:
    return Diagnostic(
        BAD_NUMBER,
        unit.span,
        f"`{shorten(unit.text)}` is not a unit of time",
        "a number stands before it",
        help=f"units are {UNITS}",
    )


def _decimal_duration(number: Token, unit: Token) -> Diagnostic:
    return Diagnostic(
        BAD_NUMBER,
        number.span.to(unit.span),
        "a duration is a whole number of its unit",
        "has a decimal point",
        help="use a smaller unit: `1500 ms` instead of `1.5 s`",
    )


def not_an_aggregate(problem: Problem) -> Diagnostic | None:
    token, before = problem.token, problem.before
    if problem.step != "AGGREGATE" or before is None:
        return None
    if before.type == "CLOSE" and token.type in ("PLUS", "MINUS_SIGN", "TIMES", "DIVIDE", "PERCENT", "CONCAT"):
        return Diagnostic(
            NOT_AN_AGGREGATE,
            token.span,
            "an aggregate stands alone in its definition",
            "no calculation can follow",
            help=f"compute with it in the next step: `|> extend x := a {token.text} b`",
        )
    if "OPEN" in problem.expected and before.type == NAME and problem.tokens[problem.index - 2].type == "DEFINE":
        culprit = before
    elif before.type == "DEFINE" and problem.expected == {NAME} and token.type != END:
        culprit = token
    else:
        return None
    return Diagnostic(
        NOT_AN_AGGREGATE,
        culprit.span,
        f"`{shorten(culprit.text)}` is not an aggregate",
        "expected `sum(...)`, `count()` or the like",
        help=f"write for example `max({shorten(culprit.text)})`, or put it into `group by`",
    )


def expression_in_project(problem: Problem) -> Diagnostic | None:
    token = problem.token
    if problem.step != "PROJECT" or problem.before is None or problem.before.type != NAME:
        return None
    if token.type == "AS":
        remedy = "rename first: `|> rename a as b |> project b`"
    elif token.type in ("PLUS", "MINUS_SIGN", "TIMES", "DIVIDE", "PERCENT", "CONCAT", "OPEN", "DEFINE", "EQUAL"):
        remedy = "compute first: `|> extend c := a + b |> project c`"
    else:
        return None
    return Diagnostic(
        NOT_A_DEFINITION, token.span, "`project` only chooses columns", "expected `,` or the next step", help=remedy
    )


def reserved_name(problem: Problem) -> Diagnostic | None:
    token, after = problem.token, problem.after
    used_as_name = after is not None and after.type in {"COMMA", "DEFINE", "CLOSE", "DOT", END, *TYPES}
    only_a_name_fits = set(problem.expected) == {NAME}
    if token.text.lower() not in RESERVED or NAME not in problem.expected or not (used_as_name or only_a_name_fits):
        return None
    return Diagnostic(
        NEEDS_BACKTICKS,
        token.span,
        f"`{token.text}` is a word of the language",
        "a name only in backticks",
        help=f"write it in backticks, or choose another name: `{token.text}_`",
    )


MISTAKES: tuple[Callable[[Problem], Diagnostic | None], ...] = (
    not_an_aggregate,  # before sql_word: what follows a wrong aggregate is often `group by`
    sql_word,
    missing_pipe,
    expression_in_project,
    wrong_duration,  # before wrong_definition, which takes every unnamed beginning
    wrong_definition,
    wrong_quotes,
    chained_comparison,
    reserved_name,
)
