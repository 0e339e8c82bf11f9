"""The subscriber's leaf: a copy of a view that tells a client what it sees.

Snapshot first, then changes. A leaf is a component like any other, so it resumes by its checkpoint: token and rows
belong together (C7). The four emit modes differ only in what is held back and what is added to a delivery. A leaf that
emits changes and is watched delivers its first snapshot only: `Stepped` has all that follows, every change in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Literal

from runtime import plan as plans
from runtime.batch import Batch
from runtime.plan import Emit, Finality, StreamSpec
from runtime.protocol.bounds import Bounds, Stripe
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import NO_TICK
from runtime.protocol.events import Deliver, Token
from runtime.protocol.state_component import StateComponent
from runtime.values import Key


class Leaf(StateComponent):
    """`delivered_step`: the client has been told everything up to this step of our epoch."""

    def __init__(self, plan: plans.Plan, name: str) -> None:
        super().__init__(plan, name)
        assert self.plan.emit is not None
        self.emit_mode = self.plan.emit
        specs = [plan.by_name[stream].operator for stream in plan.lineages[name]]
        stripes = [Stripe(spec.modulus, spec.residue) for spec in specs if isinstance(spec, StreamSpec)]
        self._bounds = Bounds(self.relation, stripes)
        self.delivered_step = 0
        self._must_send_snapshot = True
        self._highest_max_tick = NO_TICK
        self._says_when_settled = self.emit_mode is Emit.BOUNDS or self.relation.finality is Finality.HORIZON
        self._awaiting_horizon: list[tuple[int, int]] = []  # (max_tick, slot) of rows that run ahead of it: a heap
        self._told = bytearray()  # by slot: was the client told that this row is there?
        self._news: dict[Key, None] = {}  # of cuts: rows that are not what they were at the last one

    def token(self) -> Token:
        """C7: valid only with the rows of the same moment."""
        return Token(self.epoch, self.step, self.coverage())

    def _load(self, checkpoint: Checkpoint | None) -> None:
        super()._load(checkpoint)
        self.forgets_at_once = False  # only what was told
        rows = self.operator.rows
        self.delivered_step = 0
        self._must_send_snapshot = checkpoint is None
        self._highest_max_tick = max(rows.max_tick, default=NO_TICK)
        self._awaiting_horizon = []
        if checkpoint is not None:  # what was settled then has been told
            horizon = min(edge.coverage.horizon() for edge in checkpoint.edges)
            ahead = [s for s in rows.visible_slots() if max(rows.max_tick[s], checkpoint.in_floor) > horizon]
            self._await_horizon(ahead)
        self._told = bytearray()
        self._note_told(rows.visible_slots() if checkpoint is not None else ())
        self._news = {}

    def _stepped(self, touched: Sequence[int]) -> bool:
        """Whoever watches sees every change of a step, so that only the first snapshot has to be delivered."""
        if self.watches and not self._must_send_snapshot and self.emit_mode is Emit.CHANGES:
            self.delivered_step = self.step
            return True
        is_first = self._must_send_snapshot
        match self.emit_mode:
            case Emit.CHANGES | Emit.BOUNDS:
                self._await_horizon(touched)
                self._deliver(list(dict.fromkeys([*touched, *self._now_settled()])))
            case Emit.FINAL:
                self._deliver_final(touched)
            case Emit.AS_OF_HORIZON:
                max_tick = self.operator.rows.max_tick
                self._highest_max_tick = max([self._highest_max_tick, *(max_tick[slot] for slot in touched)])
                self._news.update(dict.fromkeys(self.operator.changed(touched).keys(self.relation.key_width)))
                if self.is_cut():
                    self._deliver(self._with_news(self.touched_since(self.delivered_step)))
        return self._must_send_snapshot or not is_first

    def _watch_ended(self) -> None:
        """Those who watched know what is there."""
        self._note_told(self.operator.rows.visible_slots())

    def is_cut(self) -> bool:
        """Section 8: every row is as of the horizon, so together they are the view of all ticks up to it."""
        return max(self._highest_max_tick, self.in_floor) <= self.horizon()

    def _deliver(self, touched: list[int]) -> None:
        """Everything that changed since the last delivery. An empty cut is news too: its horizon has moved."""
        rows = self.operator.rows
        kind: Literal["snapshot", "changes"] = "changes"
        if self._must_send_snapshot:
            kind, slots = "snapshot", rows.visible_slots()
        else:
            slots = [slot for slot in touched if rows.visible[slot] or self._was_told(slot)]
        self._must_send_snapshot = False
        self.delivered_step = self.step
        if slots or kind == "snapshot" or self.emit_mode is Emit.AS_OF_HORIZON:
            self._note_told(slots)
            self._hand_over(kind, slots)

    def _with_news(self, slots: list[int]) -> list[int]:
        """A row that only got a later tick, as after a restart of its sender, has been told already."""
        news, self._news = self._news, {}
        keys = self.operator.rows.select(slots).keys(self.relation.key_width)
        return [slot for slot, key in zip(slots, keys, strict=True) if key in news]

    def _was_told(self, slot: int) -> bool:
        return slot < len(self._told) and self._told[slot] != 0

    def _note_told(self, slots: Sequence[int]) -> None:
        """So that a row that has vanished is told once, not whenever something happens to its tombstone."""
        visible, told = self.operator.rows.visible, self._told
        for slot in slots:
            if slot >= len(told):
                told.extend(bytes(slot + 1))
            told[slot] = bool(visible[slot])

    def _deliver_final(self, touched: Sequence[int]) -> None:
        """Only rows that can no longer change, each once."""
        rows = self.operator.rows
        slots: list[int] = []
        if self.relation.finality is Finality.VISIBLE:
            slots = [slot for slot in touched if rows.visible[slot]]
        elif self.relation.finality is Finality.HORIZON:
            self._await_horizon(touched)
            slots = self._now_settled()
        kind: Literal["snapshot", "changes"] = "snapshot" if self._must_send_snapshot else "changes"
        self.delivered_step = self.step
        if slots or self._must_send_snapshot:
            self._must_send_snapshot = False
            self._hand_over(kind, slots)

    def _await_horizon(self, slots: Sequence[int]) -> None:
        """These rows get exact, or final, when the horizon reaches them: that is news, though no value changes."""
        rows = self.operator.rows
        if self._says_when_settled:
            for slot in slots:
                if rows.visible[slot]:
                    heappush(self._awaiting_horizon, (rows.max_tick[slot], slot))

    def _now_settled(self) -> list[int]:
        """Rows whose last max_tick the horizon has reached; entries that a later touch has replaced do not count."""
        rows, horizon = self.operator.rows, self.horizon()
        found: dict[int, None] = {}
        if self.in_floor > horizon:
            return []
        while self._awaiting_horizon and self._awaiting_horizon[0][0] <= horizon:
            tick, slot = heappop(self._awaiting_horizon)
            if rows.visible[slot] and rows.max_tick[slot] == tick:
                found[slot] = None
        return list(found)

    def is_final(self, slot: int, horizon: int) -> bool:
        rows = self.operator.rows
        match self.relation.finality:
            case Finality.VISIBLE:
                return rows.visible[slot]
            case Finality.HORIZON:
                return rows.visible[slot] and max(rows.max_tick[slot], self.in_floor) <= horizon
            case Finality.NEVER:
                return False

    def _hand_over(self, kind: Literal["snapshot", "changes"], slots: list[int]) -> None:
        self.emit(self._delivery(kind, slots))

    def snapshot(self) -> Deliver:
        """All that the clients of this leaf have been told so far: what one that joins them is told first."""
        rows, horizon = self.operator.rows, self.horizon()
        slots = [slot for slot in rows.visible_slots() if rows.last_step[slot] <= self.delivered_step]
        if self.emit_mode is Emit.FINAL:
            slots = [slot for slot in slots if self.is_final(slot, horizon)]
        return self._delivery("snapshot", slots)

    def _delivery(self, kind: Literal["snapshot", "changes"], slots: list[int]) -> Deliver:
        horizon = self.horizon()
        batch: Batch = self.operator.rows.select(slots)
        low = high = None
        if self.emit_mode is Emit.BOUNDS:
            low, high = self._bounds.of(batch, self.coverage(), horizon, self.in_floor)
        final = tuple(self.is_final(slot, horizon) for slot in slots)
        return Deliver(kind, batch, horizon, final, self.token(), low, high)

    def is_forgettable(self, slot: int, limit: int) -> bool:
        """A row that vanished must first have been told."""
        if self.delivered_step < self.step and self.operator.rows.last_step[slot] > self.delivered_step:
            return False
        return super().is_forgettable(slot, limit)
