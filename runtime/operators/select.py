"""Select: the rows for which a predicate holds. On events a reject is silence; on state it is an invisible row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.loops.scalar import Inline, inlined
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.row_operator import RowOperator, Table, names_of
from runtime.plan import OperatorSpec, Relation
from runtime.values import Key


@dataclass(frozen=True)
class _Loop:
    is_event: bool
    condition: Inline
    only_falls: bool
    columns: tuple[int, ...]
    key: tuple[str, ...]
    values: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class SelectSpec(OperatorSpec):
    """`predicate` takes all columns of a row. `only_falls`: the checker proved that, once false, it stays false."""

    predicate: Callable[..., bool]
    only_falls: bool = False

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        (condition,), tables = inlined([self.predicate], inputs[0].width)
        assert condition is not None
        columns = tuple(range(output.width))
        names = names_of(columns)
        key, values = names[: output.key_width], names[output.key_width :]
        loop = _Loop(output.is_event, condition, self.only_falls, columns, key, values, Table.of(output))
        return Code("select.py.j2", loop, tables)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        code = self.code(inputs, output)
        return SelectEvents(code, inputs, output) if output.is_event else SelectState(code, inputs, output)


class SelectEvents(EventOperator):
    def __init__(self, code: Code, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._positions = code.load()["positions"]

    def map(self, edge: int, batch: Batch) -> Batch:
        kept: list[int] = []
        self._positions(batch.columns, range(len(batch)), kept.append)
        return batch if len(kept) == len(batch) else batch.take(kept)


class SelectState(RowOperator):
    """Every input row has an output row; the predicate decides only whether it is visible (T1)."""

    def __init__(self, code: Code, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        functions = code.load()
        self._apply = functions["apply"]
        self._holds = functions.get("holds")
        self._rejected = functions.get("rejected")

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        visible = batch.visible
        if self._holds is not None:
            shown: list[bool] = []
            self._holds(batch.columns, visible, shown.append)
            visible = shown
        self._apply(batch.columns, visible, batch.max_ticks, self.table(), touched.append)
        return touched

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        """Rows that were rejected for ever. They are not kept either: if the sender repeats one it is rejected again. A
        row that merely vanished upstream may come back."""
        dead: list[Key] = []
        if self._rejected is not None:
            self._rejected(batch.columns, batch.visible, dead.append)
            copy = self.inputs[edge]
            assert copy is not None, "state rows are remembered"
            for key in dead:
                copy.forget(copy.slot_of(key))
        return dead
