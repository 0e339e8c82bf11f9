"""Generated scalar code computes what the reference evaluator computes, and fails where it fails.

Expressions come from random programs, rows from random values with many borders among them. Also: nothing that a user
wrote can change the shape of the generated syntax tree.
"""

import ast
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from compiler.codegen.comments import comment_text
from compiler.codegen.module import Module
from compiler.graph.build import build_graph
from mpl.check import check
from mpl.evaluate import evaluate
from mpl.failures import EvaluationError
from mpl.source import Source
from mpl.typed import (
    AggregateNode,
    Column,
    Expr,
    ExtendNode,
    JoinNode,
    MatchingNode,
    RelationTree,
    TopNode,
    WhereNode,
    inputs_of,
)
from mpl.types import Value
from runtime.loops.code import Code, row_function
from runtime.loops.safety import UnsafeCode, check_module
from tests.compiler import hostile
from tests.generator.program import generate
from tests.reference.data import random_value

PROGRAMS = 60
ROWS = 25


def expressions_of(node: RelationTree) -> Iterator[Expr]:
    match node:
        case WhereNode():
            yield node.predicate
        case ExtendNode():
            yield from node.values
        case AggregateNode():
            for item in node.items:
                yield from (part for part in (item.argument, item.where) if part is not None)
        case JoinNode() | MatchingNode():
            if node.rest is not None:
                yield node.rest
        case TopNode():
            yield from (key.value for key in node.ordering)
        case _:
            pass


def outcome(compute: object, *arguments: object) -> tuple[str, object]:
    """A value with its type, or the failure's code."""
    try:
        value = compute(*arguments)  # type: ignore[operator]
    except EvaluationError as failure:
        return "fails", failure.code
    return type(value).__name__, value


def code_of(module: Module, name: str, width: int) -> Code:
    scalar = module.load()[name]
    return row_function(scalar.inline, width, scalar.tables)


def compare(expr: Expr, columns: tuple[Column, ...], rng: Random) -> None:
    module = Module("test", "test", "test.mpl:1")
    names = {position: f"c{position}" for position in range(len(columns))}
    code = code_of(module, module.add("value", expr, names), len(columns))
    function = code.load()["compute"]
    for _ in range(ROWS):
        row: list[Value] = [random_value(column, rng) for column in columns]
        assert outcome(function, *row) == outcome(evaluate, expr, row), f"{expr}\n{row}\n{code.text}"


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_generated_code_means_what_the_evaluator_says(seed: int, cases: int) -> None:
    for repeat in range(cases):
        text = generate(seed + PROGRAMS * repeat).text
        graph = build_graph(check(Source("random.mpl", text)))
        rng = Random(seed)
        for transform in graph.nodes.values():
            columns = tuple(column for part in inputs_of(transform.node) for column in part.schema.columns)
            for expr in expressions_of(transform.node):
                compare(expr, columns, rng)


LOGIC = ["a and b", "a or b", "a and b and c", "a or b or c", "not a or b and c", "(a or b) and not (b and c)"]


@pytest.mark.parametrize("text", LOGIC)
def test_logic_has_three_values(text: str) -> None:
    """Every combination of true, false and null, of which random rows meet too few."""
    source = f"stream S (a bool null, b bool null, c bool null); view V = from S |> extend v := {text};"
    (transform,) = build_graph(check(Source("logic.mpl", source))).nodes.values()
    (expr,) = expressions_of(transform.node)
    module = Module("V", "extend", "logic.mpl:1")
    name = module.add("value", expr, {0: "c0", 1: "c1", 2: "c2", 3: "c3"})
    function = code_of(module, name, 4).load()["compute"]
    for row in product((True, False, None), repeat=3):
        assert function(*row, 0) is evaluate(expr, [*row, 0]), (text, row)


HOSTILE = [
    '\'"""\n    import os',
    "'); __import__('os').system('x') #",
    "{{ module }}{% for x in y %}",
    "\r\n\x0b\x0c\u2028\u2029",
    "__class__",
    "K[0]",
    "\\",
    "x" * 2**20,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_user_text_never_changes_the_tree(text: str) -> None:
    """The same program with a harmless and a hostile literal gives the same tree."""
    shapes = [shape_of(literal) for literal in ("harmless", text)]
    assert shapes[0] == shapes[1]


def shape_of(literal: str) -> str:
    quoted = "'" + literal.replace("'", "''") + "'"
    source = "stream S (a text); view V = from S |> where a = " + quoted + " or contains(a, " + quoted + ");"
    checked = check(Source("hostile.mpl", source))
    if not checked.ok:
        # A literal that the language itself refuses (control characters, too long) never gets here.
        return shape_of("harmless")
    (transform,) = build_graph(checked).nodes.values()
    assert isinstance(transform.node, WhereNode)
    module = Module("V", "where", "hostile.mpl:1")
    name = module.add("predicate", transform.node.predicate, {0: "c0", 1: "c1"}, is_condition=True)
    return ast.dump(check_module(code_of(module, name, 2).text))


@pytest.mark.parametrize("part", range(2))
def test_hostile_programs_never_change_the_tree(part: int, cases: int) -> None:
    """A slice of what `python -m tests.compiler.hostile` runs by the hundred thousand."""
    compiled, refused = hostile.run(250 * cases, start=250 * cases * part)
    assert compiled > 100
    assert refused > 0


def test_a_name_cannot_end_its_comment() -> None:
    for name in ("V\rcanary = 1", "evil\n\u2028canary = 1.mpl:1", "x" * 1_000):
        text = comment_text(name)
        assert text.isascii()
        assert text.isprintable()
        assert len(text) < 100


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "x = c0.real",
        "x = [a for a in c0]",
        "x = lambda: 1",
        "def f():\n    return open('x')",
        "x = __builtins__",
        "x = K[0](1)",
        "x = F[v1](1)",
        "x = 1.5",
        "try:\n    pass\nexcept overflow:\n    pass",
    ],
)
def test_other_shapes_are_refused(text: str) -> None:
    with pytest.raises(UnsafeCode):
        check_module(text)
