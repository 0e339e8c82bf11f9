"""Views evaluated naively: the rows of a typed relation, computed from scratch from a given set of events.

The oracle of the knowledge tests. Deliberately simple and slow, sharing with the analysis only the typed tree and with
the engine nothing at all. Rows are tuples of canonical values, hidden columns included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from mpl import typed
from mpl.evaluate import evaluate
from mpl.knowledge import operators_of
from mpl.scaled import scale_of
from mpl.types import FloatType, Type

Row = tuple[Any, ...]
Events = Mapping[str, Sequence[Row]]


def rows_of_views(program: typed.TypedProgram, events: Events, tables: Events) -> dict[str, list[Row]]:
    """The rows of every view, given the events of every stream that are known."""
    views: dict[str, list[Row]] = {}
    for name, view in program.views.items():
        done: dict[int, list[Row]] = {}
        for node in operators_of(view.relation):
            done[id(node)] = _rows(node, done, views, events, tables)
        views[name] = done[id(view.relation)]
    return views


def _rows(
    node: typed.RelationTree,
    done: dict[int, list[Row]],
    views: dict[str, list[Row]],
    events: Events,
    tables: Events,
) -> list[Row]:
    match node:
        case typed.StreamScan():
            return list(events[node.stream])
        case typed.TableScan():
            return list(tables[node.table])
        case typed.ViewScan():
            return views[node.view]
        case typed.MergeNode():
            return [row for source in node.inputs for row in done[id(source)]]
        case typed.JoinNode() | typed.AsofNode() | typed.MatchingNode() | typed.UnionNode() | typed.MinusNode():
            return _binary(node, done[id(node.left)], done[id(node.right)])
        case _:
            return _unary(node, done[id(node.input)])


def _unary(node: typed.RelationTree, rows: list[Row]) -> list[Row]:
    match node:
        case typed.WhereNode():
            return [row for row in rows if evaluate(node.predicate, row) is True]
        case typed.ProjectNode() | typed.DistinctNode():
            return list(dict.fromkeys(tuple(row[c] for c in node.kept) for row in rows))
        case typed.ExtendNode():
            return [(*row, *(evaluate(value, row) for value in node.values)) for row in rows]
        case typed.RenameNode():
            return rows
        case typed.WindowNode():
            return _windowed(node, rows)
        case typed.AggregateNode():
            return _aggregated(node, rows)
        case typed.TopNode():
            return _top(node, rows)
        case typed.LatestNode():
            return _latest(node, rows)
        case _:
            raise AssertionError(node)


def _windowed(node: typed.WindowNode, rows: list[Row]) -> list[Row]:
    if node.shape == "session":
        return _sessions(node, rows)
    result: list[Row] = []
    for row in rows:
        time = row[node.time]
        assert isinstance(time, int)
        start = time - time % node.every_us
        while start > time - node.size_us:
            result.append((*row, start, start + node.size_us))
            start -= node.every_us
    return result


def _sessions(node: typed.WindowNode, rows: list[Row]) -> list[Row]:
    result: list[Row] = []
    for group in _groups(rows, node.per).values():
        ordered = sorted(group, key=lambda row: row[node.time])
        sessions: list[list[Row]] = []
        for row in ordered:
            if sessions and row[node.time] - sessions[-1][-1][node.time] <= node.size_us:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for session in sessions:
            end = session[-1][node.time] + node.size_us
            result += [(*row, session[0][node.time], end) for row in session]
    return result


def _groups(rows: Iterable[Row], columns: Sequence[int]) -> dict[Row, list[Row]]:
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in columns), []).append(row)
    return groups


def _aggregated(node: typed.AggregateNode, rows: list[Row]) -> list[Row]:
    groups = _groups(rows, node.group)
    if not node.group:
        groups.setdefault((), [])
    ticks = [c for c, column in enumerate(node.input.schema.columns) if column.is_tick]
    declared = node.schema.columns[len(node.group) :]
    return [
        (
            *key,
            *(_aggregate(item, column.type, group, ticks) for item, column in zip(node.items, declared, strict=True)),
        )
        for key, group in groups.items()
    ]


def _aggregate(item: typed.AggregateItem, result: Type, rows: list[Row], ticks: list[int]) -> Any:
    chosen = [row for row in rows if item.where is None or evaluate(item.where, row) is True]
    if item.function in ("first", "last"):
        chosen = sorted(chosen, key=lambda row: [row[c] for c in ticks])
    if item.argument is None:
        return len(chosen)
    values: list[Any] = [value for value in (evaluate(item.argument, row) for row in chosen) if value is not None]
    if item.distinct:
        values = list(dict.fromkeys(values))
    whole: dict[str, Callable[[list[Any]], Any]] = {"count": len, "sum": sum, "any": any, "all": all}
    if item.function in whole:
        return whole[item.function](values)
    if not values:
        return None
    if item.function == "avg":
        return _average(values, item.argument.type, result)
    if item.function in ("first", "last"):
        return values[0 if item.function == "first" else -1]
    return min(values) if item.function == "min" else max(values)


def _average(values: list[Any], given: Type, result: Type) -> Any:
    if isinstance(result, FloatType):
        return sum(values) / len(values)
    return round(Fraction(sum(values), len(values)) * 10 ** (scale_of(result) - scale_of(given)))


def _compared(one: Any, other: Any, *, descending: bool) -> int:
    """Nulls last, whichever way."""
    if one is None or other is None:
        return (one is None) - (other is None)
    sign: int = (one > other) - (one < other)
    return -sign if descending else sign


def _top(node: typed.TopNode, rows: list[Row]) -> list[Row]:
    key = node.input.schema.key
    result: list[Row] = []

    def compare(one: Row, other: Row) -> int:
        return scores(one, other) or (_sortable(one, key) > _sortable(other, key)) * 2 - 1

    def scores(one: Row, other: Row) -> int:
        for order in node.ordering:
            sign = _compared(evaluate(order.value, one), evaluate(order.value, other), descending=order.descending)
            if sign:
                return sign
        return 0

    for group in _groups(rows, node.per).values():
        ordered = sorted(group, key=cmp_to_key(compare))
        kept = ordered[: node.count]
        if node.ties and len(ordered) > node.count:
            kept += [row for row in ordered[node.count :] if scores(kept[-1], row) == 0]
        for row in kept:
            rank = 1 + sum(scores(other, row) < 0 for other in ordered) if node.ties else 1 + ordered.index(row)
            result.append((*row, rank) if node.rank else row)
    return result


def _sortable(row: Row, columns: Iterable[int]) -> list[tuple[bool, Any]]:
    """Values in order, nulls last."""
    return [(row[c] is None, 0 if row[c] is None else row[c]) for c in columns]


def _latest(node: typed.LatestNode, rows: list[Row]) -> list[Row]:
    schema = node.input.schema
    ticks = [c for c, column in enumerate(schema.columns) if column.is_tick]
    order = [*([node.by] if node.by is not None else []), *ticks, *schema.key]

    def best(group: list[Row]) -> Row:
        known = [row for row in group if node.by is None or row[node.by] is not None] or group
        choose = max if node.which == "latest" else min
        return choose(known, key=lambda row: _sortable(row, order))

    return [best(group) for group in _groups(rows, node.per).values()]


def _matches(
    node: typed.JoinNode | typed.MatchingNode, equal: Sequence[tuple[int, int]], left: Row, right: Row
) -> bool:
    if any(left[a] is None or left[a] != right[b] for a, b in equal):
        return False
    return node.rest is None or evaluate(node.rest, (*left, *right)) is True


def _binary(
    node: typed.JoinNode | typed.AsofNode | typed.MatchingNode | typed.UnionNode | typed.MinusNode,
    left: list[Row],
    right: list[Row],
) -> list[Row]:
    match node:
        case typed.JoinNode():
            return _joined(node, left, right)
        case typed.AsofNode():
            return _asof(node, left, right)
        case typed.MatchingNode():
            return [
                row for row in left if any(_matches(node, node.equal, row, other) for other in right) != node.negated
            ]
        case typed.UnionNode():
            ours = [tuple(row[c] for c in node.left_kept) for row in left]
            theirs = [tuple(row[c] for c in node.right_order) for row in right]
            return list(dict.fromkeys(ours + theirs))
        case typed.MinusNode():
            taken = {tuple(row[c] for c in node.right_order) for row in right}
            return [row for row in left if tuple(row[c] for c in node.left_compared) not in taken]


def _joined(node: typed.JoinNode, left: list[Row], right: list[Row]) -> list[Row]:
    result: list[Row] = []
    matched: set[int] = set()
    for row in left:
        partners = [i for i, other in enumerate(right) if _matches(node, node.equal, row, other)]
        matched.update(partners)
        result += [(*row, *(right[i][c] for c in node.right_kept)) for i in partners]
        if not partners and node.side != "inner":
            result.append((*row, *(default.value for default in node.defaults)))
    if node.side == "full":
        shared = {a: b for a, b in node.equal if b not in node.right_kept}
        for i, other in enumerate(right):
            if i not in matched:
                ours = [
                    other[shared[c]] if c in shared else default.value for c, default in enumerate(node.left_defaults)
                ]
                result.append((*ours, *(other[c] for c in node.right_kept)))
    return result


def _asof(node: typed.AsofNode, left: list[Row], right: list[Row]) -> list[Row]:
    ticks = [c for c, column in enumerate(node.right.schema.columns) if column.is_tick]
    result: list[Row] = []
    for row in left:
        fitting = [
            other
            for other in right
            if all(row[a] is not None and row[a] == other[b] for a, b in node.equal)
            and None not in (other[node.right_time], row[node.left_time])
            and other[node.right_time] <= row[node.left_time]
        ]
        if fitting:
            best = max(fitting, key=lambda other: [other[c] for c in (node.right_time, *ticks)])
            result.append((*row, *(best[c] for c in node.right_kept)))
        elif node.keep_unmatched:
            result.append((*row, *(None for _ in node.right_kept)))
    return result
