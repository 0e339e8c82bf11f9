"""The naive truth: a view recomputed from a list of events, with nothing taken from the engine.

`checks.py` asks for the view of exactly the ticks that a component covers, for each lineage separately, and compares
it with what the component holds. A relation is a dict from key tuple to value tuple and contains the visible rows
only. Results are remembered for each set of covered events, so a component that repeats what another one already
showed costs a lookup. No incremental computation happens here, on purpose.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from runtime.simulation.descriptor import (
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
from runtime.simulation.kinds import PAIRS, kinds_of

Value = int | tuple[int, ...]
Row = tuple[Value, ...]
Relation = dict[Row, Row]  # key -> values
Flat = tuple[int, ...]
Shape = tuple[tuple[str, ...], tuple[str, ...]]  # key columns, value columns
Masks = tuple[int, ...]  # for each lineage one bit for each durable event of its stream


class Oracle:
    """All durable events, and the value of every view at any coverage."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ticks: dict[str, list[int]] = {name: [] for name in graph.streams}
        self.rows: dict[str, list[Row]] = {name: [] for name in graph.streams}
        self.kinds = kinds_of(graph)
        self.shapes: dict[str, Shape] = {name: (kinds.keys, kinds.columns) for name, kinds in self.kinds.items()}
        self._cache: dict[str, dict[Masks, Relation]] = {node.name: {} for node in graph.nodes}
        self._has_pairs = {name: any(kind in PAIRS for kind in k.kinds) for name, k in self.kinds.items()}
        self._flat: dict[str, dict[Masks, frozenset[Flat]]] = {node.name: {} for node in graph.nodes}

    def record(self, stream: str, tick: int, row: Row) -> None:
        """An event has become durable."""
        assert not self.ticks[stream] or tick > self.ticks[stream][-1], "a log grows at its end"
        self.ticks[stream].append(tick)
        self.rows[stream].append(row)

    def mask(self, stream: str, ranges: Iterable[tuple[int, int]]) -> int:
        """The durable events that lie in some inclusive ranges of ticks."""
        ticks = self.ticks[stream]
        found = 0
        for low, high in ranges:
            found |= (1 << bisect_right(ticks, high)) - (1 << bisect_left(ticks, low))
        return found

    def everything(self, name: str) -> Masks:
        """The coverage that contains every durable event."""
        return tuple((1 << len(self.ticks[stream])) - 1 for stream in self.graph.lineages[name])

    def up_to(self, name: str, tick: int) -> Masks:
        """The coverage that contains every durable event up to a tick."""
        return tuple((1 << bisect_right(self.ticks[stream], tick)) - 1 for stream in self.graph.lineages[name])

    def view(self, name: str, masks: Masks) -> Relation:
        """The value of a component if it covers exactly these events."""
        cache = self._cache[name]
        found = cache.get(masks)
        if found is None:
            found = cache[masks] = self._compute(self.graph.by_name[name], masks)
        return found

    def flat(self, name: str, masks: Masks) -> frozenset[Flat]:
        """The same as a set of rows, key first, with pairs spread over two columns as the engine does."""
        cache = self._flat[name]
        found = cache.get(masks)
        if found is None:
            view = self.view(name, masks)
            if self._has_pairs[name]:
                found = frozenset(flat_row(key, row) for key, row in view.items())
            else:
                found = frozenset([key + row for key, row in view.items()])  # type: ignore[misc]
            cache[masks] = found
        return found

    def _compute(self, node: Node, masks: Masks) -> Relation:
        if isinstance(node.operator, Stream):
            return self._events(node.name, masks[0])
        inputs: list[Relation] = []
        shapes = []
        first = 0
        for source in node.inputs:
            count = len(self.graph.lineages[source])
            inputs.append(self.view(source, masks[first : first + count]))
            shapes.append(self.shapes[source])
            first += count
        return evaluate(node, inputs, shapes)

    def _events(self, stream: str, mask: int) -> Relation:
        ticks, rows = self.ticks[stream], self.rows[stream]
        return {(ticks[i],): rows[i] for i in range(mask.bit_length()) if mask >> i & 1}


def flat_row(key: Row, row: Row) -> Flat:
    """One row with pairs spread out."""
    spread: list[int] = []
    for value in (*key, *row):
        if isinstance(value, tuple):
            spread.extend(value)
        else:
            spread.append(value)
    return tuple(spread)


def evaluate(node: Node, inputs: Sequence[Relation], shapes: Sequence[Shape]) -> Relation:
    """One operator on whole relations."""
    match node.operator:
        case Merge():
            return {key: row for relation in inputs for key, row in relation.items()}
        case Leaf():
            return inputs[0]
        case Union():
            return {(i, *key): row for i, relation in enumerate(inputs) for key, row in relation.items()}
        case Select(predicate):
            holds = _predicate(predicate, shapes[0])
            return {key: row for key, row in inputs[0].items() if holds((*key, *row))}
        case Project(columns):
            pick = _picker(columns, shapes[0])
            return {key: pick((*key, *row)) for key, row in inputs[0].items()}
        case Distinct(columns):
            pick = _picker(columns, shapes[0])
            return {pick((*key, *row)): () for key, row in inputs[0].items()}
        case Extend(_, scalar):
            compute = _scalar(scalar, shapes[0])
            return {key: (*row, compute((*key, *row))) for key, row in inputs[0].items()}
        case Group():
            return _group(node.operator, inputs[0], shapes[0])
        case Join():
            return _join(node.operator, inputs, shapes)
        case Match(on, negated):
            right_keys = {_picker([b for _, b in on], shapes[1])((*key, *row)) for key, row in inputs[1].items()}
            pick = _picker([a for a, _ in on], shapes[0])
            return {key: row for key, row in inputs[0].items() if (pick((*key, *row)) in right_keys) is not negated}
        case Top():
            return _top(node.operator, inputs[0], shapes[0])
        case Latest():
            return _latest(node.operator, inputs[0], shapes[0])
        case Stream():
            raise AssertionError("a stream is not computed")


