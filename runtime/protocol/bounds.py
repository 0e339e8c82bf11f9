"""Bounds of a subscriber's cells as of the horizon (section 8).

A row may include ticks beyond the horizon h. As of h, with contributions in [0..Q] and no unknown tick at or below h:
[a - Q * (covered ticks above h) .. a]; a row with max_tick <= h is exact. None stands for "no bound".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.plan import Column, ColumnKind, Relation, ShownColumn
from runtime.protocol.coverage import Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.values import Value

Interval = tuple[Value, Value]
Cells = tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Stripe:
    """The ticks of one stream: only these can carry an event."""

    modulus: int
    residue: int

    def count_above(self, covered: Coverage, tick: int) -> int:
        """Ticks of this stream above `tick` that are covered."""
        total = 0
        for first, last in covered:
            if last > tick:
                below = max(first, tick + 1) - 1
                total += (last - self.residue) // self.modulus - (below - self.residue) // self.modulus
        return total


class Bounds:
    def __init__(self, relation: Relation, stripes: Sequence[Stripe]) -> None:
        self._relation = relation
        self._stripes = tuple(stripes)
        self._shown = relation.shown or tuple(
            ShownColumn(column.name, "plain", (i,)) for i, column in enumerate(relation.columns)
        )

    def of(self, rows: Batch, coverage: LineageCoverage, horizon: int, in_floor: int) -> tuple[Cells, Cells]:
        """Lower and upper bounds, row by row, of the shown columns."""
        ahead = sum(s.count_above(part, horizon) for s, part in zip(self._stripes, coverage, strict=True))
        low: list[tuple[Value, ...]] = []
        high: list[tuple[Value, ...]] = []
        for row, max_tick in zip(rows.rows(), rows.max_ticks, strict=True):
            is_exact = max(max_tick, in_floor) <= horizon
            parts = [
                (value, value) if is_exact else interval(column, value, ahead)
                for column, value in zip(self._relation.columns, row, strict=True)
            ]
            cells = [_show(shown, parts) for shown in self._shown]
            low.append(tuple(cell[0] for cell in cells))
            high.append(tuple(cell[1] for cell in cells))
        return tuple(low), tuple(high)


def interval(column: Column, value: Value, ticks_ahead: int) -> Interval:
    """What a column of a row that runs ahead of the horizon can have been at the horizon."""
    match column.kind:
        case ColumnKind.FINAL:
            return value, value
        case ColumnKind.UP if isinstance(value, int | float) and column.contribution_max is not None:
            return max(0, value - column.contribution_max * ticks_ahead), value
        case ColumnKind.UP:
            return None, value
        case ColumnKind.DOWN:
            return value, None
        case _:
            return None, None


def _show(shown: ShownColumn, parts: Sequence[Interval]) -> Interval:
    first = parts[shown.columns[0]]
    if shown.form == "plain":
        return first
    second = parts[shown.columns[1]]
    if shown.form == "difference":
        return _minus(first[0], second[1]), _minus(first[1], second[0])
    return _ratio(first, second)


def _minus(left: Value, right: Value) -> Value:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left - right
    return None


def _ratio(total: Interval, count: Interval) -> Interval:
    """An average is known only when both parts are."""
    s, n = total[0], count[0]
    if total[0] != total[1] or count[0] != count[1] or not isinstance(s, int | float) or not isinstance(n, int | float):
        return None, None
    value = s / n if n else None
    return value, value
