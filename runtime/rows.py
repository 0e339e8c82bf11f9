"""A slot table: the rows of one relation as flat columns by slot.

Components keep one for the rows they publish and one for the copy of each state in-edge. A key gets the next slot
when it is first seen and keeps it until the row is forgotten; then the slot is reused. `visible`, `max_tick` and
`last_step` are columns too. "Rows touched since step s" comes from an append-only journal of (step, slot): an entry
counts only while `last_step[slot]` still equals it, so a row touched ten thousand times counts once.

Generated kernels work on these very lists. This file decides nothing: which row is touched, visible or forgotten is
the operators' and the protocol's business.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from runtime.batch import Batch
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value

JOURNAL_SLACK = 1_024
"""The journal may hold this many stale entries beyond twice the number of rows before it is compacted."""

COMPACTION_PIECE = 512
"""Journal entries examined per touch call while compacting, so that no single step pays for the whole."""

RESTORED_PIECE = 65_536
"""Rows of a checkpoint that are entered at once: other threads have to get their turn."""


class Rows:
    """Rows by slot. Columns are parallel lists of equal length; a forgotten slot is in `free` and not in `index`."""

    __slots__ = (
        "_compacting_at",
        "columns",
        "free",
        "index",
        "journal_slots",
        "journal_steps",
        "key_width",
        "last_step",
        "max_tick",
        "visible",
    )

    def __init__(self, key_width: int, width: int) -> None:
        self.key_width = key_width
        self.index: dict[Key, int] = {}
        self.columns: tuple[list[Value], ...] = tuple([] for _ in range(width))
        self.visible: list[bool] = []
        self.max_tick: list[int] = []
        self.last_step: list[int] = []
        self.free: list[int] = []
        self.journal_steps: list[int] = []
        self.journal_slots: list[int] = []
        self._compacting_at = -1  # < 0: no compaction under way

    def __len__(self) -> int:
        """Rows held, visible or not."""
        return len(self.index)

    # Slots

    def slot_of(self, key: Key) -> int:
        """The row's slot, or -1."""
        return self.index.get(key, -1)

    def slot_for(self, key: Key) -> int:
        """The row's slot; a new row is invisible, has empty values, and depends on no tick."""
        slot = self.index.get(key, -1)
        if slot >= 0:
            return slot
        if self.free:
            slot = self.free.pop()
            for column, part in zip(self.columns, key, strict=False):
                column[slot] = part
        else:
            slot = len(self.visible)
            for column, part in zip(self.columns, key, strict=False):
                column.append(part)
            for column in self.columns[self.key_width :]:
                column.append(None)
            self.visible.append(False)
            self.max_tick.append(NO_TICK)
            self.last_step.append(0)
        self.index[key] = slot
        return slot

    def is_new(self, slot: int) -> bool:
        """Has nobody written this row yet? Nothing that was computed depends on no tick at all."""
        return self.max_tick[slot] == NO_TICK

    def slots_for(self, batch: Batch) -> list[int]:
        keys = batch.keys(self.key_width)
        slots = list(map(self.index.get, keys))
        return [self.slot_for(key) if slot is None else slot for key, slot in zip(keys, slots, strict=True)]

    def key_at(self, slot: int) -> Key:
        return tuple(column[slot] for column in self.columns[: self.key_width])

    def row_at(self, slot: int) -> tuple[Value, ...]:
        """All columns, key first: for tests, deliveries and stories."""
        return tuple(column[slot] for column in self.columns)

    def forget(self, slot: int) -> None:
        """Drop a row for good (rule T2 decides when). Its journal entries die with `last_step`."""
        del self.index[self.key_at(slot)]
        for column in self.columns:
            column[slot] = None
        self.visible[slot] = False
        self.max_tick[slot] = NO_TICK
        self.last_step[slot] = 0
        self.free.append(slot)

    # Writing

    def store(self, slots: Sequence[int], batch: Batch) -> None:
        """Rows replace what the slots of their keys held: values, visibility and `max_tick`."""
        width = self.key_width
        for column, values in zip(self.columns[width:], batch.columns[width:], strict=True):
            for slot, value in zip(slots, values, strict=True):
                column[slot] = value
        for slot, seen, tick in zip(slots, batch.visible, batch.max_ticks, strict=True):
            self.visible[slot] = seen
            self.max_tick[slot] = tick

    def mark(self, slots: Iterable[int], step: int) -> None:
        """These rows were touched in this step, which is not lower than any before (rule S1)."""
        last_step, steps, journal = self.last_step, self.journal_steps, self.journal_slots
        for slot in slots:
            if last_step[slot] != step:
                last_step[slot] = step
                steps.append(step)
                journal.append(slot)
        self._compact_a_piece()

    # Reading

    def touched_since(self, step: int) -> list[int]:
        """Slots whose `last_step` is above `step`, in the order of their last touch."""
        last_step, steps, slots = self.last_step, self.journal_steps, self.journal_slots
        first = bisect_right(steps, step)
        return [slots[i] for i in range(first, len(steps)) if last_step[slots[i]] == steps[i]]

    def above(self, tick: int) -> list[int]:
        """Slots of all rows, visible or not, whose `max_tick` is above a tick."""
        max_tick = self.max_tick
        return sorted(slot for slot in self.index.values() if max_tick[slot] > tick)

    def slots(self) -> list[int]:
        """All rows, visible or not, in the order in which `export` lists them and `restore` numbers them."""
        return sorted(self.index.values())

    def hidden_among(self, slots: Sequence[int]) -> list[int]:
        """Those of these slots whose row is not visible."""
        visible = self.visible
        return [slot for slot in slots if not visible[slot]]

    def visible_slots(self) -> list[int]:
        visible = self.visible
        return sorted(slot for slot in self.index.values() if visible[slot])

    def tombstones(self) -> list[int]:
        """Slots of all invisible rows."""
        visible = self.visible
        return sorted(slot for slot in self.index.values() if not visible[slot])

    def select(self, slots: Sequence[int]) -> Batch:
        return Batch(
            tuple([column[slot] for slot in slots] for column in self.columns),
            [self.max_tick[slot] for slot in slots],
            [self.visible[slot] for slot in slots],
        )

    # Journal

    def _compact_a_piece(self) -> None:
        """Squeeze stale entries out, a piece at a time, once they outnumber the rows."""
        steps, slots, last_step = self.journal_steps, self.journal_slots, self.last_step
        if self._compacting_at < 0:
            if len(steps) <= 2 * len(self.visible) + JOURNAL_SLACK:
                return
            self._compacting_at = 0
        at = self._compacting_at
        end = min(at + COMPACTION_PIECE, len(steps))
        live = [i for i in range(at, end) if last_step[slots[i]] == steps[i]]
        kept_steps, kept_slots = [steps[i] for i in live], [slots[i] for i in live]
        steps[at:end] = kept_steps
        slots[at:end] = kept_slots
        self._compacting_at = at + len(live) if end - at == COMPACTION_PIECE else -1

    # Checkpoints: plain data, `last_step` and journal excluded (they are of one epoch)

    def export(self) -> dict[str, object]:
        slots = self.slots()
        return {
            "columns": [[column[slot] for slot in slots] for column in self.columns],
            "visible": [self.visible[slot] for slot in slots],
            "max_tick": [self.max_tick[slot] for slot in slots],
        }

    @staticmethod
    def restore(key_width: int, width: int, data: dict[str, object]) -> Rows:
        """What `export` wrote; raises ValueError if it cannot have written that."""
        columns, visible, max_tick = data["columns"], data["visible"], data["max_tick"]
        if not (isinstance(columns, list) and isinstance(visible, list) and isinstance(max_tick, list)):
            raise ValueError("rows of a checkpoint are lists")
        if len(columns) != width or any(len(column) != len(visible) for column in (*columns, max_tick)):
            raise ValueError(f"rows of a checkpoint do not have {width} columns of one length")
        made = Rows(key_width, width)
        batch = Batch(tuple(columns), max_tick, visible)
        for first in range(0, len(batch), RESTORED_PIECE):
            piece = batch.slice(first, first + RESTORED_PIECE)
            made.store(made.slots_for(piece), piece)
        if len(made) != len(visible):
            raise ValueError("rows of a checkpoint repeat a key")
        return made
