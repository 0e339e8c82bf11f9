"""Another layout for the same program: line breaks, indentation, comments, upper-case keywords."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from random import Random

from tests.generator.tokens import words

UPPER = frozenset(
    (
        *("stream", "table", "view", "subscribe", "function", "broker", "link", "publish", "place", "protect"),
        *("tune", "drop", "key", "from", "merge", "as", "where", "project", "all", "but", "extend", "rename"),
        *("window", "aggregate", "group", "by", "join", "left", "full", "asof", "matching", "not", "top", "per"),
        *("with", "ties", "rank", "latest", "first", "distinct", "union", "minus", "using", "on", "default", "and"),
        *("or", "in", "between", "like", "is", "null", "case", "when", "then", "else", "end", "emit", "changes"),
        *("bounds", "final", "of", "horizon", "at", "every", "within", "snapshot", "off", "durable", "unique"),
        *("event", "time", "late", "live", "closes", "until", "retain", "tick", "phase", "returns", "python"),
        *("monotone", "up", "down", "materialize", "inline", "edge", "near", "avoid"),
    )
)
COMMENTS = ("-- a remark", "-- it's; not |> code", "--", "-- ünïcode ✓", "-- 'open")


def lay_out(rng: Random, statements: list[str], names: Collection[str]) -> str:
    """The statements as one text, each closed by `;`. `names` are left in the case they have."""
    wild = rng.random() < 0.3
    shout = rng.random() < 0.15
    lines: list[str] = []
    for statement in statements:
        tokens = words(statement)
        if shout:
            tokens = [_shouted(rng, tokens, position, names) for position in range(len(tokens))]
        lines.append(_joined(rng, [*tokens, ";"], wild))
        if rng.random() < 0.05:
            lines.append(rng.choice(COMMENTS))
    return ("\n" if rng.random() < 0.9 else "\n\n").join(lines) + ("\n" if rng.random() < 0.9 else "")


def _shouted(rng: Random, tokens: list[str], position: int, names: Collection[str]) -> str:
    token = tokens[position]
    is_call = position + 1 < len(tokens) and tokens[position + 1] == "("
    if token not in UPPER or token in names or is_call or rng.random() < 0.3:
        return token
    return token.upper() if rng.random() < 0.8 else token.title()


def _joined(rng: Random, tokens: list[str], wild: bool) -> str:
    parts = [tokens[0]]
    for before, token in pairwise(tokens):
        parts.append(_blank(rng, before, token, wild))
        parts.append(token)
    return "".join(parts)


def _blank(rng: Random, before: str, token: str, wild: bool) -> str:
    if wild:
        roll = rng.random()
        if roll < 0.04:
            return f" {rng.choice(COMMENTS)}\n"
        if roll < 0.12:
            return rng.choice(("\n", "\n    ", "  ", "\t", "\r\n"))
    touching = before in "([" or token in ")],;" or (before == ".." or token == "..")
    if touching and rng.random() < 0.9:
        return ""
    if token == "|>" and rng.random() < 0.5:
        return "\n  "
    return " "
