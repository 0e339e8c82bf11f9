"""The operator interface: what computes, without ever seeing a message.

A component's protocol shell calls `take` with each batch that enlarges its coverage and gets back the touched output
slots. The operator owns the output rows and the input state; the shell never looks into values. Two families:
`Operator` feeds a state relation, `EventOperator` maps events to events and has no state at all.

To write one: a frozen `XSpec(OperatorSpec)` with the parameters, whose `build` returns `X(Operator)`; override `apply`
(and `keeps_events` if events of an in-edge must be remembered; `export_extra` / `restore_extra` if there is state
beyond rows and inputs; `dead_input_keys` if it can quench). One file per operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from runtime.batch import Batch
from runtime.plan import Relation
from runtime.protocol.coverage import NO_TICK
from runtime.rows import Rows
from runtime.values import Key


class EventOperator(ABC):
    """Event relation from event relations: each event survives, perhaps with other columns, or becomes silence."""

    def __init__(self, inputs: tuple[Relation, ...], output: Relation) -> None:
        self.input_relations = inputs
        self.relation = output

    @abstractmethod
    def map(self, edge: int, batch: Batch) -> Batch:
        """The surviving events, with tick, max_tick and lineage unchanged. A pure function of each row."""


class Operator(ABC):
    """State relation. `rows` is the output; `inputs[e]` is the copy of in-edge e, None for events nobody remembers.

    `repeats_rows`: does `changed` list what a row was in between? Then `latest` is something else.
    """

    repeats_rows: ClassVar[bool] = False

    def __init__(self, inputs: tuple[Relation, ...], output: Relation) -> None:
        self.input_relations = inputs
        self.relation = output
        self.rows = Rows(output.key_width, output.width)
        self.inputs: list[Rows | None] = [
            Rows(relation.key_width, relation.width) if not relation.is_event or self.keeps_events(edge) else None
            for edge, relation in enumerate(inputs)
        ]
        self._shown: set[int] = set()  # slots of visible rows, kept while somebody watches
        self.in_floor = NO_TICK
        """Kept by the shell. A versioned row's max_tick is at least this."""
        self.hidden_tick = NO_TICK
        """Kept by the operator. Rows that this incarnation never held may have vanished up to this tick: as if their
        tombstones had been forgotten, so the shell raises F to it (T2)."""

    # What an operator defines

    @abstractmethod
    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        """Compute what the batch changes; return the touched slots of `rows`, repeats allowed.

        Row i of the batch replaces row slots[i] of inputs[edge], which still holds the old row (visible = False if
        there was none); the new one is stored afterwards. `slots` is empty if inputs[edge] is None: then these are
        events, all new. Keys occur once per batch.

        Set value columns, `visible` and `max_tick` of each touched row. Touched: value or visibility changed; for a
        versioned relation: the group was reached by any row, changed or not (S1). A key that was reached gets a slot
        even if it is not visible: that is its tombstone (T1), and it counts as touched when new. `max_tick` comes from
        the rows the value depends on (batch.max_ticks, inputs[e].max_tick), never from what happened to arrive last;
        larger than necessary is safe, smaller is not. For a versioned row it is the largest that ever reached the
        group and at least `in_floor`. Check everything that can fail before changing anything: a message is applied
        wholly or not at all.
        """

    def keeps_events(self, edge: int) -> bool:
        """Must the events of this in-edge be kept in `inputs`? (State in-edges always are.)"""
        return False

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        """Keys of this batch, just applied, that can never again change anything visible here (T4)."""
        return []

    def may_forget(self, slot: int) -> bool:
        """May this invisible output row be forgotten once all receivers know of it (T2)? Not if the operator still
        computes with what is in its slot."""
        return True

    def export_extra(self) -> dict[str, object]:
        """State beyond rows and inputs, as plain data."""
        return {}

    def restore_extra(self, data: dict[str, object]) -> None:  # noqa: B027
        """Read `export_extra` back, or rebuild indexes: `rows` and `inputs` are already restored."""

    # What the shell calls

    def watch(self) -> None:
        """Somebody will ask for `changed` after every step from now on."""
        self._shown = set(self.rows.visible_slots())

    def changed(self, touched: Sequence[int]) -> Batch:
        """What the step that touched these slots changed for somebody who watches: rows that are shown now, and rows
        that were, perhaps with what they were in between. Of a row that never was visible nothing is said, and nothing
        about `max_ticks`."""
        rows, shown, told = self.rows, self._shown, []
        for slot in touched:
            if rows.visible[slot]:
                shown.add(slot)
            elif slot in shown:
                shown.remove(slot)
            else:
                continue
            told.append(slot)
        return rows.select(told)

    def latest(self, touched: Sequence[int]) -> Batch:
        """The same with each row at most once, as it is now. Asked only of operators that repeat rows."""
        raise NotImplementedError

    def every_change(self, touched: Sequence[int]) -> Batch:
        """What the step that touched these slots did, in order: each row last as it is now, tombstones included. An
        operator that knows what a row was in between lists that before."""
        return self.rows.select(touched)

    def take(self, edge: int, batch: Batch) -> Sequence[int]:
        """Apply one batch and remember it; the touched output slots, each once. Of a row that occurs several times the
        last one counts."""
        copy = self.inputs[edge]
        slots = copy.slots_for(batch) if copy is not None else []
        if len(set(slots)) < len(slots):
            last = {slot: i for i, slot in enumerate(slots)}
            slots, batch = list(last), batch.take(list(last.values()))
        touched = self.apply(edge, batch, slots)
        if copy is not None:
            copy.store(slots, batch)
        return list(dict.fromkeys(touched))

    def forget_all(self, slots: Sequence[int]) -> None:
        """T2: drop invisible rows; if a key comes back it gets a new slot."""
        for slot in slots:
            self.rows.forget(slot)

    def export(self) -> dict[str, object]:
        """The whole state as plain data, sharing nothing with it (C1)."""
        return {
            "rows": self.rows.export(),
            "inputs": [None if copy is None else copy.export() for copy in self.inputs],
            "extra": self.export_extra(),
        }

    def restore(self, data: dict[str, object], bulk_horizon: int | None = None) -> None:
        """Read `export` back into a fresh operator; ValueError if it cannot be. Bulk: every max_tick = horizon (C6)."""
        rows, inputs, extra = data.get("rows"), data.get("inputs"), data.get("extra")
        if not (isinstance(rows, dict) and isinstance(inputs, list) and isinstance(extra, dict)):
            raise ValueError("operator state has rows, inputs and extra")
        if len(inputs) != len(self.inputs):
            raise ValueError(f"operator state has {len(inputs)} inputs, the plan {len(self.inputs)}")
        self.rows = Rows.restore(self.relation.key_width, self.relation.width, rows)
        for edge, (relation, part) in enumerate(zip(self.input_relations, inputs, strict=True)):
            if (part is None) != (self.inputs[edge] is None):
                raise ValueError(f"operator state and plan disagree on the copy of in-edge {edge}")
            if isinstance(part, dict):
                self.inputs[edge] = Rows.restore(relation.key_width, relation.width, part)
        if bulk_horizon is not None:
            for table in (self.rows, *self.inputs):
                if table is not None:
                    table.max_tick[:] = [bulk_horizon] * len(table.max_tick)
        self.restore_extra(extra)
