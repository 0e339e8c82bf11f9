"""The state of one component as a bulk program: Spark folds the history into what the operator remembers of it.

Made from the optimised graph and the plan, because the state must be that of the deployed operator, column by column.
Each program returns a list of frames; `StateProgram.results` says what each of them is:

- `EventRows`: events for an in-edge, few enough where few decide: the best of each group for `latest` and `top`, one of
  each kind for a set. The operator itself makes its state of them.
- `GroupTotals`: one row for each group of events, with the aggregates as they are kept.
- `PartStates`: one row for each key, with the state of one part of a kernel; the kernel's settling loop does the rest.

In-edges from relations of state have no frame: their rows are made by the operators before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler.bulk.accumulators import looked_at, totals
from compiler.bulk.program import Bulk, ProgramWriter, load_bulk
from compiler.graph import TransformGraph
from compiler.kernels.model import Part
from compiler.kernels.module import settling_text
from compiler.kernels.star import recognise
from compiler.plan.build import ProgramPlan
from compiler.plan.layout import Layout
from mpl.typed import AggregateNode, ColumnRef, TopNode
from mpl.types import Value
from runtime.kernels.spec import KernelSpec
from runtime.operators.distinct import DistinctSpec
from runtime.operators.group_by import GroupBySpec
from runtime.operators.latest import LatestSpec
from runtime.operators.match import MatchSpec
from runtime.operators.ordering import Order
from runtime.operators.top import TopSpec
from runtime.plan import Component, OperatorSpec, Relation

TICK = 'F.col("tick")'


@dataclass(frozen=True)
class EventRows:
    """Columns c0, c1, ... are those of the sender's relation."""

    edge: int


@dataclass(frozen=True)
class GroupTotals:
    """Columns c0, c1, ...: the key; then of each aggregate its columns, or one list."""


@dataclass(frozen=True)
class PartStates:
    """Columns c0, c1, ...: the key, then the state columns with these numbers."""

    part: int
    states: tuple[int, ...]


Result = EventRows | GroupTotals | PartStates


@dataclass(frozen=True)
class StateProgram:
    """`settling`: of a kernel, the module that computes rows from its state."""

    component: str
    sources: tuple[str, ...]
    text: str
    constants: tuple[Value, ...]
    results: tuple[Result, ...]
    settling: str | None = None

    def load(self) -> Bulk:
        return load_bulk(self.text, self.component)


def state_program(graph: TransformGraph, plan: ProgramPlan, name: str) -> StateProgram:
    """`NotInBulk` if Spark cannot compute it the same way."""
    return _StateWriter(graph, plan, plan.components[name]).write()


