"""What typed relations mean, computed from scratch: the oracle for graphs, generated code and the engine.

    rows = evaluate_program(program, events, tables)      # view -> its rows, each a tuple with all columns

Plain Python over tuples, one obvious function per operator; scalars through `mpl.evaluate`. Shares no code with the
compiler or the runtime. Every relation is checked to have the key that the checker promised.

Where the language reference leaves room, this is how it is meant:
- null never equals anything in joins; in sets, groups and keys it is a value like others.
- `first`, `last` and `latest` order rows by their ticks from left to right, then (no tick left to tell) by key, the
  smallest first; a null in the `by` column comes last either way.
- `top ... with ties` shows all rows that are as good as the last place.
- a session ends when the next row comes after a pause of the gap or longer; its end is the last row plus the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mpl.evaluate import NO_PYTHON, PythonFunctions, evaluate
from mpl.knowledge import operators_of
from mpl.typed import (
    AggregateNode,
    AsofNode,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RelationTree,
    RenameNode,
    Schema,
    StreamScan,
    TableScan,
    TopNode,
    TypedProgram,
    UnionNode,
    ViewScan,
    WhereNode,
    WindowNode,
)
from mpl.types import Value
from tests.reference.aggregates import aggregate_value

Row = tuple[Value, ...]
Rows = list[Row]


class KeyBroken(AssertionError):
    """Two rows of a relation have the same key: the checker or a pass promised too much."""


def evaluate_program(
    program: TypedProgram,
    events: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Row]] | None = None,
    python: PythonFunctions = NO_PYTHON,
) -> dict[str, Rows]:
    """The rows of every view. An event is a tuple of the stream's columns, its tick last."""
    return _Evaluation(program, events, tables or {}, python).run()


def by_key(schema: Schema, rows: Iterable[Row]) -> dict[Row, Row]:
    """Rows by their key; `KeyBroken` if two share one."""
    found: dict[Row, Row] = {}
    for row in rows:
        key = tuple(row[position] for position in schema.key)
        if key in found:
            raise KeyBroken(f"two rows with key {key}: {found[key]} and {row}")
        found[key] = row
    return found


