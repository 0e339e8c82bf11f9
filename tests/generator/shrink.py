"""Smaller texts that still fail: statements go first, then steps of pipelines, then ever smaller runs of tokens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tests.generator.tokens import cut

ATTEMPTS_MAX = 2_000
"""A failing text is shrunk for the reader's sake; beyond this many checks it is small enough or hopeless."""


def shrink(text: str, fails: Callable[[str], bool]) -> str:
    """The smallest text found for which `fails` still says True."""
    attempts = 0

    def try_without(tokens: list[str], start: int, end: int) -> list[str] | None:
        nonlocal attempts
        attempts += 1
        rest = [*tokens[:start], *tokens[end:]]
        return rest if fails("".join(rest)) else None

    tokens = cut(text)
    for ends in (";", "|>"):
        tokens = _drop_pieces(tokens, ends, try_without)
    size = max(len(tokens) // 2, 1)
    while attempts < ATTEMPTS_MAX:
        before = len(tokens)
        start = 0
        while start < len(tokens) and attempts < ATTEMPTS_MAX:
            smaller = try_without(tokens, start, start + size)
            if smaller is None:
                start += size
            else:
                tokens = smaller
        if size == 1 and len(tokens) == before:
            break
        size = max(size // 2, 1)
    return "".join(tokens)


def _drop_pieces(
    tokens: list[str], ends: str, try_without: Callable[[list[str], int, int], list[str] | None]
) -> list[str]:
    """Without every piece between two `ends` that is not needed, from the last to the first."""
    borders = [-1, *(at for at, token in enumerate(tokens) if token == ends)]
    for one, two in reversed(list(pairwise(borders))):
        smaller = try_without(tokens, one + 1, two + 1)
        if smaller is not None:
            tokens = smaller
    return tokens
