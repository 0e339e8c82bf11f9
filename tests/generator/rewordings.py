"""Mutations that leave a text well-formed as far as they can, so that mistakes of meaning come up too.

A word is exchanged for another of its class, a name for another name of the program, a literal for one of another type;
whole steps and statements go missing or come twice.
"""

from __future__ import annotations

from random import Random

from tests.generator.layout import UPPER
from tests.generator.library import LIBRARY

CLASSES: tuple[tuple[str, ...], ...] = (
    ("+", "-", "*", "/", "%", "||"),
    ("=", "<>", "<", "<=", ">", ">="),
    ("and", "or"),
    ("sum", "count", "min", "max", "avg", "first", "last", "any", "all"),
    ("union", "minus"),
    ("int", "float", "bool", "text", "time", "duration", "decimal(10,2)", "enum('x','y')", "decimal(40,2)", "text(0)"),
    ("asc", "desc"),
    ("latest", "first"),
    ("tumble", "session"),
    ("changes", "bounds", "final"),
    ("materialize", "inline"),
    ("upstream", "active"),
    ("left", "full"),
)
FUNCTIONS = tuple(sorted({entry.name for entry in LIBRARY} | {"coalesce", "nullif", "least", "count", "nothing"}))
LITERALS = (
    *("0", "1", "-1", "1000000", "0.5", "1e3", "'x'", "''", "true", "null", "5 s", "0 s", "time '2026-01-01'"),
    *("9223372036854775807", "12.345678", "'%'", "time '2026-13-01'", "(1 / 0)", "cast('x' as int)"),
)


def _names(tokens: list[str]) -> list[int]:
    """Where names stand, keywords left out."""
    return [at for at, token in enumerate(tokens) if (token[0].isalpha() or token[0] in "_`") and token not in UPPER]


def _place(rng: Random, tokens: list[str], places: list[int]) -> int | None:
    """One of the places, mostly one inside a pipeline: declarations are checked sooner than what is built on them."""
    inside: list[int] = []
    is_step = False
    wanted = set(places)
    for at, token in enumerate(tokens):
        is_step = token == "|>" or (is_step and token != ";")
        if is_step and at in wanted:
            inside.append(at)
    chosen = inside if inside and rng.random() < 0.85 else places
    return rng.choice(chosen) if chosen else None


def reword(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    groups = {at: group for at, token in enumerate(tokens) for group in CLASSES if token in group}
    at = _place(rng, tokens, list(groups))
    return tokens if at is None else [*tokens[:at], rng.choice(groups[at]), *tokens[at + 1 :]]


def exchange_name(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    """One name becomes another one of the program, or two change places."""
    one, two = (_place(rng, tokens, _names(tokens)) for _ in range(2))
    if one is None or two is None:
        return tokens
    changed = list(tokens)
    changed[one] = tokens[two]
    if rng.random() < 0.3:
        changed[two] = tokens[one]
    return changed


def misspell(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = _place(rng, tokens, _names(tokens))
    if at is None:
        return tokens
    return [*tokens[:at], rng.choice((tokens[at].strip("`") + "x", "nobody", "a.b", "`a.b`")), *tokens[at + 1 :]]


def exchange_function(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    following = [
        next((other for other in tokens[at + 1 : at + 3] if not other.isspace()), "") for at in range(len(tokens))
    ]
    places = [at for at in _names(tokens) if following[at] == "("]
    at = _place(rng, tokens, places)
    if at is None:
        return tokens
    return [*tokens[:at], rng.choice(FUNCTIONS), *tokens[at + 1 :]]


def exchange_literal(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    places = [
        at for at, token in enumerate(tokens) if token[0].isdigit() or token[0] == "'" or token in ("true", "null")
    ]
    at = _place(rng, tokens, places)
    if at is None:
        return tokens
    return [*tokens[:at], rng.choice(LITERALS), *tokens[at + 1 :]]


def drop_step(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    """A step of a pipeline, up to the next one or the end of its statement, goes or comes twice."""
    starts = [at for at, token in enumerate(tokens) if token == "|>"]
    if not starts:
        return tokens
    start = rng.choice(starts)
    depth = 0
    end = start + 1
    while end < len(tokens) and not (depth == 0 and tokens[end] in ("|>", ";", ")")):
        depth += (tokens[end] == "(") - (tokens[end] == ")")
        end += 1
    if rng.random() < 0.3:
        return [*tokens[:end], " ", *tokens[start:end], *tokens[end:]]
    return [*tokens[:start], *tokens[end:]]


def drop_statement(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    """A statement goes, or comes twice."""
    borders = [-1, *(at for at, token in enumerate(tokens) if token == ";")]
    if len(borders) < 2:
        return tokens
    which = rng.randrange(len(borders) - 1)
    start, end = borders[which] + 1, borders[which + 1] + 1
    if rng.random() < 0.3:
        return [*tokens[:end], "\n", *tokens[start:end], *tokens[end:]]
    return [*tokens[:start], *tokens[end:]]


REWORDINGS = (
    *(reword, reword, reword, exchange_name, exchange_name, exchange_name, misspell, exchange_function),
    *(exchange_literal, exchange_literal, drop_step, drop_statement),
)
