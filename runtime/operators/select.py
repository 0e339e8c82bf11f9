"""Select: the rows for which a predicate holds. On events a reject is silence; on state it is an invisible row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.row_operator import RowOperator
from runtime.plan import OperatorSpec, Relation
from runtime.values import Key


@dataclass(frozen=True, slots=True)
class SelectSpec(OperatorSpec):
    """`predicate` takes all columns of a row. `only_falls`: the checker proved that, once false, it stays false."""

    predicate: Callable[..., bool]
    only_falls: bool = False

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        if output.is_event:
            return SelectEvents(self, inputs, output)
        return SelectState(self, inputs, output)


class SelectEvents(EventOperator):
    def __init__(self, spec: SelectSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._predicate = spec.predicate

    def map(self, edge: int, batch: Batch) -> Batch:
        keep = [i for i, row in enumerate(batch.rows()) if self._predicate(*row)]
        return batch if len(keep) == len(batch) else batch.take(keep)


class SelectState(RowOperator):
    """Every input row has an output row; the predicate decides only whether it is visible (T1)."""

    def __init__(self, spec: SelectSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._predicate = spec.predicate
        self._only_falls = spec.only_falls

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        new_rows = batch.rows()
        # The predicate could fail, so all of it runs before anything changes. A vanished row may have nulls.
        visible = [seen and self._predicate(*row) for seen, row in zip(batch.visible, new_rows, strict=True)]
        touched: list[int] = []
        key_width = self.relation.key_width
        for i, row in enumerate(new_rows):
            self.put(row[:key_width], row[key_width:], visible[i], batch.max_ticks[i], touched)
        return touched

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        """Rows that were rejected for ever. A row that merely vanished upstream may come back."""
        if not self._only_falls:
            return []
        keys = batch.keys(self.relation.key_width)
        new_rows = batch.rows()
        return [keys[i] for i, seen in enumerate(batch.visible) if seen and not self._predicate(*new_rows[i])]
