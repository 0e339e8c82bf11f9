"""Random events and table rows for a program: small domains, so that keys meet, groups fill and conditions turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from compiler.expressions import parts_of
from mpl.evaluate import PythonFunctions
from mpl.knowledge import operators_of
from mpl.typed import (
    AggregateNode,
    Column,
    Expr,
    ExtendNode,
    JoinNode,
    MatchingNode,
    PythonCall,
    RelationTree,
    Schema,
    TopNode,
    TypedProgram,
    WhereNode,
)
from mpl.types import (
    BoolType,
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
from tests.reference.relations import Row

SECOND = 1_000_000
START = 1_767_225_600 * SECOND
"""2026-01-01: times of events are spread over the 40 seconds that follow."""


def random_events(program: TypedProgram, rng: Random, count: int) -> dict[str, list[Row]]:
    """About `count` events in all; ticks are unique in the whole system."""
    events: dict[str, list[Row]] = {name: [] for name in program.streams}
    taken: dict[str, set[Row]] = {name: set() for name in program.streams}
    names = list(program.streams)
    tick = rng.randint(0, 3)
    for _ in range(count):
        name = rng.choice(names)
        stream = program.streams[name]
        row = tuple(random_value(column, rng) for column in stream.schema.columns[:-1])
        if stream.defaults and rng.random() < 0.5:
            row = tuple(dict(stream.defaults).get(position, value) for position, value in enumerate(row))
        tick += rng.randint(1, 4)
        keys = {(*positions, *(row[position] for position in positions)) for positions in stream.unique}
        if not keys & taken[name]:
            taken[name] |= keys
            events[name].append((*row, tick))
    return events


def random_tables(program: TypedProgram, rng: Random, count: int) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for name, table in program.tables.items():
        rows: dict[Row, Row] = {}
        for _ in range(count):
            row = tuple(random_value(column, rng) for column in table.schema.columns)
            rows.setdefault(_key(table.schema, row), row)
        tables[name] = list(rows.values())
    return tables


def _key(schema: Schema, row: Row) -> Row:
    return tuple(row[position] for position in schema.key)


def random_value(column: Column, rng: Random) -> Value:
    if column.nullable and rng.random() < 0.25:
        return None
    value = _of_type(column.type, rng)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if column.bounds.low is not None:
            value = max(value, column.bounds.low)
        if column.bounds.high is not None:
            value = min(value, column.bounds.high)
    return value


def _of_type(type: Type, rng: Random) -> Value:
    match type:
        case IntType():
            return rng.choice((0, 1, 1, 2, 2, 3, 5, 8, -1, 60, 100))
        case DecimalType():
            unit = 10**type.scale
            limit = 10**type.precision - 1
            wanted = rng.choice((0, 1, unit, unit, 2 * unit, 3 * unit // 2, -unit, 12 * unit))
            return int(max(-limit, min(limit, wanted)))
        case FloatType():
            return rng.choice((0.0, 0.5, 1.0, 1.0, 2.0, -1.5, 1e3))
        case BoolType():
            return rng.random() < 0.5
        case TextType():
            text = rng.choice(("a", "a", "b", "ab", "A", "", "x y", "10", "naïve", "2026-01-01"))
            return text if type.length_max is None else text[: type.length_max]
        case EnumType():
            return rng.choice(type.values)
        case TimeType():
            return START + rng.randint(0, 80) * SECOND // 2
        case DurationType():
            return rng.choice((0, 1, SECOND, 30 * SECOND, 60 * SECOND))
        case _:
            raise AssertionError(type)


# --- Python functions -------------------------------------------------------------------------------------------------


def python_stand_ins(program: TypedProgram) -> PythonFunctions:
    """For every Python function that the program calls, one that gives some value of the declared type."""
    return {
        (call.module, call.function): _constant_of(call.type)
        for view in program.views.values()
        for node in operators_of(view.relation)
        for expr in _expressions(node)
        for call in parts_of(expr)
        if isinstance(call, PythonCall)
    }


def _constant_of(type: Type) -> Callable[..., Value]:
    value = _of_type(type, Random(str(type)))
    return lambda *_: value


def _expressions(node: RelationTree) -> Iterator[Expr]:
    match node:
        case WhereNode():
            yield node.predicate
        case ExtendNode():
            yield from node.values
        case TopNode():
            yield from (key.value for key in node.ordering)
        case AggregateNode():
            for item in node.items:
                yield from (part for part in (item.argument, item.where) if part is not None)
        case JoinNode() | MatchingNode() if node.rest is not None:
            yield node.rest
        case _:
            pass
