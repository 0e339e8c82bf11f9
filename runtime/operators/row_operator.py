"""What operators that compute output rows one at a time have in common.

`RowOperator.put` decides whether a row was touched, so that every operator follows the same rules (S1, T1):

- versioned relation: a reached row is touched, changed or not, and its max_tick only rises;
- otherwise a row that is visible before and after with equal values is left alone, max_tick included: what it depended
  on still decides it. That holds because such rows appear, rise and vanish at most once. A `DOM` column whose order
  key was dropped does not (a, b, a), so its rows are touched whenever they depend on another tick;
- a row that stays invisible is touched if it now depends on a later tick: a receiver may have seen it visible at a
  coverage between the two that this incarnation skipped.

Invisible rows keep their values: a tombstone must carry its final columns, because an operator downstream may need
them to find the group that it reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.plan import ColumnKind, Relation
from runtime.rows import Rows
from runtime.values import Key, Value

Row = tuple[Value, ...]
Picker = Callable[[Row], Key]


@dataclass(frozen=True)
class Table:
    """What a generated loop knows of the operator's rows. `always_touched`: a visible row whose values stay is touched
    if it depends on another tick."""

    key_width: int
    width: int
    versioned: bool
    always_touched: bool

    @staticmethod
    def of(relation: Relation) -> Table:
        return Table(relation.key_width, relation.width, relation.versioned, _is_always_touched(relation))


def _is_always_touched(relation: Relation) -> bool:
    return relation.versioned or any(
        column.kind in (ColumnKind.DOM, ColumnKind.VERSIONED) for column in relation.columns
    )


def names_of(columns: Iterable[int]) -> tuple[str, ...]:
    """The local variables that hold these columns of a row in a generated loop."""
    return tuple(f"c{number}" for number in columns)


class RowOperator(Operator):
    """An operator whose `apply` gathers results first and then calls `put` for each row that it reached."""

    def __init__(self, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._always_touched = _is_always_touched(output)

    def put(self, key: Key, values: Sequence[Value], visible: bool, tick: int, touched: list[int]) -> None:
        """The row of this key was reached: it has these values (without the key), which depend on `tick`."""
        rows = self.rows
        slot = rows.index.get(key, -1)
        if slot < 0:
            slot = rows.slot_for(key)
        elif self.relation.versioned:
            tick = max(tick, rows.max_tick[slot])
        elif visible == rows.visible[slot] and (
            (not self._always_touched or tick == rows.max_tick[slot]) if visible else tick <= rows.max_tick[slot]
        ):
            columns = rows.columns[rows.key_width :]
            if all(column[slot] == value for column, value in zip(columns, values, strict=True)):
                return
        if self.relation.versioned:
            tick = max(tick, self.in_floor)
        for column, value in zip(rows.columns[rows.key_width :], values, strict=True):
            column[slot] = value
        rows.visible[slot] = visible
        rows.max_tick[slot] = tick
        touched.append(slot)

    def table(self) -> tuple[object, ...]:
        """What the macro `put` of `codegen_templates/rows.j2`, which does the same in a loop, works on."""
        rows = self.rows
        return rows.index.get, rows.slot_for, rows.columns, rows.visible, rows.max_tick, self.in_floor

    # Rows that wander: the column that decides which output row they belong to is not final

    def wander(self, batch: Batch) -> None:
        """Rows of this batch may have been elsewhere between two messages, without our seeing it: any output row, also
        one that was never held here, may have been another in between. None is touched for that; they are hidden."""
        self.hidden_tick = max([self.hidden_tick, *batch.max_ticks])


class EarlyStore(RowOperator):
    """An operator that stores a batch before it computes, so that all rows are read in one place."""

    def take(self, edge: int, batch: Batch) -> list[int]:
        copy = self.inputs[edge]
        slots = copy.slots_for(batch) if copy is not None else []
        return list(dict.fromkeys(self.apply(edge, batch, slots)))

    def store_first(self, edge: int, batch: Batch, slots: Sequence[int]) -> Batch:
        """Store the batch; what it replaced, for `store_again`."""
        copy = self.inputs[edge]
        assert copy is not None, "these rows are remembered"
        old = copy.select(slots)
        copy.store(slots, batch)
        return old

    def store_again(self, edge: int, slots: Sequence[int], old: Batch) -> None:
        copy = self.inputs[edge]
        assert copy is not None, "these rows are remembered"
        copy.store(slots, old)


def picker(columns: Sequence[int]) -> Picker:
    """A function from a row to the tuple of these columns."""
    if not columns:
        return lambda _: ()
    if len(columns) == 1:
        only = columns[0]
        return lambda row: (row[only],)
    return itemgetter(*columns)


def are_final(relation: Relation, columns: Sequence[int]) -> bool:
    """Whether these columns of a row never change. Otherwise rows wander between groups, seen or unseen."""
    return all(c < relation.key_width or relation.columns[c].kind is ColumnKind.FINAL for c in columns)


class Overlay:
    """The copy of an in-edge as it will be once a batch is stored."""

    def __init__(self, copy: Rows, batch: Batch | None = None, slots: Sequence[int] = ()) -> None:
        self._copy = copy
        self._batch = batch
        self._at = {slot: i for i, slot in enumerate(slots)}
        self._rows = batch.rows() if batch is not None else []

    def row(self, slot: int) -> Row:
        i = self._at.get(slot, -1)
        return self._rows[i] if i >= 0 else self._copy.row_at(slot)

    def visible(self, slot: int) -> bool:
        i = self._at.get(slot, -1)
        return self._batch.visible[i] if i >= 0 and self._batch is not None else self._copy.visible[slot]

    def max_tick(self, slot: int) -> int:
        i = self._at.get(slot, -1)
        return self._batch.max_ticks[i] if i >= 0 and self._batch is not None else self._copy.max_tick[slot]
