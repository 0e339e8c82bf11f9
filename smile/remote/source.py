"""Where a hub gets its rows from when the view is in a broker: one leaf of the protocol, run by the connection.

Everything that happens to a leaf happens in the connection's own thread; `run` is the way in. A hub calls the methods
of `Source` either while it is made, or from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from compiler.plan.build import ProgramPlan, ViewPlan
from runtime.batch import Batch
from runtime.client.connection import Connection
from runtime.client.leaves import LeafHandle
from runtime.embedded.engine import Receive, See
from runtime.plan import Component, Emit, Plan
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.events import Deliver, Restarted, Stepped
from runtime.protocol.leaf import Leaf
from smile.delivery import leaf_of
from smile.errors import Closed, NotAllowed, SmileError
from smile.remote.translation import public_errors

T = TypeVar("T")

EVENTS_KEPT_MAX = 65_536
"""Events that a subscriber's leaf has told and may still hold; beyond that it goes on without them, as soon as what has
arrived by then is applied."""

REFUSED_RIGHTS = {"subscribe", "not-listed"}
"""Codes by which a broker's policy refuses to feed a leaf."""


class LeafSource:
    """One leaf. `kept` is what an earlier leaf of this view knew: then changes continue from there, and all that is
    told before `begin` waits for it. `held`: rows that `kept` has and nobody was told of (see `smile/remote/token.py`).
    """

    def __init__(
        self,
        connection: Connection,
        program: ProgramPlan,
        plan: ViewPlan,
        digest: str,
        kept: Checkpoint | None = None,
        held: Batch | None = None,
    ) -> None:
        self._connection = connection
        self._program = program
        self._plan = plan
        self._digest = digest
        self._kept = kept
        self._held = held
        self._early: list[Callable[[], None]] | None = None if kept is None else []
        self._handle: LeafHandle | None = None
        self._epoch = 0  # of the leaf when it began
        self._broken: str | None = None
        self._forgets = False
        self._is_forgetting = False
        self.streams: tuple[str, ...] = ()
        """The stream of each lineage of the leaf."""

    # For hubs

    def watch(self, name: str, see: See, *, latest: bool = False) -> None:
        assert name == self._plan.component
        width = self._plan.side.layout.relation.key_width

        def tell(told: Stepped | Deliver) -> None:
            if type(told) is Stepped:
                see(told.rows.latest(width) if latest else told.rows, told.horizon)

        self._open(leaf_of(self._plan, Emit.CHANGES), tell, watch=True)

    def unwatch(self, name: str, see: See, *, latest: bool = False) -> None:
        self.close()

    def attach(self, leaf: Component, receive: Receive, *, wants_horizon: bool) -> LeafSource:
        self._open(leaf, lambda told: self._receive(receive, told), watch=False)
        return self

    def detach(self, leaf: str) -> None:
        self.close()

    def rows_of(self, name: str) -> Batch:
        rows = self._leaf().operator.rows
        return rows.select(rows.visible_slots())

    def horizon_of(self, name: str) -> int:
        return self._leaf().horizon()

    def snapshot(self) -> Deliver:
        return self._leaf().snapshot()

    # For the system

    def run(self, function: Callable[[Leaf], T]) -> T:
        """Call this in the thread of the connection, between two messages."""
        if self._handle is None:
            raise Closed("the subscription is closed")
        with public_errors():
            return self._handle.run(function)

    def begin(self) -> None:
        """In the thread of the connection: what waited may be told."""
        early, self._early = self._early or [], None
        for tell in early:
            tell()

    @property
    def failure(self) -> SmileError | None:
        """Why the brokers do not feed this leaf any more."""
        if self._broken is not None:
            return SmileError(self._broken)
        if self._handle is None or self._handle.failure is None:
            return None
        is_right = self._handle.failure_code in REFUSED_RIGHTS
        return NotAllowed(self._handle.failure) if is_right else SmileError(self._handle.failure)

    def without_rows(self, leaf: Leaf) -> Checkpoint:
        """What a leaf of events needs to go on: which it has told, not what they said."""
        state = self._fresh.checkpoint().state
        return Checkpoint(leaf.name, leaf.edge_checkpoints(), leaf.drop_floor, leaf.in_floor, state)

    def forget_told(self) -> None:
        """In the thread of the connection, for events: whoever listens has heard of all that is there, and nobody else
        will ask for it."""
        self._forgets = True
        self._forget_if_many()

    def _forget_if_many(self) -> None:
        """Not now: the leaf may be in the middle of telling."""
        if not self._is_forgetting and len(self._leaf().operator.rows) > EVENTS_KEPT_MAX:
            self._is_forgetting = True
            self._connection.later(self._forget)

    def _forget(self) -> None:
        """Let a leaf without rows take over from one of events that has told all it has."""
        self._is_forgetting = False
        if self._handle is None or self._broken is not None:
            return
        handle, self._epoch = self._handle, 0
        self._handle = self._start(self.without_rows(handle.leaf))
        handle.close()

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    # The leaf

    def _open(self, leaf: Component, told: Callable[[Stepped | Deliver], None], *, watch: bool) -> None:
        plan = Plan((*self._program.needed_for([self._plan.component]), leaf))
        self.streams = plan.lineages[leaf.name]

        def start(kept: Checkpoint | None) -> LeafHandle:
            with public_errors():
                return self._connection.open_leaf(
                    plan, leaf, partial(self._told, told), watch=watch, digest=self._digest, kept=kept
                )

        self._start = start
        self._handle = start(self._kept)
        self._fresh = Leaf(plan, leaf.name)
        self._fresh.handle(Restarted(1))

    def _told(self, told: Callable[[Stepped | Deliver], None], what: Stepped | Deliver) -> None:
        if self._handle is not None and self._broken is None:
            epoch = self._handle.leaf.epoch
            self._epoch = self._epoch or epoch
            is_anew = self._kept is not None and isinstance(what, Deliver) and what.kind == "snapshot"
            if is_anew or epoch != self._epoch:
                # By a mistake of ours. What it tells now does not continue what was told: nobody may hear it.
                self._broken = "this process's copy of the view broke and had to start again: subscribe anew"
        if self._broken is not None:
            return
        if self._early is None:
            told(what)
            if self._forgets:
                self._forget_if_many()
        else:
            self._early.append(lambda: told(what))

    def _receive(self, receive: Receive, told: Stepped | Deliver) -> None:
        if isinstance(told, Deliver):
            held, self._held = self._held, None
            receive(told if held is None else self._with_held(told, held))

    def _with_held(self, told: Deliver, held: Batch) -> Deliver:
        """The first cut after a resumption, with the rows that were held back before it, as they are now."""
        leaf = self._leaf()
        rows, key_width = leaf.operator.rows, leaf.relation.key_width
        known = set(told.rows.keys(key_width))
        places = [(i, rows.slot_of(key)) for i, key in enumerate(held.keys(key_width)) if key not in known]
        slots = [slot for _, slot in places if slot >= 0]
        gone = held.take([i for i, slot in places if slot < 0])  # forgotten since: not visible, whatever it was
        gone = replace(gone, visible=[False] * len(gone))
        final = (*(False for _ in range(len(gone))), *(leaf.is_final(slot, told.horizon) for slot in slots))
        return replace(told, rows=Batch.concat([gone, rows.select(slots), told.rows]), final=(*final, *told.final))

    def _leaf(self) -> Leaf:
        assert self._handle is not None
        return self._handle.leaf