class _Evaluation:
    def __init__(
        self,
        program: TypedProgram,
        events: Mapping[str, Sequence[Row]],
        tables: Mapping[str, Sequence[Row]],
        python: PythonFunctions,
    ) -> None:
        self.program = program
        self.events = events
        self.tables = tables
        self.python = python
        self.views: dict[str, Rows] = {}

    def run(self) -> dict[str, Rows]:
        for name, view in self.program.views.items():
            made: dict[int, Rows] = {}
            for node in operators_of(view.relation):
                rows = self.rows_of(node, made)
                by_key(node.schema, rows)
                made[id(node)] = rows
            self.views[name] = made[id(view.relation)]
        return self.views

    def value(self, expr: Expr, row: Row) -> Value:
        return evaluate(expr, row, self.python)

    def holds(self, expr: Expr | None, row: Row) -> bool:
        return expr is None or self.value(expr, row) is True

    def rows_of(self, node: RelationTree, made: Mapping[int, Rows]) -> Rows:
        match node:
            case StreamScan():
                return list(self.events.get(node.stream, ()))
            case TableScan():
                return list(self.tables.get(node.table, ()))
            case ViewScan():
                return self.views[node.view]
            case MergeNode():
                return [row for source in node.inputs for row in made[id(source)]]
            case JoinNode():
                return self.join(node, made[id(node.left)], made[id(node.right)])
            case AsofNode():
                return self.asof(node, made[id(node.left)], made[id(node.right)])
            case MatchingNode():
                return self.matching(node, made[id(node.left)], made[id(node.right)])
            case UnionNode():
                left = [_picked(row, node.left_kept) for row in made[id(node.left)]]
                return _as_set([*left, *(_picked(row, node.right_order) for row in made[id(node.right)])])
            case MinusNode():
                taken = {_picked(row, node.right_order) for row in made[id(node.right)]}
                return [row for row in made[id(node.left)] if _picked(row, node.left_compared) not in taken]
            case WhereNode():
                return [row for row in made[id(node.input)] if self.holds(node.predicate, row)]
            case ProjectNode():
                kept = [_picked(row, node.kept) for row in made[id(node.input)]]
                return _as_set(kept) if node.drops_key else kept
            case DistinctNode():
                return _as_set([_picked(row, node.kept) for row in made[id(node.input)]])
            case ExtendNode():
                return [(*row, *(self.value(value, row) for value in node.values)) for row in made[id(node.input)]]
            case RenameNode():
                return made[id(node.input)]
            case WindowNode():
                return _windowed(node, made[id(node.input)])
            case AggregateNode():
                return self.aggregate(node, made[id(node.input)])
            case TopNode():
                return self.top(node, made[id(node.input)])
            case LatestNode():
                return _latest(node, made[id(node.input)])

    def aggregate(self, node: AggregateNode, rows: Rows) -> Rows:
        groups: dict[Row, Rows] = _grouped(rows, node.group)
        if not node.group:
            groups.setdefault((), [])
        order = _by_tick(node.input.schema)
        start = len(node.group)
        result: Rows = []
        for group, members in groups.items():
            members = sorted(members, key=order)
            values = []
            for position, item in enumerate(node.items):
                counted = [row for row in members if self.holds(item.where, row)]
                if item.argument is None:
                    arguments: list[Value] = [1 for _ in counted]
                else:
                    arguments = [self.value(item.argument, row) for row in counted]
                source = None if item.argument is None else item.argument.type
                column = node.schema.columns[start + position]
                values.append(aggregate_value(item.function, arguments, item.distinct, source, column.type))
            result.append((*group, *values))
        return result

    def join(self, node: JoinNode, left: Rows, right: Rows) -> Rows:
        result: Rows = []
        matched_right: set[int] = set()
        for one in left:
            partners = [n for n, other in enumerate(right) if self.agree(node, one, other)]
            matched_right.update(partners)
            result += [(*one, *_picked(right[n], node.right_kept)) for n in partners]
            if not partners and node.side != "inner":
                result.append((*one, *(default.value for default in node.defaults)))
        if node.side == "full":
            result += [
                (*_filled(node, other), *_picked(other, node.right_kept))
                for n, other in enumerate(right)
                if n not in matched_right
            ]
        return result

    def agree(self, node: JoinNode | MatchingNode, one: Row, other: Row) -> bool:
        return _equal(node.equal, one, other) and self.holds(node.rest, (*one, *other))

    def matching(self, node: MatchingNode, left: Rows, right: Rows) -> Rows:
        return [one for one in left if any(self.agree(node, one, other) for other in right) is not node.negated]

    def asof(self, node: AsofNode, left: Rows, right: Rows) -> Rows:
        latest = _latest_first(node.right.schema, node.right_time)
        result: Rows = []
        for one in left:
            earlier = [
                other
                for other in right
                if _equal(node.equal, one, other) and _not_later(other[node.right_time], one[node.left_time])
            ]
            if earlier:
                result.append((*one, *_picked(min(earlier, key=latest), node.right_kept)))
            elif node.keep_unmatched:
                result.append((*one, *(None for _ in node.right_kept)))
        return result

    def top(self, node: TopNode, rows: Rows) -> Rows:
        key = node.input.schema.key
        result: Rows = []
        for members in _grouped(rows, node.per).values():
            ranked = [(self.place(node, row), row) for row in members]
            ranked.sort(key=lambda pair: (pair[0], tuple(_ascending(pair[1][position]) for position in key)))
            shown = ranked[: node.count]
            if node.ties and shown:
                shown = [pair for pair in ranked if pair[0] <= shown[-1][0]]
            result += [(*row, rank) if node.rank else row for rank, (_, row) in enumerate(shown, 1)]
        return result

    def place(self, node: TopNode, row: Row) -> tuple[Any, ...]:
        """Smaller is better."""
        return tuple(_ordered(self.value(key.value, row), key.descending) for key in node.ordering)


