"""Copy: the same rows again. A subscriber's leaf is one; so is a relay in another broker.

Fed by state, the copy of the in-edge and the output are one table: a view is not kept twice at its subscriber.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.plan import OperatorSpec, Relation


@dataclass(frozen=True, slots=True)
class CopySpec(OperatorSpec):
    """`columnar`: use arrays where the columns allow it."""

    columnar: bool = True

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        from runtime.kernels.copy import ColumnarCopy, fits  # it needs the operator interface, as this file does

        return ColumnarCopy(inputs, output) if self.columnar and fits(output) else Copy(inputs, output)


class Copy(Operator):
    """A row that occurs several times in a batch changes several times: whoever watches sees all of them."""

    repeats_rows = True

    def __init__(self, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self.inputs = [self.rows]  # events are copied too: their table is the output
        self._taken = Batch.empty(output.width)
        self._changes: list[int] = []  # positions in `_taken` of rows that changed something
        self._seen_changes: list[int] = []  # of these, rows that are or were visible, and have other values

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        raise AssertionError("a copy takes rows one after the other")

    def take(self, edge: int, batch: Batch) -> list[int]:
        """Touched: whatever changes, `max_tick` included: it must reach the next hop."""
        rows, always = self.rows, self.relation.versioned
        touched: dict[int, None] = {}
        changes: list[int] = []
        seen: list[int] = []
        new_rows = zip(rows.slots_for(batch), batch.rows(), batch.visible, batch.max_ticks, strict=True)
        for i, (slot, row, visible, max_tick) in enumerate(new_rows):
            was_visible = rows.visible[slot]
            is_news = always or was_visible != visible or rows.row_at(slot) != row
            if not is_news and rows.max_tick[slot] == max_tick:
                continue
            for column, value in zip(rows.columns, row, strict=True):
                column[slot] = value
            rows.visible[slot] = bool(visible)
            rows.max_tick[slot] = max_tick
            touched[slot] = None
            changes.append(i)
            if is_news and (visible or was_visible):
                seen.append(i)
        self._taken, self._changes, self._seen_changes = batch, changes, seen
        return list(touched)

    def watch(self) -> None:
        """Nothing to prepare: the changes of the last batch are always known."""

    def changed(self, touched: Sequence[int]) -> Batch:
        return self._changes_at(self._seen_changes)

    def latest(self, touched: Sequence[int]) -> Batch:
        return self.changed(touched).latest(self.relation.key_width)

    def every_change(self, touched: Sequence[int]) -> Batch:
        return self._changes_at(self._changes)

    def _changes_at(self, positions: list[int]) -> Batch:
        taken = self._taken
        chosen = taken if len(positions) == len(taken) else taken.take(positions)
        return Batch(chosen.columns, chosen.max_ticks, chosen.visible)  # no lineages: the copy of events is a state

    def export(self) -> dict[str, object]:
        return {"rows": self.rows.export(), "inputs": [None], "extra": {}}

    def restore(self, data: dict[str, object], bulk_horizon: int | None = None) -> None:
        self.inputs = [None]
        super().restore({**data, "inputs": [None]}, bulk_horizon)
        self.inputs = [self.rows]
