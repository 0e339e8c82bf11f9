"""A component that takes another one's place while that one goes on serving: rule C6 without its pause.

The second one begins with a state computed elsewhere, reads on in-edges of its own, and tells nobody anything; when it
covers what the first one covers, it takes over in the middle of a round. For receivers that is a restart as any other.
`installing.py` decides when; the host is built on this.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable

from runtime.broker.hosted import RUNNING, Hosted, second_name
from runtime.broker.shell import Shell
from runtime.plan import Mode
from runtime.protocol.build import AnyComponent
from runtime.protocol.events import Instruction, ReceiverAttached, ReceiverDetached, TimerFired
from runtime.protocol.state_component import StateComponent

log = logging.getLogger("smile.host")


class Successions(Shell):
    _next_epoch: Callable[[], int]

    @abstractmethod
    def _attach_guests(self, hosted: Hosted) -> None: ...

    @abstractmethod
    def nudge(self, component: str, edge: str) -> None: ...

    # At the sender

    def attach_second(self, sender: str, edge: str) -> None:
        """One more receiver, until it is detached. Nothing that it may still ask for is trimmed (C5)."""
        hosted = self.hosted[sender]
        if edge not in hosted.second_edges:
            hosted.second_edges.add(edge)
            self._feed(hosted, ReceiverAttached(edge, Mode.PULL))

    def detach_second(self, sender: str, edge: str) -> None:
        hosted = self.hosted[sender]
        if edge in hosted.second_edges:
            hosted.second_edges.discard(edge)
            self._feed(hosted, ReceiverDetached(edge))

    def _attach_seconds(self, hosted: Hosted) -> None:
        """It has started again."""
        for edge in hosted.second_edges:
            self._feed(hosted, ReceiverAttached(edge, Mode.PULL))

    # At the receiver

    def join_second(self, name: str, sender: str, edge: str) -> None:
        """The second in-edge of this component has its sender here too."""
        self._ends[second_name(edge)] = (sender, second_name(name))
        self.attach_second(sender, second_name(edge))

    def leave_second(self, sender: str, edge: str) -> None:
        if self._ends.pop(second_name(edge), None) is not None:
            self.detach_second(sender, second_name(edge))

    def stand_by(self, name: str, component: AnyComponent, instructions: list[Instruction]) -> None:
        """Run this beside the component of the same name; `instructions` are what its restart asked for."""
        first = self.hosted[name]
        made = Hosted(first.plan, second_name(name), component, first.digest, None, None, RUNNING, stands_by=True)
        self.hosted[made.name] = made
        self._carry_out_all(made, instructions, "", None)

    def has_caught_up(self, name: str) -> bool:
        """Would a switch take nothing back? Only what runs can be ahead."""
        first, second = self.hosted[name], self.hosted[second_name(name)]
        return not first.is_running or second.component.coverage().contains(first.component.coverage())

    def switch(self, name: str) -> AnyComponent:
        """The second one serves from now on (C2: in a new epoch, higher than any that receivers know); the first one,
        which nobody needs any more. The caller then lets go of the second edges. LogError: nothing has changed."""
        epoch = self._next_epoch()
        hosted, second = self.hosted[name], self.hosted.pop(second_name(name))
        gone, component = hosted.component, second.component
        component.begin_epoch(epoch)
        component.counters.update(gone.counters)
        self._timers.forget(name)
        self._timers.rename(second.name, name)
        hosted.component = component
        hosted.state, hosted.reason, hosted.failure, hosted.failed_starts = RUNNING, "", None, 0
        hosted.began_with, hosted.lost_ticks = "a bulk install", False
        hosted.rows_since_checkpoint, hosted.checkpoint_us = 1, None
        hosted.positions.clear()
        if hosted.has_guests:
            self._attach_guests(hosted)
        self._attach_seconds(hosted)
        for edge in hosted.plan.by_name[name].in_edges:
            self.nudge(name, edge.name)
        if isinstance(component, StateComponent):  # receivers ask when they hear of a new epoch: let it be now
            for _ in range(2):  # the first of two only notes that nothing was sent
                self._feed(hosted, TimerFired("heartbeat", self._clock.wall_us()))
        log.info("a bulk install takes over", extra={"component": name, "epoch": component.epoch})
        return gone

    def drop_second(self, name: str) -> AnyComponent | None:
        """Things stay as they are."""
        gone = self.hosted.pop(second_name(name), None)
        self._timers.forget(second_name(name))
        return None if gone is None else gone.component
