"""Limits against texts that nobody writes by hand, and the errors for passing them.

Called by the lexer and the parser before anything that could take long or nest deep. The checker and the compiler rely
on them: they recurse over nodes without counting again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mpl.codes.syntax import CHAIN_TOO_LONG, NAME_TOO_LONG, TEXT_TOO_LONG, TOO_DEEP, TOO_MANY
from mpl.diagnostic import Diagnostic, Diagnostics
from mpl.nodes import (
    AggregateCall,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Compare,
    InList,
    IsNull,
    Like,
    Logical,
    Negate,
    Node,
    Not,
    Relation,
)
from mpl.source import Source, Span
from mpl.syntax.tokens import END, NAME, Token

TEXT_BYTES_MAX = 1024 * 1024
NESTING_MAX = 64
COLUMNS_MAX = 10_000
OPERATORS_MAX = 10_000
TERMS_MAX = 128
NAME_CHARACTERS_MAX = 128

NODES_PER_LEVEL_MAX = 9
"""How deep nodes can nest without a further parenthesis: one for each strength of binding, and a call around them."""

NESTING = (
    *(Relation, Arithmetic, Between, Call, Case, Cast, Compare, InList, IsNull, Like, Logical, Negate, Not),
    AggregateCall,
)
"""The nodes that count as a level: those that can contain themselves."""

OPENING = frozenset(("OPEN", "OPEN_RANGE", "CASE"))
CLOSING = frozenset(("CLOSE", "CLOSE_RANGE", "END"))
PREFIXES = frozenset(("NOT", "MINUS_SIGN"))
COUNTED = OPENING | CLOSING | PREFIXES | {"PIPE", "DEFINE", END}


def check_text(source: Source, diagnostics: Diagnostics) -> bool:
    """Whether the text is short enough to be read at all."""
    text = source.text
    size = len(text)
    if size <= TEXT_BYTES_MAX and not text.isascii():
        size = len(text.encode("utf-8", "surrogatepass"))
    if size <= TEXT_BYTES_MAX:
        return True
    place = min(TEXT_BYTES_MAX, len(text) - 1)
    diagnostics.report(
        TEXT_TOO_LONG,
        Span(source, place, place + 1),
        f"this program has {size:,} bytes; at most {TEXT_BYTES_MAX:,} are read",
        "too much from about here on",
        help="split the program into several files",
    )
    return False


def check_name(token: Token, diagnostics: Diagnostics) -> None:
    if token.type == NAME and len(token.text.strip("`")) > NAME_CHARACTERS_MAX:
        diagnostics.report(
            NAME_TOO_LONG,
            token.span,
            f"this name has {len(token.text.strip('`'))} characters; at most {NAME_CHARACTERS_MAX} are allowed",
            "a shorter name is needed",
        )


def terms_error(count: int, span: Span) -> Diagnostic:
    return Diagnostic(
        CHAIN_TOO_LONG,
        span,
        f"this calculation has {count} terms in a row; at most {TERMS_MAX} are allowed",
        "too many terms",
        help="compute parts of it in an `extend` before",
    )


class Counters:
    """Counts what the whole program may have only so many of. One per parse."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._columns = 0
        self._operators = 0

    def column(self, span: Span, number: int = 1) -> bool:
        """Count columns that are declared or defined; False when there are too many now."""
        self._columns += number
        return self._within(self._columns, COLUMNS_MAX, span, "columns")

    def operator(self, span: Span) -> bool:
        self._operators += 1
        return self._within(self._operators, OPERATORS_MAX, span, "operators")

    def _within(self, count: int, maximum: int, span: Span, what: str) -> bool:
        if count <= maximum:
            return True
        self._diagnostics.report(
            TOO_MANY,
            span,
            f"this program has more than {maximum:,} {what}",
            "the rest of the program is not read",
            help="split the program into several files",
        )
        return False


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens `start` up to `end`, and the end token at `end`: usually one statement."""

    start: int
    end: int
    too_deep: bool
    may_be_deep: bool


def chunks(tokens: list[Token], counters: Counters, diagnostics: Diagnostics) -> Iterator[Chunk]:
    """Cut the tokens at every `;`, counting on the way. Ends early when the program has too much of something."""
    start = 0
    depth = deepest = 0
    prefixes_end = prefixes = 0
    too_deep_at: Span | None = None
    for index, token in enumerate(tokens):
        kind = token.type
        if kind not in COUNTED:
            continue
        if kind == END:
            if too_deep_at is not None:
                too_deep(too_deep_at, diagnostics)
            yield Chunk(start, index, too_deep_at is not None, (deepest + 1) * NODES_PER_LEVEL_MAX > NESTING_MAX)
            start = index + 1
            depth = deepest = prefixes = 0
            too_deep_at = None
        elif kind == "PIPE":
            if not counters.operator(token.span):
                return
        elif kind == "DEFINE":
            if not counters.column(token.span):
                return
        elif kind in CLOSING:
            depth = max(0, depth - 1)
        else:
            if kind in OPENING:
                depth += 1
                level = depth
            else:
                prefixes = prefixes + 1 if prefixes_end == index else 1
                prefixes_end = index + 1
                level = depth + prefixes
            if level > deepest:
                deepest = level
                if level == NESTING_MAX + 1:
                    too_deep_at = token.span


def too_deep(span: Span, diagnostics: Diagnostics) -> None:
    diagnostics.report(
        TOO_DEEP,
        span,
        f"this is nested deeper than {NESTING_MAX} levels",
        "one level too many",
        help="give the inner part a name: a view, or a column added by `extend`",
    )


def check_depth(statement: Node, diagnostics: Diagnostics) -> bool:
    """Whether relations and expressions nest no deeper than allowed. Does not recurse."""
    waiting: list[tuple[int, object]] = [(0, statement)]
    while waiting:
        depth, item = waiting.pop()
        if isinstance(item, tuple):
            waiting.extend((depth, part) for part in item)
        elif isinstance(item, Node):
            depth += isinstance(item, NESTING)
            if depth > NESTING_MAX:
                too_deep(item.span, diagnostics)
                return False
            waiting.extend((depth, part) for name, part in vars(item).items() if name != "span")
    return True
