"""Goal: what the checker claims of an expression (type, null, range, direction) is true of every value it gives.

Expressions are generated, rows are drawn from the declared types and ranges of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from mpl.arithmetic import ends_of
from mpl.evaluate import evaluate, is_value_of
from mpl.expressions.walk import children
from mpl.failures import EvaluationError
from mpl.functions import directions
from mpl.scaled import limits_of
from mpl.typed import Apply, ColumnRef, Expr
from mpl.types import (
    BoolType,
    Bounds,
    DecimalType,
    DurationType,
    EnumType,
    FloatType,
    IntType,
    TextType,
    TimeType,
    Type,
    Value,
)
from tests.generator import shapes
from tests.generator.expressions import Expressions
from tests.mpl.written import Written

WORDS = ("", "a", "abc", "web-42", "\u00e9", "2026", "12", "-7.5", "A%b_c")

COLUMNS: tuple[tuple[str, Type, Bounds, bool], ...] = (
    ("i int", IntType(), Bounds(), False),
    ("q int[0..1000]", IntType(), Bounds(0, 1000), False),
    ("m int[-50..] null", IntType(), Bounds(-50, None), True),
    ("d decimal(10,2)", DecimalType(10, 2), Bounds(), False),
    ("e decimal(6,3)[0..5] null", DecimalType(6, 3), Bounds(0, 5000), True),
    ("f float", FloatType(), Bounds(), False),
    ("g float[0..1]", FloatType(), Bounds(0, 1), False),
    ("b bool null", BoolType(), Bounds(), True),
    ("s text", TextType(), Bounds(), False),
    ("w text(5) null", TextType(5), Bounds(), True),
    ("t time", TimeType(), Bounds(), False),
    ("p duration[0 s..]", DurationType(), Bounds(0, None), False),
    ("k enum('x','yy')", EnumType(("x", "yy")), Bounds(), False),
)
DECLARED = ", ".join(declared for declared, *_ in COLUMNS)


def shape_of(type: Type) -> shapes.Shape:
    match type:
        case DecimalType():
            return shapes.Shape("decimal", (type.precision, type.scale))
        case EnumType():
            return shapes.Shape("enum", values=type.values)
        case TextType():
            return shapes.Shape("text", length=type.length_max)
        case _:
            return shapes.Shape(str(type))  # type: ignore[arg-type]


GENERATED = [shapes.Column(declared.split()[0], shape_of(each), null) for declared, each, _, null in COLUMNS]


def some_value(rng: Random, type: Type, bounds: Bounds, nullable: bool) -> Value:
    if nullable and rng.random() < 0.2:
        return None
    match type:
        case BoolType():
            return rng.random() < 0.5
        case TextType():
            return rng.choice(WORDS)[: type.length_max]
        case EnumType():
            return rng.choice(type.values)
        case FloatType():
            low, high = ends_of(bounds)
            return float(rng.choice((0.0, 1.0, 0.145, rng.uniform(max(low, -1e6), min(high, 1e6)))))
        case _:
            limits = limits_of(type)
            assert limits is not None
            low_end = limits[0] if bounds.low is None else int(bounds.low)
            high_end = limits[1] if bounds.high is None else int(bounds.high)
            near = max(low_end, min(high_end, rng.randint(-20, 2000)))
            return rng.choice((near, near, near, low_end, high_end, rng.randint(low_end, high_end)))


def some_row(rng: Random) -> list[Value]:
    return [some_value(rng, each, bounds, nullable) for _, each, bounds, nullable in COLUMNS]


def generated(rng: Random, count: int) -> Iterator[Expr]:
    """Expressions that the checker accepts; few are refused because constants in them fail."""
    writer = Expressions(rng, GENERATED)
    accepted = 0
    for _ in range(count):
        checked = Written(writer.any_value(rng.randint(1, 4)).text, DECLARED)
        if checked.codes == ["MPL0315"]:
            continue
        yield checked.typed
        accepted += 1
    assert accepted > 0.9 * count


def test_values_are_what_the_checker_says(cases: int) -> None:
    rng = Random(2)
    values = 0
    for expr in generated(rng, 1_000 * cases):
        for _ in range(6):
            try:
                value = evaluate(expr, some_row(rng))
            except EvaluationError:
                continue
            assert_claims(expr, value)
            values += 1
    assert values > 3_000 * cases, "most expressions have values"


def assert_claims(expr: Expr, value: Value) -> None:
    if value is None:
        assert expr.nullable, expr.span.text
        return
    assert is_value_of(value, expr.type), (expr.span.text, expr.type, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = ends_of(expr.bounds)
        assert low <= value <= high, (expr.span.text, expr.bounds, value)


def test_directions_are_true(cases: int) -> None:
    rng = Random(3)
    compared = 0
    for expr in generated(rng, 1_000 * cases):
        waiting = [expr]
        while waiting:
            part = waiting.pop()
            waiting.extend(children(part))
            if isinstance(part, Apply):
                compared += sum(compare_direction(rng, part, position) for position in range(len(part.arguments)))
    assert compared > 100 * cases


def compare_direction(rng: Random, expr: Apply, position: int) -> bool:
    """Moves one argument that is a column, and looks which way the value goes; False if there was nothing to see."""
    argument, direction = expr.arguments[position], directions(expr)[position]
    if direction is None or not isinstance(argument, ColumnRef):
        return False
    if any(mentions(other, argument.index) for at, other in enumerate(expr.arguments) if at != position):
        return False
    row = some_row(rng)
    ends = [some_value(rng, *COLUMNS[argument.index][1:]) for _ in range(2)]
    if None in ends:
        return False
    results = []
    for end in sorted(ends):  # type: ignore[type-var]
        row[argument.index] = end
        try:
            results.append(evaluate(expr, row))
        except EvaluationError:
            return False
    if None in results:
        return False
    smaller, larger = results if direction == "up" else reversed(results)
    assert smaller <= larger, (expr.span.text, position, direction, row, ends)  # type: ignore[operator]
    return True


def mentions(expr: Expr, index: int) -> bool:
    if isinstance(expr, ColumnRef):
        return expr.index == index
    return any(mentions(part, index) for part in children(expr))