class _StateWriter:
    def __init__(self, graph: TransformGraph, plan: ProgramPlan, component: Component) -> None:
        self.graph = graph
        self.plan = plan
        self.component = component
        self.out = ProgramWriter(graph)
        self.senders = tuple(plan.components[edge.sender] for edge in component.in_edges)
        self.inputs = tuple(sender.relation for sender in self.senders)

    def write(self) -> StateProgram:
        spec, settling = self.component.operator, None
        if isinstance(spec, KernelSpec):
            frames, settling = self._kernel(spec)
        elif isinstance(spec, GroupBySpec) and self._is_of_events(0):
            frames = [(GroupTotals(), self._groups(spec))]
        else:
            frames = [
                (EventRows(edge), self._events(spec, edge))
                for edge, relation in enumerate(self.inputs)
                if relation.is_event
            ]
        name = self.component.name
        result = f"[{', '.join(frame for _, frame in frames)}]"
        text = self.out.text(self.plan.parts[name].module.origin, f"the state of {name}", result)
        return StateProgram(
            name,
            self.out.sources,
            text,
            tuple(self.out.constants.values),
            tuple(result for result, _ in frames),
            settling,
        )

    def _is_of_events(self, edge: int) -> bool:
        """Not a table: the ticks of its rows have no column."""
        return self.inputs[edge].is_event and self.senders[edge].name not in self.plan.tables

    # Events

    def _events(self, spec: OperatorSpec, edge: int) -> str:
        frame = self.out.step("events", self._physical(self.senders[edge].name))
        calls = deciding(spec, edge, self.component.relation)
        kept = ", ".join(f'"c{number}"' for number in range(self.inputs[edge].width))
        return self.out.step("those that decide", [frame, *calls, f".select({kept})"]) if calls else frame

    def _physical(self, sender: str) -> list[str]:
        """The events of a component, with its own columns."""
        base = {**self.plan.streams, **self.plan.tables}.get(sender)
        if base is not None:
            return [self.out.relation(sender), _laid_out(base.side.layout)]
        if sender in self.graph.nodes:
            return [self.out.relation(sender), _laid_out(self.plan.parts[sender].layout)]
        # What a `top` orders by is computed in a step of its own, which is no transform.
        transform = self.graph.nodes[sender.removesuffix(".ordered")]
        node = transform.node
        assert isinstance(node, TopNode), f"{sender}: no relation of events has such a name"
        layout = self.plan.parts[sender].layout
        places = [f'F.col("c{position}")' for position in _positions(layout)]
        values = (item.value for item in node.ordering)
        places += [
            self.out.relations.value(value)
            for value in values
            if not (isinstance(value, ColumnRef) and layout.cells[value.index].form == "plain")
        ]
        return [self.out.relation(transform.inputs[0]), _select(places)]

    # Groups

    def _groups(self, spec: GroupBySpec) -> str:
        name = self.component.name
        transform = self.graph.nodes[name if name in self.graph.nodes else name.rpartition(".")[0]]
        node = transform.node
        assert isinstance(node, AggregateNode), f"{name} groups, and is no aggregate"
        source = self._layout_of(self.senders[0].name)
        positions = _positions(source)
        cells = self.plan.parts[name].layout.cells
        forms = spec.forms(self.inputs, self.component.relation)
        texts: list[str] = []
        first = len(node.group)
        for at, (item, one, form) in enumerate(zip(node.items, spec.aggregates, forms, strict=True)):
            relations = self.out.relations
            if form is None:
                texts.append(looked_at(relations, item, [positions[number] for number in one.needs or ()]))
            else:
                column = node.schema.columns[first + at]
                texts += totals(relations, item, column, node.input.schema, cells[first + at].form)
        return self._grouped(transform.inputs[0], node.group, texts)

    def _grouped(self, source: str, key: Sequence[int], texts: Sequence[str]) -> str:
        keys = _named(f'F.col("c{position}")' for position in key)
        frame = self.out.relation(source)
        if not texts:
            return self.out.step("groups", [frame, f".select({', '.join(keys)})", ".distinct()"])
        made = _named(texts, start=len(keys))
        return self.out.step("groups", [frame, f".groupBy({', '.join(keys)})", f".agg({', '.join(made)})"])

    def _layout_of(self, sender: str) -> Layout:
        base = self.plan.streams.get(sender)
        return self.plan.parts[sender].layout if base is None else base.side.layout

    # Kernels

    def _kernel(self, spec: KernelSpec) -> tuple[list[tuple[Result, str]], str]:
        plan = self.plan
        bases = {name: base.side.layout for name, base in (*plan.streams.items(), *plan.tables.items())}
        recognised = recognise(self.graph, plan.parts, bases, self.component.name)
        frames: list[tuple[Result, str]] = []
        for part in recognised.parts:
            states = tuple(number for numbers in part.columns.values() for number in numbers)
            frames.append((PartStates(part.number, states), self._row(part) if part.is_row else self._aggregates(part)))
        return frames, settling_text(recognised.star, spec)

    def _row(self, part: Part) -> str:
        columns = [f'F.col("c{position}")' for position in (*part.feeds[0].key, *part.columns)]
        return self.out.step("rows", [self.out.relation(part.source), _select(columns)])

    def _aggregates(self, part: Part) -> str:
        node = self.graph.nodes[part.id].node
        assert isinstance(node, AggregateNode), f"{part.id} groups, and is no aggregate"
        cells = self.plan.parts[part.id].layout.cells
        texts: list[str] = []
        for position in part.columns:
            item = node.items[position - len(node.group)]
            column = node.schema.columns[position]
            texts += totals(self.out.relations, item, column, node.input.schema, cells[position].form)
        return self._grouped(part.source, part.feeds[0].key, texts)


def deciding(spec: OperatorSpec, edge: int, output: Relation) -> list[str]:
    """Calls that leave those events of an in-edge that make the same state as all of them; none if all count.

    More than necessary would be right too: the operator looks at them as at any others.
    """
    match spec:
        case DistinctSpec() if not output.versioned:
            return [_one_of_each(spec.columns)]
        case MatchSpec(condition=None) if edge == 1:
            return [_one_of_each([right for _, right in spec.on])]
        case LatestSpec():
            order = [Order(number, not spec.first) for number in dict.fromkeys((spec.by, 0))]
            return _best("row_number", 1, order, spec.columns[: output.key_width])
        case TopSpec():
            order = [*spec.order] if spec.with_ties else [*spec.order, Order(0)]
            return _best("rank" if spec.with_ties else "row_number", spec.limit, order, spec.group)
        case _:
            return []


def _one_of_each(columns: Sequence[int]) -> str:
    names = ", ".join(f'"c{number}"' for number in dict.fromkeys(columns))
    return f".dropDuplicates([{names}])" if names else ".limit(1)"


def _best(function: str, count: int, order: Sequence[Order], group: Sequence[int]) -> list[str]:
    by = ", ".join(f'F.col("c{one.column}").{"desc" if one.descending else "asc"}_nulls_last()' for one in order)
    groups = ", ".join(f'"c{number}"' for number in group) or "F.lit(1)"
    place = f"F.{function}().over(Window.partitionBy({groups}).orderBy({by}))"
    return [f'.withColumn("place", {place})', f'.where(F.col("place") <= {count})']


def _positions(layout: Layout) -> list[int]:
    """For each physical column of events, those in front excluded, the position of its column in the schema."""
    found = {number: position for position, cell in enumerate(layout.cells) for number in cell.columns}
    return [found[number] for number in sorted(found)]


def _laid_out(layout: Layout) -> str:
    return _select([TICK] * layout.front + [f'F.col("c{position}")' for position in _positions(layout)])


def _select(texts: Sequence[str]) -> str:
    return f".select({', '.join(_named(texts))})"


def _named(texts: Iterable[str], start: int = 0) -> list[str]:
    return [f'{text}.alias("c{at}")' for at, text in enumerate(texts, start)]
