"""Numbered cases: what case n is, whether it holds, and how to report it.

A case is its number, so a failure on one machine is found again on another by the same command:

    python -m tests.generator --start 1234 --cases 1
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from random import Random

from tests.generator.mutate import mutate
from tests.generator.program import SIZE, generate
from tests.generator.properties import wrong_with_any, wrong_with_format, wrong_with_program
from tests.generator.shrink import shrink

MUTANTS_PER_PROGRAM = 20


def failure_of_program(seed: int, size: int = SIZE) -> str | None:
    """Generated program `seed` is right, and right after formatting; None, or a report."""
    generated = generate(seed, size)
    wrong = wrong_with_program(generated)
    if wrong is not None:
        # A smaller program has other columns than the generator meant, so only its diagnostics can be looked at again.
        return _report(f"program {seed}", generated.text, wrong, wrong_with_any)
    wrong = wrong_with_format(generated.text)
    if wrong is not None:
        return _report(f"formatting program {seed}", generated.text, wrong, wrong_with_format)
    return None


def failure_of_mutant(seed: int, size: int = SIZE) -> str | None:
    """Mutant `seed` is answered; None, or a report."""
    text = mutant(seed, size)
    wrong = wrong_with_any(text)
    return None if wrong is None else _report(f"mutant {seed}", text, wrong, wrong_with_any)


def mutant(seed: int, size: int = SIZE) -> str:
    number = seed // MUTANTS_PER_PROGRAM
    return mutate(Random(f"mutant {seed}"), _program(number, size), _program(number + 1, size))


@lru_cache(maxsize=8)
def _program(seed: int, size: int) -> str:
    return generate(seed, size).text


def _report(title: str, text: str, wrong: str, property_of: Callable[[str], str | None]) -> str:
    """The text, shrunk as long as the same thing is wrong with it."""
    wanted = _kind(wrong)
    small = text
    if _kind(property_of(text)) == wanted:
        small = shrink(text, lambda smaller: _kind(property_of(smaller)) == wanted)
    return f"{title}: {wrong}\n--- the whole text\n{text}\n--- shrunk\n{small}\n--- as a literal\n{small!r}\n"


def _kind(wrong: str | None) -> str | None:
    """What makes two failures the same: where an exception came from and which one, or how the complaint begins."""
    if wrong is None:
        return None
    lines = wrong.strip().splitlines()
    if lines[0].startswith("Traceback"):
        exception = " ".join(re.findall(r"^\w+|MPL\d{4}", lines[-1]))
        return [line for line in lines if line.startswith("  File ")][-1] + exception
    return lines[0][:20]
