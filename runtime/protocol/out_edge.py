"""The sending end of an edge: what little a sender remembers about a receiver, none of it durable.

A receiver that comes back with a newer epoch is a stranger again. Messages of an incarnation that a newer one has
replaced are not answered: two incarnations of a receiver that must both be served need two edges.
"""

from __future__ import annotations

from runtime.plan import Mode
from runtime.protocol.coverage import NO_TICK
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import NO_EPOCH, Ack
from runtime.values import Key


class OutEdge:
    def __init__(self, name: str, mode: Mode) -> None:
        self.name = name
        self.mode = mode
        self.receiver_epoch = NO_EPOCH
        self.push_attempt = 0
        self.is_pushing = False

    def meet(self, receiver_epoch: int) -> bool:
        """Is this from the newest incarnation of the receiver we know? A newer one starts with a clean slate."""
        if receiver_epoch < self.receiver_epoch:
            return False
        if receiver_epoch > self.receiver_epoch:
            self.receiver_epoch = receiver_epoch
            self.forget_receiver()
        return True

    def forget_receiver(self) -> None:
        self.push_attempt = 0


class EventOutEdge(OutEdge):
    """`wanted`: ticks the receiver asked for and we no longer hold; passed on when upstream answers.

    `durable_horizon` is None until the receiver reports a durable checkpoint: until then nothing is trimmed (C5).
    """

    def __init__(self, name: str, mode: Mode, lineages_count: int) -> None:
        super().__init__(name, mode)
        self._lineages_count = lineages_count
        self.wanted = LineageCoverage.empty(lineages_count)
        self.acked = LineageCoverage.empty(lineages_count)
        self.durable_horizon: int | None = None
        self.is_reading = False  # streams: a log read for this edge is under way

    def forget_receiver(self) -> None:
        super().forget_receiver()
        self.wanted = LineageCoverage.empty(self._lineages_count)
        self.acked = LineageCoverage.empty(self._lineages_count)
        self.durable_horizon = None

    def note_durable(self, horizon: int) -> None:
        """C4, C5: messages may arrive out of order, checkpoints only advance."""
        self.durable_horizon = horizon if self.durable_horizon is None else max(horizon, self.durable_horizon)

    def acknowledge(self, coverage: LineageCoverage) -> None:
        """Push: these ticks need not be repeated."""
        if self.acked.update(coverage):
            self.push_attempt = 0


class StateOutEdge(OutEdge):
    """`sent_step`: steps up to here were sent as they happened. `acked` is of the sender's present epoch only (T2).
    `every_change`: the receiver wants to see what happened within a step too."""

    def __init__(self, name: str, mode: Mode, sent_step: int, *, every_change: bool = False) -> None:
        super().__init__(name, mode)
        self.sent_step = sent_step
        self.every_change = every_change
        self.sent_since_heartbeat = False
        self.acked_step: int | None = None
        self.acked_horizon = NO_TICK
        self.quenched: set[Key] = set()

    def forget_receiver(self) -> None:
        super().forget_receiver()
        self.acked_step = None
        self.acked_horizon = NO_TICK
        self.forget_quench()

    def forget_quench(self) -> None:
        """T4: a quench is the word of one incarnation and dies with it."""
        self.quenched.clear()

    @property
    def quench_epoch(self) -> int | None:
        """T4: what every message to a receiver with quenched keys carries."""
        return self.receiver_epoch if self.quenched else None

    def acknowledge(self, ack: Ack, my_epoch: int) -> bool:
        """T2: counts only for my present epoch. True if it says something new."""
        if ack.adopted_epoch != my_epoch:
            return False
        is_news = ack.applied_step > (self.acked_step or 0) or ack.horizon > self.acked_horizon
        self.acked_step = max(self.acked_step or 0, ack.applied_step)
        self.acked_horizon = max(self.acked_horizon, ack.horizon)
        return is_news or self.acked_step == 0

    def add_quench(self, keys: tuple[Key, ...], keys_max: int) -> bool:
        """T4, T5: leave these keys out on this edge from now on. Beyond the bound they are simply sent."""
        before = len(self.quenched)
        for key in keys:
            if len(self.quenched) >= keys_max:
                break
            self.quenched.add(key)
        return len(self.quenched) > before
