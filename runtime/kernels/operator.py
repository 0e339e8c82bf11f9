"""The operator that runs a kernel: what a component sees in place of a chain of operators.

`take` makes room, hands the batch to the generated function of the in-edge, and puts everything back if a row could not
be applied. Which rows are touched, visible and dead is decided in the generated code by the rules of
`runtime/operators/row_operator.py`, with these liberties, all of them safe:

- `max_tick` is the largest tick that ever reached the row's key when it was last touched. The operators one by one
  leave out ticks that a value happens not to depend on (a contribution of 0, a value that was not the largest). Larger
  is safe: a row is sent once more, and counts as settled a little later.
- The events of a batch are applied one by one, as if each had come alone. An event that changes nothing in its row
  leaves the row's `max_tick` alone, also if an earlier one of the batch has changed it.
- An invisible row that is reached is always touched, not only if it depends on a later tick than before.
- A row that a condition rejected for good is `dead`: nothing that arrives later is looked at. Its tombstone stays as it
  was when it died; a receiver whose horizon is at least its `max_tick` covers all that killed it, so it cannot show it.

Several threads must not call one operator at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from runtime.batch import Batch
from runtime.columns import Numbers, Same, flags, ticks
from runtime.kernels.dictionary import Dictionary
from runtime.kernels.rows import Array, Integers, KernelRows
from runtime.kernels.spec import InputColumn, KernelSpec, Meta, element
from runtime.kernels.tier import Tier, tier_of
from runtime.operators.errors import Overflow
from runtime.operators.operator import Operator
from runtime.plan import PlanError, Relation, ValueType
from runtime.protocol.coverage import NO_TICK
from runtime.shown import shown_row
from runtime.values import Value

if TYPE_CHECKING:
    from runtime.rows import Rows

NATIVE_ROWS = 5_000
"""After so many rows the native tier is asked for: short programs do without."""

SMALL_BATCH = 8
"""Up to so many rows are copied into the input arrays one by one, which is faster than making arrays."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Every visible change of a batch, in order: the row's slot, whether it is still visible, and, by `column`, its
    values at that moment."""

    slots: Integers
    visible: Array
    recorded: tuple[Array, ...]
    table: KernelRows

    def __len__(self) -> int:
        return len(self.slots)

    def column(self, number: int) -> Array:
        """A physical column of the relation, texts as codes. What was not recorded never changes while it is shown."""
        recorded = self.table.spec.outputs[number].recorded
        return self.table.raw(number, self.slots) if recorded is None else self.recorded[recorded]

    def columns(self) -> tuple[list[Value], ...]:
        """All columns as plain values."""
        table = self.table
        outputs = enumerate(table.spec.outputs)
        return tuple(table.plain_values(self.column(number), output.type) for number, output in outputs)


class KernelOperator(Operator):
    """`table` is `rows` by its own type."""

    repeats_rows = True

    def __init__(self, spec: KernelSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        if len(inputs) != len(spec.inputs) or output.width != len(spec.outputs):
            raise PlanError(f"{output.name}: the kernel has other inputs or columns than the plan")
        if not all(relation.is_event for relation in inputs):
            raise PlanError(f"{output.name}: a kernel is fed by events only")
        self.spec = spec
        self._input_columns = [relation.columns for relation in inputs]
        self.dictionary = Dictionary()
        self.table = KernelRows(spec, self.dictionary)
        self.rows = cast("Rows", self.table)  # the same interface
        self._tier: Tier = tier_of(spec)
        self._load_constants()
        self._arguments: tuple[object, ...] = ()
        self._views: dict[str, memoryview] = {}
        self._output_views: tuple[tuple[memoryview, bool], ...] = ()  # of each output column, and is it by slot?
        self._generation = -1
        self._is_native = False
        self._plain_rows = 0
        self._recorded = tuple(f"change_{number}" for number in range(len(spec.recorded)))
        self._outputs = tuple(self._output(number) for number in range(len(spec.outputs)))
        self._not_numbers = [(number, kind) for number, (_, _, kind) in enumerate(self._outputs) if kind is not None]
        self._dtypes = [[np.dtype(element(column.type)) for column in columns] for columns in spec.inputs]
        self._buffers = [[np.zeros(SMALL_BATCH, dtype) for dtype in dtypes] for dtypes in self._dtypes]
        self._small_inputs = [
            [(column.number, column.type is ValueType.TEXT, buffer.data) for column, buffer in zip(*each, strict=True)]
            for each in zip(spec.inputs, self._buffers, strict=True)
        ]
        self._nothing = Batch.empty(output.width)

    def _load_constants(self) -> None:
        integers = np.array([*self.spec.integers, 0], np.int64)
        for position, text in self.spec.texts:
            integers[position] = self.dictionary.code(text)
        self.table.arrays["integers"] = integers
        self.table.arrays["floats"] = np.array([*self.spec.floats, 0.0], np.float64)
        self.table.generation += 1

    def _output(self, number: int) -> tuple[str, str | None, ValueType | None]:
        """Where an output column is by slot, where its changes are recorded, and its type if that is no number."""
        output = self.spec.outputs[number]
        recorded = None if output.recorded is None else self._recorded[output.recorded]
        is_number = output.type in (ValueType.INT, ValueType.FLOAT)
        return self.table.output_names[number], recorded, None if is_number else output.type

    @property
    def is_native(self) -> bool:
        return self._tier.native is not None

    def wait_for_native(self, timeout_s: float) -> bool:
        """Wait for the native tier: for measurements and tests; False if it did not come."""
        return self._tier.wait(timeout_s)

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        raise AssertionError("a kernel takes whole batches")

    def take(self, edge: int, batch: Batch) -> Sequence[int]:
        """Apply one batch; the touched output slots, each once, in the order in which they were first touched."""
        table, rows = self.table, len(batch.max_ticks)
        meta = table.numbers
        if not rows:
            meta[Meta.CHANGES] = 0
            return ()
        table.reserve(rows)
        native = self._tier.native
        if table.generation != self._generation or (native is not None) != self._is_native:
            self._bind(native is not None)
        if native is None:
            self._plain_rows += rows
            if self._plain_rows >= NATIVE_ROWS:
                self._tier.request()
            columns = self._plain_columns(edge, batch)
            self.spec.functions[self.spec.loops[edge]](rows, self.in_floor, *columns, *self._arguments)
        else:
            inputs = self._few_inputs(edge, batch, rows) if rows <= SMALL_BATCH else self._inputs(edge, batch)
            native[self.spec.loops[edge]](rows, self.in_floor, *inputs, *self._arguments)
        table.refresh()
        if meta[Meta.FAILED]:
            table.undo(self.spec.loops[edge])
            meta[Meta.CHANGES] = 0
            raise self._failure(edge, batch)
        return table.touched()

    def _bind(self, is_native: bool) -> None:
        """The arrays as the tier wants them: plain Python is fastest, and exact, on memoryviews."""
        arrays = [self.table.arrays[name] for name, _ in self.spec.arguments]
        arrays.append(self.table.meta)
        self._arguments = tuple(arrays) if is_native else tuple(array.data for array in arrays)
        named = self.table.arrays
        self._views = {name: named[name].data for name in ("change_slot", "change_visible", "max_tick")}
        self._output_views = tuple(
            (named[recorded or name].data, recorded is None) for name, recorded, _ in self._outputs
        )
        self._generation = self.table.generation
        self._is_native = is_native

    def _failure(self, edge: int, batch: Batch) -> Overflow:
        row = self.table.numbers[Meta.FAILED_ROW]
        reason = self.spec.reasons[self.table.numbers[Meta.FAILED] - 1]
        shown = shown_row(self._input_columns[edge], [column[row] for column in batch.columns])
        return Overflow(self.relation.name, f"row ({shown}): {reason}")

    # Input columns

    def _plain_columns(self, edge: int, batch: Batch) -> list[Sequence[Value]]:
        return [self._plain_column(column, batch.columns[column.number]) for column in self.spec.inputs[edge]]

    def _plain_column(self, column: InputColumn, values: Any) -> Sequence[Value]:
        if column.type is ValueType.TEXT:
            return self.dictionary.encode(values)
        if isinstance(values, np.ndarray):
            return np.ascontiguousarray(values, element(column.type)).data
        return values  # type: ignore[no-any-return]

    def _inputs(self, edge: int, batch: Batch) -> list[Array]:
        found: list[Array] = []
        for column, dtype in zip(self.spec.inputs[edge], self._dtypes[edge], strict=True):
            values: Any = batch.columns[column.number]
            if column.type is ValueType.TEXT:
                values = self.dictionary.encode(values)
            if isinstance(values, np.ndarray):
                found.append(np.ascontiguousarray(values, dtype))
            elif isinstance(values, range):  # the ticks of a publish
                found.append(np.arange(values.start, values.stop, values.step))
            else:  # through `array`, which reads lists much faster than numpy
                found.append(np.frombuffer(array("d" if dtype.kind == "f" else "q", values), dtype))
        return found

    def _few_inputs(self, edge: int, batch: Batch, rows: int) -> list[Array]:
        for number, is_text, view in self._small_inputs[edge]:
            values: Any = batch.columns[number]
            if is_text:
                values = self.dictionary.encode(values)
            elif type(values) is Numbers:
                values = values.tolist()
            for i in range(rows):
                view[i] = values[i]
        return self._buffers[edge]

    # What happened in the batch just taken

    def changes(self) -> Changes:
        """Every change of the batch, in order; to be read before the next one is taken."""
        table = self.table
        count = table.numbers[Meta.CHANGES]
        slots: Integers = table.arrays["change_slot"][:count].copy()
        recorded = tuple(table.arrays[name][:count].copy() for name in self._recorded)
        return Changes(slots, table.arrays["change_visible"][:count].copy(), recorded, table)

    def watch(self) -> None:
        """Nothing to prepare: a kernel always knows its changes."""

    def changed(self, touched: Sequence[int]) -> Batch:
        arrays, numbers_ = self.table.arrays, self.table.numbers
        count = numbers_[Meta.CHANGES]
        visible = flags(arrays["change_visible"][:count].copy()) if numbers_[Meta.HIDDEN] else Same(True, count)
        return Batch(self._change_columns(count), Same(NO_TICK, count), visible)

    def latest(self, touched: Sequence[int]) -> Batch:
        table = self.table
        slots: Integers = np.asarray(touched, np.int64)
        if not table.numbers[Meta.HIDDEN]:
            return Batch(self._columns_of(slots), Same(NO_TICK, len(slots)), Same(True, len(slots)))
        visible, count = table.arrays["visible"], table.numbers[Meta.CHANGES]
        went = table.arrays["change_slot"][:count][table.arrays["change_visible"][:count] == 0]
        gone = np.unique(went[visible[went] == 0])
        slots = np.concatenate([slots[visible[slots] != 0], gone])
        return Batch(self._columns_of(slots), Same(NO_TICK, len(slots)), flags(visible[slots]))

    def every_change(self, touched: Sequence[int]) -> Batch:
        """The changes, then rows that were touched without any: tombstones, and rows with another `max_tick` only."""
        if not len(touched):
            return self._nothing
        numbers_ = self.table.numbers
        if numbers_[Meta.CHANGES] == 1 and not numbers_[Meta.BARE]:
            return self._only_change()
        changes, arrays = self.changed(touched), self.table.arrays
        slots = arrays["change_slot"][: len(changes)]
        told = Batch(changes.columns, ticks(arrays["max_tick"][slots]), changes.visible)
        if not self.table.numbers[Meta.BARE]:
            return told
        all_: Integers = np.asarray(touched, np.int64)
        others = all_[arrays["is_touched"][arrays["at"][all_]] == 1]
        rest = Batch(self._columns_of(others), ticks(arrays["max_tick"][others]), flags(arrays["visible"][others]))
        return Batch.concat([told, rest])

    def _only_change(self) -> Batch:
        """All that a single event did, if it changed a row: the same as `every_change`, without arrays."""
        views, texts = self._views, self.dictionary.texts
        slot = views["change_slot"][0]
        columns: list[list[Any]] = [[view[slot if is_by_slot else 0]] for view, is_by_slot in self._output_views]
        for number, kind in self._not_numbers:
            (value,) = columns[number]
            columns[number] = [texts[value] if kind is ValueType.TEXT else value != 0]
        return Batch(tuple(columns), [views["max_tick"][slot]], Same(views["change_visible"][0] != 0, 1))

    def _change_columns(self, count: int) -> tuple[Sequence[Value], ...]:
        """Arrays that were recorded are copied: the next batch takes their place. Others are the same in all changes
        of a row."""
        arrays, slots = self.table.arrays, self.table.arrays["change_slot"][:count]
        found: list[Any] = []
        for name, recorded, kind in self._outputs:
            values = arrays[name][slots] if recorded is None else arrays[recorded][:count].copy()
            found.append(values.view(Numbers) if kind is None else self.table.plain_values(values, kind))
        return tuple(found)

    def _columns_of(self, slots: Integers) -> tuple[Sequence[Value], ...]:
        """The columns of these rows as they are."""
        arrays = self.table.arrays
        found: list[Any] = []
        for name, _, kind in self._outputs:
            values = arrays[name][slots]
            found.append(values.view(Numbers) if kind is None else self.table.plain_values(values, kind))
        return tuple(found)

    # Tombstones and checkpoints

    def forget_all(self, slots: Sequence[int]) -> None:
        self.table.forget_all(slots)

    def export(self) -> dict[str, object]:
        return {"kernel": self.spec.digest, "rows": self.table.export()}

    def restore(self, data: dict[str, object], bulk_horizon: int | None = None) -> None:
        rows = data.get("rows")
        if data.get("kernel") != self.spec.digest or not isinstance(rows, dict):
            raise ValueError("the state is that of another kernel")
        self.table.restore(rows, bulk_horizon)
        self._load_constants()
