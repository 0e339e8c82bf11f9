"""From descriptors to the engine's plan: relations, operator parameters, callables for predicates and scalars.

`world.py` calls `build_plan` at the start and after every plan change, and `bulk_checkpoint` when a component must
start from state computed outside (rule C6). The callables made here are the engine's; the oracle has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.batch import Batch
from runtime.operators.aggregate import AggregateSpec
from runtime.operators.copy import CopySpec
from runtime.operators.count_distinct import CountDistinctSpec
from runtime.operators.distinct import DistinctSpec
from runtime.operators.extend import ExtendSpec
from runtime.operators.extremes import MaxSpec, MinSpec
from runtime.operators.group_by import GroupBySpec
from runtime.operators.join import JoinSpec
from runtime.operators.latest import LatestSpec
from runtime.operators.match import MatchSpec
from runtime.operators.merge import MergeSpec
from runtime.operators.operator import EventOperator
from runtime.operators.ordering import Order
from runtime.operators.project import ProjectSpec
from runtime.operators.select import SelectSpec
from runtime.operators.top import TopSpec
from runtime.operators.totals import AverageSpec, CountSpec, SignedSumSpec, SumSpec
from runtime.operators.union import UnionAllSpec
from runtime.plan import (
    Column,
    ColumnKind,
    Component,
    Emit,
    Finality,
    InEdge,
    Mode,
    OperatorSpec,
    Plan,
    Relation,
    ShownColumn,
    StreamSpec,
)
from runtime.protocol.checkpoint import Checkpoint, bulk_install
from runtime.protocol.held_events import HeldEvents
from runtime.simulation.decisions import Settings
from runtime.simulation.descriptor import (
    QUANTITY_MAX,
    Aggregate,
    Distinct,
    Extend,
    Graph,
    Group,
    Join,
    Latest,
    Leaf,
    Match,
    Merge,
    Node,
    Predicate,
    Project,
    Scalar,
    Select,
    Stream,
    Top,
    Union,
)
from runtime.simulation.kinds import PAIRS, Kinds, kinds_of
from runtime.simulation.oracle import Oracle

MODULUS = 16
TICKS_PER_US = 1

COLUMN_KINDS = {
    "final": ColumnKind.FINAL,
    "rising": ColumnKind.UP,
    "falling": ColumnKind.DOWN,
    "dominated": ColumnKind.DOM,
    "provisional": ColumnKind.VERSIONED,
    "versioned": ColumnKind.VERSIONED,
}


def edge_name(sender: str, receiver: str, index: int) -> str:
    """Unique in the graph: one sender may feed a receiver twice."""
    return f"{sender}>{receiver}.{index}"


def contributions_of(graph: Graph, kinds: dict[str, Kinds]) -> dict[str, dict[str, int]]:
    """The most that one event can add to a column, where that is known: what bounds are computed from."""
    found: dict[str, dict[str, int]] = {}
    for node in graph.nodes:
        found[node.name] = {}
        match node.operator:
            case Group(_, aggregates) if kinds[node.inputs[0]].is_event:
                for aggregate in aggregates:
                    if aggregate.function == "count" or (aggregate.function, aggregate.column) == ("sum", "v"):
                        found[node.name][aggregate.name] = 1 if aggregate.function == "count" else QUANTITY_MAX
            case Leaf() | Select() | Project():
                found[node.name] = found[node.inputs[0]]
            case _:
                pass
    return found


def relation_of(node: Node, kinds: Kinds, contributions: dict[str, int]) -> Relation:
    """The engine's relation: pairs are two rising columns, shown as one."""
    columns = [Column(name) for name in kinds.keys]
    shown = [ShownColumn(name, "plain", (i,)) for i, name in enumerate(kinds.keys)]
    for name, kind in zip(kinds.columns, kinds.kinds, strict=True):
        at = len(columns)
        if kind in PAIRS:
            column_kind = ColumnKind.VERSIONED if kind == "versioned_pair" else ColumnKind.UP
            columns += [Column(f"{name}_1", kind=column_kind), Column(f"{name}_2", kind=column_kind)]
            form = {"updown": "difference", "average": "average", "versioned_pair": "plain"}[kind]
            shown.append(ShownColumn(name, form, (at, at + 1) if form != "plain" else (at,)))
        else:
            most = contributions.get(name) if kind == "rising" else None
            columns.append(Column(name, kind=COLUMN_KINDS[kind], contribution_max=most))
            shown.append(ShownColumn(name, "plain", (at,)))
    return Relation(
        node.name,
        tuple(columns),
        len(kinds.keys),
        is_event=kinds.is_event,
        versioned=kinds.versioned,
        finality=finality_of(kinds),
        shown=tuple(shown) if len(shown) < len(columns) else (),
    )


