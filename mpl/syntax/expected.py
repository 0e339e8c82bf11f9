"""Terminals in the user's words: what was found, and what was expected instead.

Called by `mpl/syntax/errors.py`. A raw set of terminals after, say, an operand has thirty members; what a user can use
is "an operator, `,` or `)`". Nothing here decides what is wrong.
"""

from __future__ import annotations

from mpl.syntax.lexical_errors import shorten
from mpl.syntax.lexing import Lexicon
from mpl.syntax.tokens import END, NAME, Token

EXPRESSION = frozenset(
    (
        *("NAME", "ALL", "TIME", "INT", "DECIMAL", "FLOAT", "TEXT", "DURATION", "TRUE", "FALSE", "NULL"),
        *("CASE", "CAST", "OPEN", "NOT", "MINUS_SIGN"),
    )
)
LITERAL = frozenset(("INT", "DECIMAL", "FLOAT", "TEXT", "DURATION", "TRUE", "FALSE", "NULL", "TIME", "MINUS_SIGN"))
OPERATOR = frozenset(
    (
        *("PLUS", "MINUS_SIGN", "TIMES", "DIVIDE", "PERCENT", "CONCAT", "AND", "OR", "NOT", "IN", "BETWEEN"),
        *("LIKE", "IS", "DOT", "OPEN", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"),
    )
)
COMPARISONS = frozenset(("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"))
TYPES = frozenset(("INT_TYPE", "FLOAT_TYPE", "DECIMAL_TYPE", "TEXT_TYPE", "DURATION_TYPE", "TIME", "BOOL", "ENUM"))
STEP_WORDS = frozenset(
    (
        *("WHERE", "PROJECT", "EXTEND", "RENAME", "WINDOW", "AGGREGATE", "JOIN", "LEFT", "FULL", "ASOF"),
        *("MATCHING", "NOT", "TOP", "LATEST", "FIRST", "DISTINCT", "UNION", "MINUS"),
    )
)
STATEMENT_WORDS = frozenset(
    (
        *("STREAM", "TABLE", "VIEW", "SUBSCRIBE", "FUNCTION", "BROKER", "LINK", "PUBLISH", "PLACE", "PROTECT"),
        *("TUNE", "DROP"),
    )
)

SELDOM = frozenset(("DOT", "INLINE", "MATERIALIZE"))
"""Possible nearly everywhere and seldom meant: not mentioned when there is something else."""

# A group is named as a whole when these members of it are all expected.
GROUPS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (frozenset(("STREAM", "VIEW", "TUNE")), STATEMENT_WORDS, "a statement such as `stream`, `view` or `subscribe`"),
    (frozenset(("WHERE", "EXTEND", "UNION")), STEP_WORDS, "a step such as `where`, `extend` or `join`"),
    (frozenset(("INT_TYPE", "ENUM")), TYPES, "a type"),
    (frozenset(("CASE", "CAST", "TEXT")), EXPRESSION, "an expression"),
    (frozenset(("INT", "DECIMAL", "TEXT", "TRUE")), LITERAL, "a literal"),
    (frozenset(("PLUS", "TIMES")), OPERATOR, "an operator"),
)

NOUNS = {
    "INT": "a whole number",
    "DECIMAL": "a number with a decimal point",
    "FLOAT": "a number with an exponent",
    "DURATION": "a duration such as `4 s`",
    "TEXT": "a text in single quotes",
    "STRING": "an address or path in double quotes",
    END: "`;`",
}

NAMES_AFTER = {
    "STREAM": "a name for the stream",
    "TABLE": "a name for the table",
    "VIEW": "a name for the view",
    "SUBSCRIBE": "a name for the subscription",
    "FUNCTION": "a name for the function",
    "BROKER": "a name for the broker",
    "LINK": "a broker name",
    "FROM": "a relation name",
    "MERGE": "a relation name",
    "JOIN": "a relation name",
    "MATCHING": "a relation name",
    "UNION": "a relation name",
    "MINUS": "a relation name",
    "TO": "a relation name",
    "AS": "a name",
    "DEFINE": "an aggregate such as `sum(...)`",
    "PROJECT": "a column name",
    "EXTEND": "a column name",
    "AGGREGATE": "a column name",
    "DEFAULT": "a column name",
    "RENAME": "a column name",
    "USING": "a column name",
    "PER": "a column name",
    "BY": "a column name",
    "BUT": "a column name",
    "KEY": "a column name",
    "UNIQUE": "a column name",
    "TICK": "a column name",
    "CLOSES": "a column name",
    "TIME": "a column name",
    "COMMA": "a column name",
    "DOT": "a column name",
    "RANK": "a column name",
    "OPEN": "a column name",
}

ITEMS_MAX = 6


def expected_words(expected: frozenset[str], before: Token | None, lexicon: Lexicon) -> str:
    """`a column name, "," or ")"`: at most a handful, nouns first, words last."""
    rest = set(expected - SELDOM or expected)
    items: list[str] = []
    for signature, members, noun in GROUPS:
        if signature <= rest:
            rest -= members
            items.append(noun)
    if NAME in rest:
        rest -= {NAME, "ALL", "TIME"}
        items.append(NAMES_AFTER.get(before.type, "a name") if before else "a name")
    items += [NOUNS[kind] for kind in NOUNS if kind in rest and kind != END]
    written = {kind: sign for sign, kind in lexicon.signs.items()} | {
        kind: word for word, kind in lexicon.keywords.items()
    }
    signs = [kind for kind in lexicon.signs.values() if kind in rest and kind != END]
    words = sorted(kind for kind in rest if kind in lexicon.keywords.values())
    items += [f"`{written[kind]}`" for kind in (*signs, *words)]
    if END in rest:
        items.append(NOUNS[END])
    if len(items) > ITEMS_MAX:
        items = [*items[: ITEMS_MAX - 1], "something similar"]
    return join_words(items)


def join_words(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"


def found_words(token: Token) -> str:
    """The token as a phrase: "name `x`", "`;`", "end of the program"."""
    text = shorten(token.span.text)
    match token.type:
        case "$END":
            return f"`{text}`" if text else "end of the program"
        case "NAME":
            return f"name `{text.strip('`')}`"
        case "INT" | "DECIMAL" | "FLOAT":
            return f"number `{text}`"
        case "TEXT":
            return f"text {text}"
        case _:
            return f"`{text}`"
