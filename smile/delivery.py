"""Hubs: what stands between the engine and the subscriptions to one view in one emit mode.

A system makes one for the first subscription and drops it after the last. Where the rows come from is the source's
business: the engine of this process, or a leaf fed by a broker (`smile/remote/source.py`). `WatchHub` passes on what
each step of the view's own component changes: no copy of the view is kept. `LeafHub` has a leaf of the protocol, which
keeps one: bounds and consistent cuts need to know what was told and what has to wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from compiler.plan.build import ViewPlan
from runtime.batch import Batch
from runtime.embedded.engine import Receive, See
from runtime.operators.copy import CopySpec
from runtime.plan import Component, Emit, Finality, InEdge
from runtime.protocol.events import Deliver
from smile.subscription import Delivery, Subscription


class Told(Protocol):
    """A leaf, as far as a hub looks into it."""

    def snapshot(self) -> Deliver: ...


class Source(Protocol):
    """Where a hub gets its rows. All methods are for one view at a time, by the name of its component or leaf."""

    def watch(self, name: str, see: See, *, latest: bool = False) -> None: ...

    def unwatch(self, name: str, see: See, *, latest: bool = False) -> None: ...

    def rows_of(self, name: str) -> Batch: ...

    def horizon_of(self, name: str) -> int: ...

    def attach(self, leaf: Component, receive: Receive, *, wants_horizon: bool) -> Told: ...

    def detach(self, leaf: str) -> None: ...


def make_hub(
    source: Source, plan: ViewPlan, mode: Emit, due: Callable[[Subscription], None], *, coalesce: bool = False
) -> Hub:
    """The cheapest hub that can tell this view in this mode. A leaf tells each row once in any case."""
    if needs_leaf(plan, mode):
        return LeafHub(source, plan, mode, due)
    return WatchHub(source, plan, mode, due, coalesce=coalesce)


def needs_leaf(plan: ViewPlan, mode: Emit) -> bool:
    """Must somebody know what was told, and what has to wait?"""
    return mode in (Emit.BOUNDS, Emit.AS_OF_HORIZON) or plan.side.layout.relation.finality is Finality.HORIZON


class Hub(ABC):
    """`source` is the component that has the view, `last` the one that tells it: if that fails, or one before it,
    subscribers must know. `due` is told of subscriptions whose callback has to run."""

    def __init__(self, engine: Source, plan: ViewPlan, due: Callable[[Subscription], None]) -> None:
        self.subscriptions: list[Subscription] = []
        self.source = self.last = plan.component
        self._engine = engine
        self._due = due

    def _tell(self, delivery: Delivery) -> None:
        for subscription in self.subscriptions:
            subscription.put(delivery)
            if subscription.has_callback:
                self._due(subscription)

    @abstractmethod
    def snapshot(self) -> Delivery:
        """What a subscription that comes now is told first."""

    @abstractmethod
    def close(self) -> None: ...


class WatchHub(Hub):
    """`emit changes`, and `emit final` where rows are final as soon as they are visible, or never.

    `coalesce`: of every published batch each row is told once, as it is after it.
    """

    def __init__(
        self, engine: Source, plan: ViewPlan, mode: Emit, due: Callable[[Subscription], None], *, coalesce: bool
    ) -> None:
        super().__init__(engine, plan, due)
        self._coalesce = coalesce
        finality = plan.side.layout.relation.finality
        assert finality is not Finality.HORIZON, "somebody has to notice when the horizon reaches a row"
        self._are_final = finality is Finality.VISIBLE
        self._only_final = mode is Emit.FINAL
        engine.watch(self.source, self._see, latest=coalesce)

    def _see(self, rows: Batch, horizon: int) -> None:
        if not self.subscriptions or not len(rows.max_ticks):
            return
        if self._only_final:
            if not self._are_final:
                return
            rows = rows.take([i for i, visible in enumerate(rows.visible) if visible])
        self._tell(self._delivery(rows, horizon, is_snapshot=False))

    def _delivery(self, rows: Batch, horizon: int, *, is_snapshot: bool) -> Delivery:
        return Delivery(is_snapshot, rows, rows.visible if self._are_final else False, horizon)

    def snapshot(self) -> Delivery:
        rows = self._engine.rows_of(self.source)
        if self._only_final and not self._are_final:
            rows = rows.slice(0, 0)
        return self._delivery(rows, self._engine.horizon_of(self.source), is_snapshot=True)

    def close(self) -> None:
        self._engine.unwatch(self.source, self._see, latest=self._coalesce)


class LeafHub(Hub):
    """`emit bounds` and `emit as of horizon`, and whatever is final only once the horizon has passed."""

    def __init__(self, engine: Source, plan: ViewPlan, mode: Emit, due: Callable[[Subscription], None]) -> None:
        super().__init__(engine, plan, due)
        self._component = leaf_of(plan, mode)
        self.last = self._component.name
        self._leaf = engine.attach(self._component, self._receive, wants_horizon=True)

    def _receive(self, told: Deliver) -> None:
        """The leaf's own snapshot is for nobody: each subscriber got one when it came."""
        self._tell(Delivery.of(told, is_snapshot=False))

    def snapshot(self) -> Delivery:
        return Delivery.of(self._leaf.snapshot(), is_snapshot=True)

    def close(self) -> None:
        self._engine.detach(self._component.name)


def leaf_of(plan: ViewPlan, mode: Emit) -> Component:
    """A subscriber's copy of a view. Events are rows like others there: their key is the tick."""
    name = f"{plan.name} emit {mode.value}"
    relation = replace(plan.side.layout.relation, is_event=False)
    edge = InEdge(f"{plan.component}->{name}", plan.component)
    return Component(name, relation, CopySpec(), (edge,), mode)