def finality_of(kinds: Kinds) -> Finality:
    """When a visible row can no longer change."""
    if kinds.rows != "stays":
        return Finality.NEVER
    if all(kind == "final" for kind in kinds.kinds):
        return Finality.VISIBLE
    if "falling" in kinds.kinds and all(kind in ("final", "falling", "dominated") for kind in kinds.kinds):
        return Finality.HORIZON if "dominated" in kinds.kinds else Finality.NEVER
    return Finality.NEVER


class Layout:
    """Where the columns of a descriptor are in the engine's row."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._at: dict[str, int] = {}
        at = 0
        for name, kind in [*((name, "final") for name in kinds.keys), *zip(kinds.columns, kinds.kinds, strict=True)]:
            self._at[name] = at
            at += 2 if kind in PAIRS else 1
        self.width = at

    def at(self, column: object) -> int:
        """The first position of a column."""
        assert isinstance(column, str)
        return self._at[column]

    def positions(self, column: str) -> tuple[int, ...]:
        """All positions of a column."""
        at = self._at[column]
        return (at, at + 1) if self.kinds.of(column) in PAIRS else (at,)

    def all_positions(self, columns: Sequence[str]) -> tuple[int, ...]:
        """The positions of several columns, one after the other."""
        return tuple(at for column in columns for at in self.positions(column))

    def number(self, column: object) -> Callable[..., Any]:
        """A function of the whole row that gives a column as a reader sees it."""
        assert isinstance(column, str)
        at = self._at[column]
        if self.kinds.of(column) == "updown":
            return lambda *row: row[at] - row[at + 1]
        return lambda *row: row[at]


def compile_predicate(predicate: Predicate, layout: Layout) -> Callable[..., bool]:
    """A predicate as the engine wants it: called with all columns of the row."""
    comparison, column, other = predicate
    number = layout.number(column)
    if comparison == "exceeds":
        second = layout.number(other)
        return lambda *row: number(*row) > second(*row)
    operators: dict[object, Callable[[Any, Any], bool]] = {
        "less": lambda a, b: a < b,
        "at_least": lambda a, b: a >= b,
        "equal": lambda a, b: a == b,
    }
    compare = operators[comparison]
    return lambda *row: compare(number(*row), other)


def compile_scalar(scalar: Scalar, layout: Layout) -> Callable[..., int]:
    """A plain scalar as the engine wants it."""
    match scalar:
        case ("column", column):
            return layout.number(column)
        case ("constant", int(constant)):
            return lambda *_: constant
        case (kind, tuple(first), tuple(second)):
            a, b = compile_scalar(first, layout), compile_scalar(second, layout)
            if kind == "plus":
                return lambda *row: a(*row) + b(*row)
            if kind == "minus":
                return lambda *row: a(*row) - b(*row)
            return lambda *row: a(*row) * b(*row)
        case _:
            raise AssertionError(scalar)


def build_plan(graph: Graph, settings: Settings) -> Plan:
    """The engine's plan of a whole graph."""
    kinds = kinds_of(graph)
    most = contributions_of(graph, kinds)
    relations = {node.name: relation_of(node, kinds[node.name], most[node.name]) for node in graph.nodes}
    components = []
    for node in graph.nodes:
        edges = []
        for index, source in enumerate(node.inputs):
            name = edge_name(source, node.name, index)
            mode = Mode.PUSH if name in settings.push_edges else Mode.PULL
            edges.append(InEdge(name, source, mode, wanted_of(node, kinds)))
        components.append(
            Component(
                node.name,
                relations[node.name],
                CopySpec(settings.columnar) if isinstance(node.operator, Leaf) else operator_spec(node, graph, kinds),
                tuple(edges),
                emit=settings.emits.get(node.name, Emit.CHANGES) if isinstance(node.operator, Leaf) else None,
                tuning=settings.tuning,
            )
        )
    return Plan(tuple(components))


def wanted_of(node: Node, kinds: dict[str, Kinds]) -> Callable[..., bool] | None:
    """E4: a selection of events wants what it selects."""
    if isinstance(node.operator, Select) and kinds[node.name].is_event:
        return compile_predicate(node.operator.predicate, Layout(kinds[node.inputs[0]]))
    return None


def operator_spec(node: Node, graph: Graph, kinds: dict[str, Kinds]) -> OperatorSpec:
    """The parameters of one operator, as its file in `runtime/operators` wants them."""
    match node.operator:
        case Stream():
            return StreamSpec(graph.streams.index(node.name), MODULUS, TICKS_PER_US)
        case Merge():
            return MergeSpec()
        case _:
            layouts = [Layout(kinds[source]) for source in node.inputs]
            return _derived_spec(node, layouts, [kinds[source] for source in node.inputs], kinds[node.name])


