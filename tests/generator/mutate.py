"""Mutations: valid texts made wrong, or at least strange, in the ways that people and accidents do it.

Accidents, which are here, know nothing of the language but its rough tokens; `rewordings.py` has mistakes of meaning.
The property that both serve is about any text at all: the checker answers, with diagnostics if need be, and never with
a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.generator.rewordings import REWORDINGS
from tests.generator.tokens import cut

Mutation = Callable[[Random, list[str], list[str]], list[str]]
"""Gets the tokens of a text and of another one; gives the changed tokens."""

GARBAGE = (
    *("\x00", "\x07", "\x7f", "\u200b", "\u202e", "\ufeff", "\ud800", "é", "漢", "🙂", "\r", "\t", "\\", "\u2028"),
    *("@", "#", "$", "?", "!", "{", "}", "'", '"', "`", "/*", "*/", "//", "--", "==", "!=", "&&", "=>", ":", "::", "~"),
    *("…", "\u2018", "\u201d", "\u2212", "1_000", "0x1F", "1.5.2", "1e999", "99999999999999999999", "9" * 500, "5x"),
)
WORDS = (
    *(
        "from",
        "where",
        "select",
        "join",
        "on",
        "using",
        "group",
        "by",
        "having",
        "limit",
        "order",
        "null",
        "not",
        "and",
    ),
    *(
        "or",
        "case",
        "end",
        "cast",
        "as",
        "view",
        "stream",
        "merge",
        "all",
        "time",
        "in",
        "is",
        "like",
        "between",
        "top",
    ),
    *("|>", ":=", "=", "<>", "<", "..", ".", ",", ";", "(", ")", "[", "]", "+", "-", "*", "/", "%", "||", "0", "1.5"),
    *("1e3", "'x'", '"y"', "5 s", "true", "`q`", "count()", "sum(1)", "x", "''", "time 'tomorrow'", "-1", "distinct"),
)


def mutate(rng: Random, text: str, other: str) -> str:
    """The text with one to three mutations; `other` is a second program to take pieces from."""
    tokens = cut(text)
    kinds = REWORDINGS if rng.random() < 0.7 else ACCIDENTS
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        changed = "".join(rng.choice(kinds)(rng, tokens, cut(other)))
        tokens = cut(changed) or [" "]
    return "".join(tokens)


def _meaningful(tokens: list[str]) -> list[int]:
    return [at for at, token in enumerate(tokens) if not token.isspace()] or [0]


def _at(rng: Random, tokens: list[str], fits: Callable[[str], bool]) -> int | None:
    places = [at for at, token in enumerate(tokens) if fits(token)]
    return rng.choice(places) if places else None


def _is_word(token: str) -> bool:
    return token[0].isalpha() or token[0] in "_`"


def delete(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = rng.choice(_meaningful(tokens))
    return tokens[:at] + tokens[at + rng.choice((1, 1, 1, 2, 5, 20)) :]


def duplicate(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = rng.choice(_meaningful(tokens))
    piece = tokens[at : at + rng.choice((1, 1, 2, 6, 30))]
    return [*tokens[:at], *piece, " ", *tokens[at:]]


def swap(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    places = _meaningful(tokens)
    one, two = rng.choice(places), rng.choice(places)
    if rng.random() < 0.5:
        two = places[min(places.index(one) + 1, len(places) - 1)]
    changed = list(tokens)
    changed[one], changed[two] = changed[two], changed[one]
    return changed


def replace(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = rng.choice(_meaningful(tokens))
    return [*tokens[:at], rng.choice(WORDS), *tokens[at + 1 :]]


def insert(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = rng.choice(_meaningful(tokens))
    return [*tokens[:at], " ", rng.choice(WORDS), " ", *tokens[at:]]


def rename(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    """One occurrence, or all of them, of a name becomes another name of the program or an unknown one."""
    at = _at(rng, tokens, _is_word)
    if at is None:
        return tokens
    others = [token for token in tokens if _is_word(token)]
    new = rng.choice((rng.choice(others), tokens[at] + "s", tokens[at][:-1] or "q", "X.y", "`a.b`", "nobody", "all"))
    if rng.random() < 0.3:
        return [new if token == tokens[at] else token for token in tokens]
    return [*tokens[:at], new, *tokens[at + 1 :]]


def change_literal(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = _at(rng, tokens, lambda token: token[0].isdigit() or token[0] in "'\"")
    if at is None:
        return tokens
    numbers = (
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "1e308",
        "1e400",
        "0.0000000000000000001",
        "12.",
    )
    texts = ("''", "'''", "'%Y'", "'%Q'", "'('", "'\\'", "null", '""', '"tcp://"', "'" + "x" * 300 + "'", "time '0'")
    return [*tokens[:at], rng.choice((*numbers, *texts, "0 s", "999999999999999 d", "5 parsecs")), *tokens[at + 1 :]]


def cut_off(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    """The end or the beginning is missing, perhaps in the middle of a token."""
    text = "".join(tokens)
    at = rng.randrange(len(text) + 1)
    return cut(text[:at] if rng.random() < 0.7 else text[at:])


def garbage(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = rng.randrange(len(tokens) + 1)
    return [*tokens[:at], rng.choice(GARBAGE) * rng.choice((1, 1, 1, 3)), *tokens[at:]]


def splice(rng: Random, tokens: list[str], other: list[str]) -> list[str]:
    """The beginning of this program and the end of another, or the other in the middle of this."""
    at, there = rng.randrange(len(tokens) + 1), rng.randrange(len(other) + 1)
    if rng.random() < 0.5:
        return [*tokens[:at], *other[there:]]
    return [*tokens[:at], *other[there : there + 15], *tokens[at:]]


def unbalance(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = _at(rng, tokens, lambda token: token in "()[]")
    if at is None:
        return [*tokens, rng.choice("()[]")]
    return [*tokens[:at], rng.choice(("", "((", "))", "(", ")", "[", "]", "(" * 80)), *tokens[at + 1 :]]


def reorder_steps(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    """Two neighbouring operators of a pipeline change places."""
    pipes = [at for at, token in enumerate(tokens) if token in ("|>", ";")]
    if len(pipes) < 3:
        return tokens
    which = rng.randrange(len(pipes) - 2)
    one, two, end = pipes[which : which + 3]
    return [*tokens[:one], *tokens[two:end], " ", *tokens[one:two], *tokens[end:]]


def shout(rng: Random, tokens: list[str], _: list[str]) -> list[str]:
    at = rng.choice(_meaningful(tokens))
    return [*tokens[:at], tokens[at].swapcase(), *tokens[at + 1 :]]


ACCIDENTS: tuple[Mutation, ...] = (
    *(delete, duplicate, swap, replace, replace, insert, rename, change_literal),
    *(cut_off, garbage, splice, unbalance, reorder_steps, shout),
)
