"""The columnar copy: what a subscriber's leaf runs when all columns of its view are numbers.

The same rows as `runtime/operators/copy.py`, in flat arrays and by loops that are compiled when they are worth it. Made
by `CopySpec` where `fits` says so. One thing differs: of an invisible row, values that are null are kept as 0; nobody
sees them, and what a receiver further down could need of a tombstone, its key, is never null here.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from runtime.batch import Batch
from runtime.columns import Same, taken
from runtime.kernels.copy_rows import CopyRows, Integers, Meta
from runtime.operators.operator import Operator
from runtime.plan import Relation, ValueType

if TYPE_CHECKING:
    from runtime.rows import Rows


def fits(relation: Relation) -> bool:
    """Are all columns numbers or truths that are never null, and those of the key whole numbers?"""
    kinds = [column.type for column in relation.columns]
    return (
        relation.key_width > 0
        and not any(column.nullable for column in relation.columns)
        and ValueType.TEXT not in kinds
        and all(kind is ValueType.INT for kind in kinds[: relation.key_width])
    )


class ColumnarCopy(Operator):
    """`table` is `rows` by its own type."""

    repeats_rows = True

    def __init__(self, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._use(CopyRows(output))
        self._has_no_floats = ValueType.FLOAT not in self.table.kinds
        self._taken = Batch.empty(output.width)

    def _use(self, table: CopyRows) -> None:
        self.table = table
        self.rows = cast("Rows", table)  # the same interface
        self.inputs = [self.rows]

    @property
    def is_native(self) -> bool:
        return self.table.tier.native is not None

    def wait_for_native(self, timeout_s: float) -> bool:
        """Wait for the native tier: for measurements and tests; False if it did not come."""
        return self.table.tier.wait(timeout_s)

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        raise AssertionError("a copy takes whole batches")

    def take(self, edge: int, batch: Batch) -> Sequence[int]:
        self._taken = batch if batch.lineages is None else replace(batch, lineages=None)
        if len(batch.max_ticks) == 1 and self._has_no_floats:  # single changes: the shortest way
            visible = batch.visible
            is_visible = visible.value if type(visible) is Same else visible[0]
            touched = self.table.take_row(*[column[0] for column in batch.columns], is_visible, batch.max_ticks[0])
            if touched is not None:
                return touched
        return self.table.take(self._packed(batch))

    def _packed(self, batch: Batch) -> Integers:
        """All columns, `visible` and `max_ticks` as one array."""
        kinds = self.table.kinds
        packed = np.empty((len(kinds) + 2, len(batch)), np.int64)
        for number, kind in enumerate(kinds):
            row = packed[number].view(np.float64) if kind is ValueType.FLOAT else packed[number]
            _fill(row, batch.columns[number])
        _fill(packed[-2], batch.visible)
        _fill(packed[-1], batch.max_ticks)
        return packed

    # What happened in the batch just taken

    def watch(self) -> None:
        """Nothing to prepare: the changes of the last batch are always known."""

    def changed(self, touched: Sequence[int]) -> Batch:
        rows = self._taken
        if self.table.numbers[Meta.SEEN] == len(rows.max_ticks):  # usually: they are passed on as they came
            return rows
        return self._changes_at(self.table.seen())

    def latest(self, touched: Sequence[int]) -> Batch:
        return self.changed(touched).latest(self.relation.key_width)

    def every_change(self, touched: Sequence[int]) -> Batch:
        rows = self._taken
        if self.table.numbers[Meta.CHANGES] == len(rows.max_ticks):
            return rows
        return self._changes_at(self.table.changes())

    def _changes_at(self, positions: Integers) -> Batch:
        rows = self._taken
        where = cast("Sequence[int]", positions)
        columns = tuple(taken(column, where) for column in rows.columns)
        return Batch(columns, taken(rows.max_ticks, where), taken(rows.visible, where))

    # Tombstones and checkpoints

    def forget_all(self, slots: Sequence[int]) -> None:
        self.table.forget_all(slots)

    def export(self) -> dict[str, object]:
        """The same as that of any other copy."""
        rows = self.table.select(self.table.slots())
        data = {
            "columns": [list(column) for column in rows.columns],
            "visible": list(rows.visible),
            "max_tick": list(rows.max_ticks),
        }
        return {"rows": data, "inputs": [None], "extra": {}}

    def restore(self, data: dict[str, object], bulk_horizon: int | None = None) -> None:
        rows = data.get("rows")
        if not isinstance(rows, dict):
            raise ValueError("the state of a copy has rows")
        columns, visible, max_ticks = rows["columns"], rows["visible"], rows["max_tick"]
        if len(columns) != self.relation.width or any(len(column) != len(visible) for column in (*columns, max_ticks)):
            raise ValueError(f"rows of a checkpoint do not have {self.relation.width} columns of one length")
        self._use(CopyRows(self.relation))
        try:
            self.table.take(self._packed(Batch(tuple(columns), max_ticks, visible)))
        except OverflowError as broken:
            raise ValueError(f"rows of a checkpoint: {broken}") from broken
        if len(self.table) != len(visible):
            raise ValueError("rows of a checkpoint repeat a key")
        if bulk_horizon is not None:
            self.table.set_max_ticks(bulk_horizon)


def _fill(row: Any, values: Any) -> None:
    if isinstance(values, Same):
        row.fill(values.value)
    elif isinstance(values, np.ndarray):
        row[:] = values
    elif isinstance(values, range):
        row[:] = np.arange(values.start, values.stop, values.step)
    else:  # through `array`, which reads lists much faster than numpy
        code = "d" if row.dtype.kind == "f" else "q"
        try:
            row[:] = array(code, values)
        except TypeError:  # null, in rows that are not visible
            row[:] = array(code, [0 if value is None else value for value in values])