def _group(group: Group, relation: Relation, shape: Shape) -> Relation:
    pick = _picker(group.by, shape)
    members: dict[Row, list[Row]] = {}
    for key, row in relation.items():
        whole = (*key, *row)
        members.setdefault(pick(whole), []).append(whole)
    return {
        key: tuple(_aggregate(aggregate, rows, shape) for aggregate in group.aggregates)
        for key, rows in members.items()
    }


def _aggregate(aggregate: Aggregate, rows: list[Row], shape: Shape) -> Value:
    if aggregate.function == "count":
        return len(rows)
    position = _position(aggregate.column, shape)
    values = [shown(row[position]) for row in rows]
    match aggregate.function:
        case "sum":
            return sum(values)
        case "signed_sum":
            return sum(v for v in values if v > 0), -sum(v for v in values if v < 0)
        case "avg":
            return sum(values), len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "count_distinct":
            return len(set(values))
        case _:
            raise AssertionError(aggregate.function)


def _join(join: Join, inputs: Sequence[Relation], shapes: Sequence[Shape]) -> Relation:
    left_pick = _picker([a for a, _ in join.on], shapes[0])
    right_pick = _picker([b for _, b in join.on], shapes[1])
    matched = {there for _, there in join.on}
    key_rest = _picker([c for c in shapes[1][0] if c not in matched], shapes[1])
    row_rest = _picker([c for c in shapes[1][1] if c not in matched], shapes[1])
    partners: dict[Row, list[tuple[Row, Row]]] = {}
    for key, row in inputs[1].items():
        whole = (*key, *row)
        partners.setdefault(right_pick(whole), []).append((key_rest(whole), row_rest(whole)))
    result: Relation = {}
    for key, row in inputs[0].items():
        found = partners.get(left_pick((*key, *row)), ())
        for more_key, more_row in found:
            result[(*key, *more_key)] = (*row, *more_row)
        if join.outer and not found:
            result[key] = (*row, *join.defaults)
    return result


def _top(top: Top, relation: Relation, shape: Shape) -> Relation:
    pick = _picker(top.group, shape)
    position = _position(top.order, shape)
    groups: dict[Row, list[tuple[int, Row]]] = {}
    for key, row in relation.items():
        whole = (*key, *row)
        groups.setdefault(pick(whole), []).append((-shown(whole[position]), key))
    return {key: relation[key] for ranked in groups.values() for _, key in sorted(ranked)[: top.limit]}


def _latest(latest: Latest, relation: Relation, shape: Shape) -> Relation:
    pick = _picker(latest.by, shape)
    rest = _picker([c for c in (*shape[0], *shape[1]) if c not in latest.by], shape)
    result: Relation = {}
    for key in sorted(relation, reverse=latest.first):
        whole = (*key, *relation[key])
        result[pick(whole)] = rest(whole)
    return result


def _position(column: object, shape: Shape) -> int:
    return (*shape[0], *shape[1]).index(column)


def _picker(columns: Sequence[str], shape: Shape) -> Callable[[Row], Row]:
    positions = [_position(column, shape) for column in columns]
    return lambda whole: tuple([whole[i] for i in positions])


def shown(value: Value) -> int:
    """A number as a reader sees it: an up-down pair is its difference."""
    return value[0] - value[1] if isinstance(value, tuple) else value


def _predicate(predicate: Predicate, shape: Shape) -> Callable[[Row], bool]:
    kind, column, other = predicate
    position = _position(column, shape)
    if kind == "exceeds":
        other_position = _position(other, shape)
        return lambda whole: shown(whole[position]) > shown(whole[other_position])
    assert isinstance(other, int)
    match kind:
        case "less":
            return lambda whole: shown(whole[position]) < other
        case "at_least":
            return lambda whole: shown(whole[position]) >= other
        case "equal":
            return lambda whole: shown(whole[position]) == other
        case _:
            raise AssertionError(kind)


def _scalar(scalar: Scalar, shape: Shape) -> Callable[[Row], Value]:
    if scalar[0] == "difference":
        _, minuend, subtrahend = scalar
        first, second = _position(minuend, shape), _position(subtrahend, shape)
        return lambda whole: (shown(whole[first]), shown(whole[second]))
    return _plain_scalar(scalar, shape)


def _plain_scalar(scalar: Scalar, shape: Shape) -> Callable[[Row], int]:
    match scalar:
        case ("column", column):
            position = _position(column, shape)
            return lambda whole: shown(whole[position])
        case ("constant", int(constant)):
            return lambda _: constant
        case (kind, tuple(first), tuple(second)):
            a, b = _plain_scalar(first, shape), _plain_scalar(second, shape)
            if kind == "plus":
                return lambda whole: a(whole) + b(whole)
            if kind == "minus":
                return lambda whole: a(whole) - b(whole)
            return lambda whole: a(whole) * b(whole)
        case _:
            raise AssertionError(scalar)
