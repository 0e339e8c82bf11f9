"""Hostile programs: what a user writes can never change the shape of generated code.

Each case puts hostile words, as names and as texts, into the places of a small program, and compiles it beside the same
program with harmless words. The syntax trees must be equal, and the canary, a name that hostile words try to set, must
not exist. By command, for as many cases as wanted:

    python -m tests.compiler.hostile --cases 100000
"""

from __future__ import annotations

import argparse
import ast
import sys
from functools import cache
from random import Random

import smile
from runtime.loops.safety import check_module

CANARY = "canary"
PIECES = [
    *(
        "'",
        '"',
        "'''",
        '"""',
        "\\",
        "\\n",
        "\n",
        "\r",
        "\t",
        "\x0b",
        "\x0c",
        "\x00",
        "\x1f",
        "\x85",
        "\u2028",
        "\u2029",
    ),
    *("{{", "}}", "{%", "%}", "{#", "#}", "{{ module }}", "{% raw %}", "{{ cycler.__init__ }}", "${x}", "%s", "{0}"),
    *(
        "__import__('os')",
        "__class__",
        "__builtins__",
        "eval(",
        "exec(",
        "lambda:",
        "import os",
        "K[0]",
        "F[0](",
        "P[0]",
    ),
    *(
        f"{CANARY} = 1",
        f"\r{CANARY} = 1\r",
        f"\n{CANARY} = 1\n",
        f"); {CANARY} = 1 #",
        f'"""\n{CANARY} = 1\n"""',
        "#",
        "--",
    ),
    *("def f():", "    ", ";", ":", "c0", "v1", "overflow", "return", "é", "\U0001d4b3", "\ud7ff", "\ufeff", "\u202e"),
]
TYPEABLE = [piece for piece in PIECES if piece.isprintable() or piece in ("\u2028", "\u2029")]
"""Without control and invisible characters, most of which the language refuses wherever they stand."""

PROGRAMS = (
    "stream {n0} ({n1} text, {n2} int); view {n3} = from {n0} |> where {n1} = {t0} or contains({n1}, {t1});",
    """
    stream {n0} ({n1} text, {n2} int);
    view {n3} = from {n0}
      |> extend {n4} := concat({n1}, {t0}), {n5} := case when {n1} > {t1} then {t0} else {t1} end;
    """,
    """
    stream {n0} ({n1} enum({t0}, {t1}), {n2} int);
    view {n3} = from {n0} |> where {n1} = {t0}
      |> aggregate {n4} := count() where {n1} <> {t1}, {n5} := sum({n2}) group by {n1};
    """,
    """
    stream {n0} ({n2} int, {n1} text) unique {n2};
    stream {n5} ({n2} int, {n6} text) unique {n2};
    view {n3} = from {n0} |> left join {n5} using {n2} default {n6} := {t0} |> where {n6} <> {t1};
    """,
    """
    stream {n0} ({n2} int, {n1} text) unique {n2};
    stream {n5} ({n2} int, {n6} text) unique {n2};
    view {n3} = from {n0} |> matching {n5} on {n0}.{n2} = {n5}.{n2} and {n6} <> {t0} |> top 3 per {n1} by {n2} desc;
    view {n4} = from {n0} |> where {n1} <> {t1} |> project {n1} |> distinct;
    """,
)
NAMES = 7


def hostile_word(rng: Random, length_max: int = 12) -> str:
    pieces = PIECES if rng.random() < 0.05 else TYPEABLE
    if length_max > 4 and rng.random() < 0.01:
        return rng.choice(pieces) * rng.randint(1, 2_000)
    return "".join(rng.choice(pieces) for _ in range(rng.randint(1, length_max)))


def program(template: str, names: list[str], texts: list[str]) -> str:
    words = {f"n{number}": "`" + name.replace("`", "") + "`" for number, name in enumerate(names)}
    words |= {f"t{number}": "'" + text.replace("'", "''") + "'" for number, text in enumerate(texts)}
    return template.format(**words)


def shapes(text: str) -> list[str] | None:
    """The syntax trees of all modules; None if the language itself refuses the program."""
    try:
        modules = smile.compile(text).modules.values()
    except smile.MplError:
        return None
    trees = [check_module(module) for module in modules]
    assert all(getattr(node, "id", None) != CANARY for tree in trees for node in ast.walk(tree)), text
    return [ast.dump(tree) for tree in trees]


HARMLESS = [f"n{number}" for number in range(NAMES)]


@cache
def expected(template: str) -> tuple[str, ...]:
    found = shapes(program(template, HARMLESS, ["0x", "1y"]))
    assert found, "a harmless program compiles, and has modules"
    return tuple(found)


def run(cases: int, start: int = 0) -> tuple[int, int]:
    """(cases that compiled, cases that the language refused); raises AssertionError for one that changed a tree."""
    compiled = refused = 0
    for case in range(start, start + cases):
        rng = Random(case)
        template = PROGRAMS[case % len(PROGRAMS)]
        names = [f"{hostile_word(rng, 4)}{number}" if rng.random() < 0.3 else f"n{number}" for number in range(NAMES)]
        texts = [f"{number}{hostile_word(rng)}" for number in range(2)]
        found = shapes(program(template, names, texts))
        if found is None:
            refused += 1
        else:
            compiled += 1
            assert tuple(found) == expected(template), f"case {case}"
    return compiled, refused


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    compiled, refused = run(options.cases, options.start)
    print(f"{options.cases} cases: {compiled} compiled with an unchanged tree, {refused} were refused by MPL itself")
    return 0


if __name__ == "__main__":
    sys.exit(main())
