"""Aggregates of a group-by: which runtime aggregate, over which generated functions, in which physical columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compiler.codegen.module import Function
from compiler.plan.functions import Functions
from compiler.plan.layout import Shape, column_kind, unit_of, value_type
from mpl.knowledge import Kind, Knowledge
from mpl.typed import AggregateItem, AggregateNode, Column, Schema
from mpl.types import Bounds, Type
from runtime import plan
from runtime.operators.aggregate import AggregateSpec
from runtime.operators.count_distinct import OfDistinctSpec
from runtime.operators.extremes import AllSpec, AnySpec, MaxSpec, MinSpec
from runtime.operators.totals import AverageSpec, CountSpec, SignedSumSpec, SumSpec
from runtime.operators.witness import WitnessSpec
from runtime.plan import ColumnKind

MakeSpec = Callable[[Mapping[str, Function]], AggregateSpec]


@dataclass(frozen=True)
class PlannedAggregate:
    """`make` gives the runtime's aggregate once the functions are loaded. `sum_type`: of an average's sum."""

    shape: Shape
    make: MakeSpec
    sum_type: Type | None = None


def plan_aggregates(
    node: AggregateNode,
    schema: Schema,
    knowledge: Knowledge,
    functions: Functions,
    must_be_plain: frozenset[int],
    order: tuple[int, ...],
) -> list[PlannedAggregate]:
    """`order`: physical columns by which `first` and `last` go."""
    start = len(node.group)
    return [
        _plan_one(item, schema.columns[position], knowledge, position, functions, position in must_be_plain, order)
        for position, item in enumerate(node.items, start=start)
    ]


def _plan_one(
    item: AggregateItem,
    column: Column,
    knowledge: Knowledge,
    position: int,
    functions: Functions,
    must_be_plain: bool,
    order: tuple[int, ...],
) -> PlannedAggregate:
    argument = functions.value(item.argument) if item.argument is not None else None
    where = functions.condition(item.where) if item.where is not None else None
    kind = column_kind(knowledge, position)

    def made(cls: Callable[..., AggregateSpec]) -> MakeSpec:
        def make(loaded: Mapping[str, Function]) -> AggregateSpec:
            one = cls(loaded[argument] if argument is not None else None, loaded[where] if where is not None else None)
            return OfDistinctSpec(one) if item.distinct else one

        return make

    def plain(contribution_max: int | None = None) -> Shape:
        unit = unit_of(column.type)
        part = plan.Column(column.name, value_type(column.type), kind, column.nullable, contribution_max, unit)
        return Shape("plain", (part,))

    match item.function:
        case "count":
            return PlannedAggregate(plain(1), made(CountSpec))
        case "sum":
            bounds = item.argument.bounds if item.argument is not None else Bounds()
            if knowledge.columns[position].kind is Kind.PN and not must_be_plain:
                return PlannedAggregate(_signed(column, bounds), made(SignedSumSpec))
            return PlannedAggregate(plain(_whole(bounds.high)), made(SumSpec))
        case "avg":
            assert item.argument is not None
            return PlannedAggregate(_average(column, kind), made(AverageSpec), item.argument.type)
        case "min":
            return PlannedAggregate(plain(), made(MinSpec))
        case "max":
            return PlannedAggregate(plain(), made(MaxSpec))
        case "any":
            return PlannedAggregate(plain(), made(AnySpec))
        case "all":
            return PlannedAggregate(plain(), made(AllSpec))
        case "first" | "last":
            last = item.function == "last"
            return PlannedAggregate(plain(), made(lambda value, where: WitnessSpec(value, where, order, last)))


def is_ordered(node: AggregateNode) -> bool:
    """Does any aggregate ask in which order the rows come?"""
    return any(item.function in ("first", "last") for item in node.items)


def _whole(bound: int | float | None) -> int | None:
    return bound if isinstance(bound, int) and bound >= 0 else None


def _signed(column: Column, bounds: Bounds) -> Shape:
    high, low = bounds.high, bounds.low
    most = high if isinstance(high, int) and high > 0 else None
    least = -low if isinstance(low, int) and low < 0 else None
    kind, unit = value_type(column.type), unit_of(column.type)
    return Shape(
        "difference",
        (
            plan.Column(f"{column.name}+", kind, ColumnKind.UP, contribution_max=most, unit=unit),
            plan.Column(f"{column.name}-", kind, ColumnKind.UP, contribution_max=least, unit=unit),
        ),
    )


def _average(column: Column, kind: ColumnKind) -> Shape:
    values = value_type(column.type)
    return Shape(
        "average",
        (
            plan.Column(f"{column.name} sum", values, kind, nullable=False),
            plan.Column(f"{column.name} count", plan.ValueType.INT, kind),
        ),
    )