def _derived_spec(node: Node, layouts: list[Layout], inputs: list[Kinds], output: Kinds) -> OperatorSpec:
    layout, source = layouts[0], inputs[0]
    match node.operator:
        case Select(predicate):
            falls = source.rows == "stays" and output.rows == "leaves"
            return SelectSpec(compile_predicate(predicate, layout), only_falls=falls)
        case Project(columns):
            return ProjectSpec(layout.all_positions((*source.keys, *columns)))
        case Distinct(columns):
            return DistinctSpec(layout.all_positions(columns))
        case Extend(_, ("difference", minuend, subtrahend)) if output.kinds[-1] == "updown":
            return ExtendSpec((layout.number(minuend), layout.number(subtrahend)))
        case Extend(_, scalar):
            return ExtendSpec((compile_scalar(scalar, layout),))
        case Group(by, aggregates):
            return GroupBySpec(layout.all_positions(by), tuple(_aggregate_spec(a, layout) for a in aggregates))
        case Latest(by, first):
            return LatestSpec(layout.all_positions((*by, *output.columns)), first=first)
        case Union():
            return UnionAllSpec()
        case Join(on, outer, defaults):
            matched = [there for _, there in on]
            right = inputs[1]
            keys = layout.all_positions(source.keys) + _shifted(layouts, [c for c in right.keys if c not in matched])
            rest = _shifted(layouts, [c for c in right.columns if c not in matched])
            default = (*([0] * len(right.keys)), *defaults) if outer else None
            return JoinSpec(_on(on, layouts), (*keys, *layout.all_positions(source.columns), *rest), None, default)
        case Match(on, negated):
            return MatchSpec(_on(on, layouts), negated)
        case Top(limit, order, group):
            return TopSpec(limit, (Order(layout.at(order), descending=True),), layout.all_positions(group))
        case _:
            raise AssertionError(node.operator)


def _on(on: tuple[tuple[str, str], ...], layouts: list[Layout]) -> tuple[tuple[int, int], ...]:
    return tuple((layouts[0].at(here), layouts[1].at(there)) for here, there in on)


def _shifted(layouts: list[Layout], columns: list[str]) -> tuple[int, ...]:
    """Positions of right columns in a row that has the left columns first."""
    return tuple(layouts[0].width + at for at in layouts[1].all_positions(tuple(columns)))


def _aggregate_spec(aggregate: Aggregate, layout: Layout) -> AggregateSpec:
    if aggregate.function == "count":
        return CountSpec()
    specs: dict[str, Callable[[Callable[..., Any]], AggregateSpec]] = {
        "sum": SumSpec,
        "signed_sum": SignedSumSpec,
        "avg": AverageSpec,
        "min": MinSpec,
        "max": MaxSpec,
        "count_distinct": CountDistinctSpec,
    }
    return specs[aggregate.function](layout.number(aggregate.column))


def bulk_checkpoint(plan: Plan, oracle: Oracle, name: str, horizon: int) -> Checkpoint:
    """Rows and input state of all ticks up to a horizon, as a job outside would compute them (C6)."""
    component = plan.by_name[name]
    node = oracle.graph.by_name[name]
    counts = tuple(len(plan.lineages[edge.sender]) for edge in component.in_edges)
    inputs = tuple(plan.by_name[edge.sender].relation for edge in component.in_edges)
    operator = component.operator.build(inputs, component.relation)
    batches = [_input_batch(plan, oracle, source, horizon) for source in node.inputs]
    if isinstance(operator, EventOperator):
        lineages = len(plan.lineages[name])
        held = HeldEvents(lineages, component.relation.width)
        offset = 0
        for edge, batch in enumerate(batches):
            held.add(operator.map(edge, batch).with_lineages_from(offset))
            offset += counts[edge]
        return bulk_install(name, counts, horizon, {"held": held.export(), "trimmed_tick": -1})
    for edge, batch in enumerate(batches):
        operator.take(edge, batch)
    return bulk_install(name, counts, horizon, operator.export())


def _input_batch(plan: Plan, oracle: Oracle, source: str, horizon: int) -> Batch:
    relation = plan.by_name[source].relation
    rows = sorted(oracle.flat(source, oracle.up_to(source, horizon)))
    if not relation.is_event:
        return Batch.of_rows(relation.width, rows, [horizon] * len(rows), [True] * len(rows))
    ticks = [row[0] for row in rows]
    streams = plan.lineages[source]
    owner = {tick: streams.index(stream) for stream in streams for tick in oracle.ticks[stream]}
    columns = [[row[c] for row in rows] for c in range(1, relation.width)]
    return Batch.events(ticks, columns, [owner[tick] for tick in ticks])
