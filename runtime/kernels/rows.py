"""The table of a kernel: rows and state by slot, in flat arrays with spare capacity.

Towards the protocol it is what `runtime/rows.py` is: slots, visibility, `max_tick`, the journal of touched rows. A slot
stands for a key that some event had; it has state from then on, and it has a *row* once `present`: a key that was
reached but cannot be seen yet has none, and one whose tombstone was forgotten has none any more. Slots are given in
order of arrival and never reused.

Kernels write into the arrays but never grow them: `reserve` makes room before each batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from runtime.batch import Batch
from runtime.columns import ticks
from runtime.kernels.dictionary import Dictionary
from runtime.kernels.journal import Journal
from runtime.kernels.spec import KernelSpec, Meta
from runtime.plan import ValueType
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value

Array = npt.NDArray[Any]  # whole numbers, floats or flags, as `KernelSpec.arguments` says
Integers = npt.NDArray[np.int64]

SLOTS_MIN = 256
FEW_SLOTS = 8
"""Up to so many touched slots are a list: single events are handled without arrays."""

BATCH_MIN = 256
HASH_LOW = 0x4F1BBCDD
HASH_HIGH = 0x42F0E1EB
HALF = 0xFFFFFFFF


def hashed(keys: Sequence[Integers]) -> Integers:
    """The hash of each key; the generated probe loop computes the same. Products of 32 and 31 bits cannot overflow."""
    mixed = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        mixed = mixed ^ key
        mixed = (mixed & HALF) * HASH_LOW ^ (mixed >> 32 & HALF) * HASH_HIGH
        mixed = mixed >> 20
    return mixed


def fill_table(table: Array, slots: Integers, keys: Sequence[Integers]) -> None:
    """Enter slots with these keys into an empty table: linear probing, all at once. Those that find their place taken
    go one further, round by round."""
    mask = len(table) - 1
    probes = hashed(keys) & mask
    while len(slots):
        is_free = table[probes] < 0
        table[probes[is_free]] = slots[is_free]  # of several that want one place, one gets it
        left = table[probes] != slots
        slots, probes = slots[left], (probes[left] + 1) & mask


class KernelRows:
    """`arrays` by the names of `KernelSpec.arguments`. `visible` and `max_tick` are views of them, one entry a slot.
    `numbers` is `meta` as Python's numbers."""

    def __init__(self, spec: KernelSpec, dictionary: Dictionary) -> None:
        self.spec = spec
        self.dictionary = dictionary
        self.key_width = len(spec.keys)
        self.meta = np.zeros(Meta.WIDTH, np.int64)
        self.numbers = self.meta.data
        self.output_names = [f"{column.where.value}_{column.number}" for column in spec.outputs]
        self.arrays: dict[str, Array] = {}
        self.generation = 0  # changes whenever arrays were replaced
        self._journal = Journal()
        self.mark = self._journal.mark
        self._capacity = 0
        self._batch_capacity = 0
        self._shown = (-1, -1)
        self._touched: Sequence[int] = ()
        self._grow_slots(SLOTS_MIN)
        self._grow_batch(BATCH_MIN)
        self.refresh()

    # Capacity

    def reserve(self, rows: int) -> None:
        """Room for a batch of so many rows, each with a new key."""
        wanted = self.numbers[Meta.COUNT] + rows
        if wanted > self._capacity:
            self._grow_slots(max(2 * self._capacity, wanted))
        if rows > self._batch_capacity:
            self._grow_batch(max(2 * self._batch_capacity, rows))

    def _grow_slots(self, capacity: int) -> None:
        count = self.count
        for (name, kind), initial in zip(self.spec.columns, self._initial_values(), strict=True):
            # Zeros come from the system as they are used; anything else has to be written, which takes its time.
            grown = np.full(capacity, initial, np.dtype(kind)) if initial else np.zeros(capacity, np.dtype(kind))
            if count:
                grown[:count] = self.arrays[name][:count]
            self.arrays[name] = grown
        self._journal.grow(capacity)
        self.arrays["at"] = np.zeros(capacity, np.int64)
        self._capacity = capacity
        size = 1 << (2 * capacity - 1).bit_length()  # at most half full
        self.arrays["table"] = np.full(size, -1, np.int32)
        self._fill_table()
        self.generation += 1

    def _initial_values(self) -> list[int | float]:
        ends = [0, 0, 0, NO_TICK, NO_TICK]  # present, visible, dead, reach_tick, max_tick
        zeros = [0] * (self.key_width + self.spec.parts)
        return [*zeros, *(column.initial for column in self.spec.state), *([0] * len(self.spec.computed)), *ends]

    def _fill_table(self) -> None:
        count = self.count
        keys = [self.arrays[f"key_{number}"][:count] for number in range(self.key_width)]
        fill_table(self.arrays["table"], np.arange(count), keys)

    def _grow_batch(self, rows: int) -> None:
        changing = self.spec.changing
        floats = sum(kind == "float64" for _, kind in changing)
        widths = {"undo_integers": len(changing) - floats, "undo_floats": floats}
        for name, kind in self.spec.arguments:
            if name in ("reached", "is_touched", "touched", "hidden") or name.startswith(("undo_", "change_")):
                self.arrays[name] = np.zeros(rows * widths.get(name, 1), np.dtype(kind))
        self._batch_capacity = rows
        self.generation += 1

    def refresh(self) -> None:
        """Show the slots that a batch has added."""
        count = self.numbers[Meta.COUNT]
        if (count, self.generation) == self._shown:
            return
        self._shown = (count, self.generation)
        self.visible = self.arrays["visible"][:count].view(np.bool_).data
        self.max_tick = self.arrays["max_tick"][:count].data

    @property
    def count(self) -> int:
        """Slots in use."""
        return self.numbers[Meta.COUNT]

    def touched(self) -> Sequence[int]:
        """The slots that the last batch touched, each once, until the next one comes."""
        count = self.numbers[Meta.TOUCHED]
        slots = self.arrays["touched"][:count]
        self._touched = slots.tolist() if count <= FEW_SLOTS else ticks(slots)
        return self._touched

    def hidden_among(self, slots: Sequence[int]) -> list[int]:
        """Those of these slots whose row is not visible. The kernel has noted them among those that it touched."""
        visible = self.arrays["visible"]
        if slots is not self._touched:
            return [slot for slot in slots if not visible[slot]]
        count = self.numbers[Meta.HIDDEN]
        if not count:
            return []
        hidden = self.arrays["hidden"][:count].tolist()
        return [slot for slot in dict.fromkeys(hidden) if not visible[slot]]

    # Undoing a batch that failed

    def undo(self, loop: int) -> None:
        """Put back what every reached slot held before the batch. Keys that it brought stay, without any state."""
        reached = int(self.meta[Meta.REACHED])
        slots = self.arrays["reached"][:reached]
        kinds = dict(self.spec.changing)
        whole = [name for name in self.spec.undone[loop] if kinds[name] != "float64"]
        floats = [name for name in self.spec.undone[loop] if kinds[name] == "float64"]
        for names, saved in ((whole, self.arrays["undo_integers"]), (floats, self.arrays["undo_floats"])):
            width = len(names)
            for number, name in enumerate(names):
                self.arrays[name][slots] = saved[number : reached * width : width]

    # Slots, as the protocol wants them

    def __len__(self) -> int:
        """Rows held, visible or not."""
        return int(np.count_nonzero(self.arrays["present"][: self.count]))

    @property
    def index(self) -> dict[Key, int]:
        """Every row's slot by key: for checks, not for hot paths."""
        return {self.key_at(slot): slot for slot in self.slots()}

    @property
    def columns(self) -> tuple[list[Value], ...]:
        """All columns by slot: for checks, not for hot paths."""
        return self._decoded(np.arange(self.count))

    def slot_of(self, key: Key) -> int:
        """The row's slot, or -1."""
        codes = [
            self.dictionary.find(part) if kind is ValueType.TEXT else part
            for part, kind in zip(key, self.spec.keys, strict=True)
        ]
        keys = [np.array([code], np.int64) for code in codes]
        table = self.arrays["table"]
        probe = int(hashed(keys)[0]) & (len(table) - 1)
        while table[probe] >= 0:
            slot = int(table[probe])
            if all(self.arrays[f"key_{number}"][slot] == code for number, code in enumerate(codes)):
                return slot if self.arrays["present"][slot] else -1
            probe = (probe + 1) & (len(table) - 1)
        return -1

    def key_at(self, slot: int) -> Key:
        return self.row_at(slot)[: self.key_width]

    def row_at(self, slot: int) -> tuple[Value, ...]:
        """All columns, key first: for tests, deliveries and stories."""
        return tuple(column[0] for column in self._decoded(np.array([slot])))

    def forget_all(self, slots: Sequence[int]) -> None:
        """Drop tombstones (rule T2 decides when). A key keeps its slot and its state."""
        self.arrays["present"][slots] = 0
        self.arrays["max_tick"][slots] = NO_TICK

    # The journal

    @property
    def last_step(self) -> memoryview:
        """By slot; what was forgotten is in no step, whatever is left of it here."""
        return self._journal.last_step().data

    def touched_since(self, step: int) -> list[int]:
        """Slots whose last touch is above `step`, in the order of these touches."""
        slots = self._journal.touched_since(step)
        found: list[int] = slots[self.arrays["present"][slots] != 0].tolist()
        return found

    # Reading

    def slots(self) -> list[int]:
        """All rows, visible or not."""
        return self._where(self.arrays["present"][: self.count] != 0)

    def visible_slots(self) -> list[int]:
        return self._where(self.arrays["visible"][: self.count] != 0)

    def tombstones(self) -> list[int]:
        """Slots of all invisible rows."""
        count = self.count
        return self._where((self.arrays["present"][:count] != 0) & (self.arrays["visible"][:count] == 0))

    def above(self, tick: int) -> list[int]:
        """Slots of all rows, visible or not, whose `max_tick` is above a tick."""
        count = self.count
        return self._where((self.arrays["present"][:count] != 0) & (self.arrays["max_tick"][:count] > tick))

    @staticmethod
    def _where(condition: npt.NDArray[np.bool_]) -> list[int]:
        found: list[int] = np.flatnonzero(condition).tolist()
        return found

    def select(self, slots: Sequence[int]) -> Batch:
        """Plain values, as generic operators want them."""
        wanted = np.array(slots, np.int64)
        return Batch(
            self._decoded(wanted),
            self.arrays["max_tick"][wanted].tolist(),
            self.arrays["visible"][wanted].view(np.bool_).tolist(),
        )

    def raw(self, number: int, slots: Integers) -> Array:
        """One output column of some slots, texts as codes."""
        return self.arrays[self.output_names[number]][slots]

    def _decoded(self, slots: Integers) -> tuple[list[Value], ...]:
        return tuple(
            self.plain_values(self.raw(number, slots), column.type) for number, column in enumerate(self.spec.outputs)
        )

    def plain_values(self, values: Array, kind: ValueType) -> list[Value]:
        """Python values of an array's elements."""
        match kind:
            case ValueType.TEXT:
                return [*self.dictionary.decode(values.tolist())]
            case ValueType.BOOL:
                return [value != 0 for value in values.tolist()]
            case _:
                return [*values.tolist()]

    # Checkpoints

    def export(self) -> dict[str, object]:
        """All slots with their state, as plain data and arrays."""
        count = self.count
        columns = {name: self.arrays[name][:count].copy() for name, _ in self.spec.columns}
        return {"columns": columns, "texts": list(self.dictionary.texts)}

    def restore(self, data: dict[str, object], bulk_horizon: int | None) -> None:
        """What `export` wrote, into a fresh table; raises ValueError if it cannot have written that."""
        columns, texts = data.get("columns"), data.get("texts")
        if not isinstance(columns, dict) or not isinstance(texts, list) or set(columns) != set(dict(self.spec.columns)):
            raise ValueError("the state of a kernel has other columns")
        for name, kind in self.spec.columns:
            if not isinstance(columns[name], np.ndarray) or columns[name].dtype != np.dtype(kind):
                raise ValueError(f"{name} of a kernel's state is no array of {kind}")
        counts = {len(column) for column in columns.values()}
        if len(counts) != 1:
            raise ValueError("the columns of a kernel's state differ in length")
        (count,) = counts
        keys, _ = distinct_keys([columns[f"key_{number}"] for number in range(self.key_width)])
        if len(keys[0]) != count:
            raise ValueError("the state of a kernel repeats a key")
        self.dictionary.replace(texts)
        self._grow_slots(max(SLOTS_MIN, 2 * count))  # with room: a broker must not wait for it at the next batch
        self.meta[Meta.COUNT] = count
        for name, _ in self.spec.columns:
            self.arrays[name][:count] = columns[name]
        if bulk_horizon is not None:
            self.arrays["reach_tick"][:count] = bulk_horizon
            present = self.arrays["present"][:count] != 0
            self.arrays["max_tick"][:count][present] = bulk_horizon
        self._fill_table()
        self.generation += 1
        self.refresh()


def distinct_keys(keys: Sequence[Integers]) -> tuple[list[Integers], Integers]:
    """Each key once, and for each of the given ones its place among them."""
    order = np.lexsort(keys)
    is_first = np.zeros(len(order), np.bool_)
    is_first[:1] = True
    for column in keys:
        ordered = column[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    places = np.empty(len(order), np.int64)
    places[order] = np.cumsum(is_first) - 1
    return [column[order[is_first]] for column in keys], places
