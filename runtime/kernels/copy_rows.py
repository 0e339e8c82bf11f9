"""The rows of a columnar copy: one flat array of 64-bit numbers, a row after the other, behind a table of keys.

Towards the protocol it is what `runtime/rows.py` is. A row has its columns (floats by their bits, truths as 0 and 1),
then whether it is visible, its `max_tick`, and whether the slot is in use; slots of forgotten rows are used again. The
loops of `copy_loops.py` write into the arrays but never grow them: `reserve` makes room before each batch.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runtime.batch import Batch
from runtime.columns import flags, numbers, ticks
from runtime.kernels import copy_loops
from runtime.kernels.journal import Journal
from runtime.kernels.rows import fill_table
from runtime.kernels.tier import tier_of
from runtime.plan import Relation, ValueType
from runtime.values import Key, Value

Integers = npt.NDArray[np.int64]

SLOTS_MIN = 256
BATCH_MIN = 256
NATIVE_ROWS = 2_000
"""After so many rows the native tier is asked for."""


class Meta:
    """Positions in `meta`, through which a loop and its wrapper tell each other numbers."""

    COUNT = 0  # slots that were ever in use, in and out
    FREE = 1  # of these, slots that can be used again, in and out
    STAMP = 2  # number of the last batch, in and out
    TOUCHED = 3
    CHANGES = 4
    SEEN = 5
    HIDDEN = 6
    WIDTH = 7


@dataclass(frozen=True)
class CopyLoops:
    """The module of the loops, as `Tier` wants it."""

    text: str
    digest: str
    functions: tuple[Callable[..., None], ...] = (copy_loops.loop_0, copy_loops.loop_1)

    def signature(self, loop: int) -> tuple[str, ...]:
        if loop == 0:
            return (*("int64",) * 4, "int64[:,::1]", *("int64[::1]",) * 9)
        return (*("int64",) * 3, *("int64[::1]",) * 5)


def _loops() -> CopyLoops:
    text = Path(copy_loops.__file__).read_text(encoding="utf-8")
    return CopyLoops(text, hashlib.sha256(text.encode()).hexdigest()[:24])


LOOPS = _loops()


class CopyRows:
    """`visible` and `max_tick` are views of the array, one entry a slot."""

    def __init__(self, relation: Relation) -> None:
        self.key_width = relation.key_width
        self.kinds = tuple(column.type for column in relation.columns)
        self.width = len(self.kinds)
        self.stride = self.width + 3
        self.tier = tier_of(LOOPS)
        self.meta = np.zeros(Meta.WIDTH, np.int64)
        self.numbers = self.meta.data
        self._always = int(relation.versioned)
        self._row = np.zeros((self.width + 2, 1), np.int64)
        self._row_data = self._row.data
        self._pack_row = struct.Struct(f"={self.width + 2}q").pack_into
        self._rows_taken = 0
        self._journal = Journal()
        self._capacity = 0
        self._refreshed = -1  # slots that `visible` and `max_tick` have
        self._batch_capacity = 0
        self._touched: Sequence[int] = ()
        self._state: Integers = np.zeros(0, np.int64)
        self._table: Integers = np.zeros(0, np.int64)
        self._stamps: Integers = np.zeros(0, np.int64)
        self._free: Integers = np.zeros(0, np.int64)
        self._lists: dict[str, Integers] = {}
        self._grow_slots(SLOTS_MIN)
        self._grow_batch(BATCH_MIN)

    # Capacity

    def _reserve(self, rows: int) -> None:
        wanted = self.count - self.numbers[Meta.FREE] + rows
        if wanted > self._capacity:
            self._grow_slots(max(2 * self._capacity, wanted))
        if rows > self._batch_capacity:
            self._grow_batch(max(2 * self._batch_capacity, rows))

    def _grow_slots(self, capacity: int) -> None:
        self._state = _grown(self._state, capacity * self.stride)
        self._stamps = _grown(self._stamps, capacity)
        self._free = _grown(self._free, capacity)
        self._journal.grow(capacity)
        self._capacity = capacity
        self._grid = self._state.reshape(capacity, self.stride)
        self._table = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int64)  # at most half full
        slots = np.flatnonzero(self._grid[: self.count, self.stride - 1])
        fill_table(self._table, slots, [self._grid[slots, number] for number in range(self.key_width)])
        self._gather_arrays()
        self._refresh()

    def _grow_batch(self, rows: int) -> None:
        self._lists = {name: np.zeros(rows, np.int64) for name in ("touched", "changes", "seen", "hidden")}
        self._batch_capacity = rows
        self._gather_arrays()

    def _gather_arrays(self) -> None:
        """What the loop gets with every batch."""
        self._arrays = (self._table, self._state, self._stamps, self._free, *self._lists.values(), self.meta)

    def _refresh(self) -> None:
        count = self._refreshed = self.count
        self.visible = self._grid[:count, self.width].data
        self.max_tick = self._grid[:count, self.width + 1].data

    @property
    def count(self) -> int:
        """Slots that were ever in use."""
        return self.numbers[Meta.COUNT]

    # Loops

    def take(self, batch: Integers) -> Sequence[int]:
        """Rows by column, then visible, then max_tick; the touched slots, each once, until the next batch comes."""
        rows = batch.shape[1]
        numbers = self.numbers
        if rows > self._batch_capacity or numbers[Meta.COUNT] - numbers[Meta.FREE] + rows > self._capacity:
            self._reserve(rows)
        native = self.tier.native
        if native is not None:
            native[0](rows, self.key_width, self.stride, self._always, batch, *self._arrays)
        else:
            self._rows_taken += rows
            if self._rows_taken >= NATIVE_ROWS:
                self.tier.request()
            plain = (array.data for array in self._arrays)
            copy_loops.loop_0(rows, self.key_width, self.stride, self._always, batch.data, *plain)
        if numbers[Meta.COUNT] != self._refreshed:
            self._refresh()
        touched = self._lists["touched"][: numbers[Meta.TOUCHED]]
        self._touched = touched.tolist() if rows == 1 else ticks(touched)
        return self._touched

    def take_row(self, *values: Any) -> Sequence[int] | None:
        """As `take`, for a single row of whole numbers and truths, without making arrays. None if something else is
        among them (null, in a row that is not visible): nothing has changed then."""
        try:
            self._pack_row(self._row_data, 0, *values)
        except struct.error:
            return None
        return self.take(self._row)

    def changes(self) -> Integers:
        """Positions in the last batch of rows that changed something."""
        return self._lists["changes"][: self.numbers[Meta.CHANGES]]

    def seen(self) -> Integers:
        """Of these, rows that are or were visible."""
        return self._lists["seen"][: self.numbers[Meta.SEEN]]

    def forget_all(self, slots: Sequence[int]) -> None:
        """Drop these rows for good (rule T2 decides when)."""
        wanted = np.array(slots, np.int64)
        arrays = [wanted, self._table, self._state, self._free, self.meta]
        native = self.tier.native
        if native is not None:
            native[1](len(wanted), self.key_width, self.stride, *arrays)
        else:
            copy_loops.loop_1(len(wanted), self.key_width, self.stride, *(array.data for array in arrays))

    def hidden_among(self, slots: Sequence[int]) -> list[int]:
        """Those of these slots whose row is not visible. The loop has noted them among those that it touched."""
        visible = self.visible
        if slots is not self._touched:
            return [slot for slot in slots if not visible[slot]]
        count = self.numbers[Meta.HIDDEN]
        if not count:
            return []
        hidden = self._lists["hidden"][:count].tolist()
        return [slot for slot in dict.fromkeys(hidden) if not visible[slot]]

    # The journal

    def mark(self, slots: Sequence[int], step: int) -> None:
        """These rows were touched in this step, which is not lower than any before; each is named once."""
        self._journal.mark(slots, step)

    @property
    def last_step(self) -> memoryview:
        """By slot; what was forgotten is in no step, whatever is left of it here."""
        return self._journal.last_step().data

    def touched_since(self, step: int) -> list[int]:
        """Slots whose last touch is above `step`, in the order of these touches."""
        slots = self._journal.touched_since(step)
        found: list[int] = slots[self._grid[slots, self.stride - 1] != 0].tolist()
        return found

    # Reading

    def __len__(self) -> int:
        """Rows held, visible or not."""
        return self.count - self.numbers[Meta.FREE]

    @property
    def index(self) -> dict[Key, int]:
        """Every row's slot by key: for checks, not for hot paths."""
        return {self.key_at(slot): slot for slot in self.slots()}

    @property
    def columns(self) -> tuple[list[Value], ...]:
        """All columns by slot: for checks, not for hot paths."""
        return tuple(list(column) for column in self.select(range(self.count)).columns)

    def slot_of(self, key: Key) -> int:
        """The row's slot, or -1: for checks, not for hot paths."""
        same = self._grid[: self.count, self.stride - 1] != 0
        for number, part in enumerate(key):
            same &= self._grid[: self.count, number] == part
        found = np.flatnonzero(same)
        return int(found[0]) if len(found) else -1

    def key_at(self, slot: int) -> Key:
        return tuple(self._grid[slot, : self.key_width].tolist())

    def row_at(self, slot: int) -> tuple[Value, ...]:
        """All columns, key first: for tests, deliveries and stories."""
        return self.select([slot]).rows()[0]

    def slots(self) -> list[int]:
        """All rows, visible or not."""
        return self._where(self._grid[: self.count, self.stride - 1] != 0)

    def visible_slots(self) -> list[int]:
        return self._where(self._grid[: self.count, self.width] != 0)

    def tombstones(self) -> list[int]:
        """Slots of all invisible rows."""
        used = self._grid[: self.count]
        return self._where((used[:, self.stride - 1] != 0) & (used[:, self.width] == 0))

    def above(self, tick: int) -> list[int]:
        """Slots of all rows, visible or not, whose `max_tick` is above a tick."""
        used = self._grid[: self.count]
        return self._where((used[:, self.stride - 1] != 0) & (used[:, self.width + 1] > tick))

    @staticmethod
    def _where(condition: npt.NDArray[np.bool_]) -> list[int]:
        found: list[int] = np.flatnonzero(condition).tolist()
        return found

    def select(self, slots: Sequence[int]) -> Batch:
        """Rows of these slots; numbers stay arrays."""
        chosen = self._grid[np.asarray(slots, np.int64)].T.copy()
        columns = tuple(_shown(chosen[number], kind) for number, kind in enumerate(self.kinds))
        return Batch(columns, ticks(chosen[self.width + 1]), flags(chosen[self.width] != 0))

    def set_max_ticks(self, tick: int) -> None:
        """Rows computed outside from all ticks up to this one (C6)."""
        used = self._grid[: self.count]
        used[used[:, self.stride - 1] != 0, self.width + 1] = tick


def _grown(array: Integers, size: int) -> Integers:
    grown = np.zeros(size, np.int64)
    grown[: len(array)] = array
    return grown


def _shown(values: Any, kind: ValueType) -> Sequence[Any]:
    if kind is ValueType.FLOAT:
        return numbers(values.view(np.float64))
    return flags(values != 0) if kind is ValueType.BOOL else numbers(values)