# --- rows and keys ----------------------------------------------------------------------------------------------------


def _picked(row: Row, positions: Sequence[int]) -> Row:
    return tuple(row[position] for position in positions)


def _as_set(rows: Iterable[Row]) -> Rows:
    return list(dict.fromkeys(rows))


def _grouped(rows: Iterable[Row], positions: Sequence[int]) -> dict[Row, Rows]:
    groups: dict[Row, Rows] = {}
    for row in rows:
        groups.setdefault(_picked(row, positions), []).append(row)
    return groups


def _equal(pairs: Sequence[tuple[int, int]], one: Row, other: Row) -> bool:
    return all(one[left] is not None and one[left] == other[right] for left, right in pairs)


def _filled(node: JoinNode, other: Row) -> Row:
    """The left columns of a right row without partner: defaults, and the columns that both sides share."""
    row = [default.value for default in node.left_defaults]
    for left, right in node.equal:
        if right not in node.right_kept:
            row[left] = other[right]
    return tuple(row)


def _not_later(early: Value, late: Value) -> bool:
    if early is None or late is None:
        return False
    assert isinstance(early, int)
    assert isinstance(late, int)
    return early <= late


# --- orders -----------------------------------------------------------------------------------------------------------


class _Backwards:
    """Turns an order round."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)

    def __le__(self, other: _Backwards) -> bool:
        return bool(other.value <= self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _ordered(value: Value, descending: bool) -> tuple[Any, ...]:
    """Sorts nulls last, whichever way the others go."""
    if value is None:
        return (1, 0)
    return (0, _Backwards(value) if descending else value)


def _ascending(value: Value) -> tuple[Any, ...]:
    return _ordered(value, descending=False)


def _ticks(schema: Schema) -> list[int]:
    return [position for position, column in enumerate(schema.columns) if column.is_tick]


def _by_tick(schema: Schema) -> Callable[[Row], Any]:
    positions = [*_ticks(schema), *schema.key]
    return lambda row: tuple(_ascending(row[position]) for position in positions)


def _latest_first(schema: Schema, by: int | None, *, earliest: bool = False) -> Callable[[Row], Any]:
    """The order in which the smallest is the row that `latest` (or `first`) shows."""
    times = [*(() if by is None else (by,)), *_ticks(schema)]

    def place(row: Row) -> Any:
        return (
            *(_ordered(row[position], descending=not earliest) for position in times),
            *(_ascending(row[position]) for position in schema.key),
        )

    return place


def _latest(node: LatestNode, rows: Rows) -> Rows:
    place = _latest_first(node.input.schema, node.by, earliest=node.which == "first")
    return [min(members, key=place) for members in _grouped(rows, node.per).values()]


# --- windows ----------------------------------------------------------------------------------------------------------


def _windowed(node: WindowNode, rows: Rows) -> Rows:
    result: Rows = []
    if node.shape == "session":
        for members in _grouped(rows, node.per).values():
            result += _sessions(node, members)
        return result
    for row in rows:
        time = row[node.time]
        assert isinstance(time, int)
        start = time - time % node.every_us
        while start + node.size_us > time:
            result.append((*row, start, start + node.size_us))
            start -= node.every_us
    return result


def _sessions(node: WindowNode, rows: Rows) -> Rows:
    def time_of(row: Row) -> int:
        time = row[node.time]
        assert isinstance(time, int)
        return time

    sessions: list[Rows] = []
    for row in sorted(rows, key=time_of):
        if sessions and time_of(row) - time_of(sessions[-1][-1]) < node.size_us:
            sessions[-1].append(row)
        else:
            sessions.append([row])
    return [(*row, time_of(session[0]), time_of(session[-1]) + node.size_us) for session in sessions for row in session]
