"""Bulk installs into a running broker (C6): a state that was computed elsewhere is received, built, caught up, and
switched in.

Whoever installs first asks the broker to *hold*: a second set of in-edges is attached, so that nothing above the
horizon of the computation is trimmed however long it takes. Then the state comes in parts. It is decoded and built in a
thread, beside the loop; then `successors.py` runs it as a second component until it covers what the first one covers.
A broker that is killed meanwhile starts with the old state; after the switch, with the old checkpoint or the new one.
What was received is never on disk.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from runtime.broker.dismantling import dismantled
from runtime.broker.host import Host
from runtime.broker.hosted import second_name
from runtime.broker.timers import Clock
from runtime.checkpoints import codec
from runtime.log.stream_log import LogError
from runtime.plan import InEdge, StreamSpec
from runtime.protocol.build import AnyComponent, build_component
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import TICK_MAX
from runtime.protocol.errors import BadCheckpoint
from runtime.protocol.events import Instruction, Restarted
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import NO_EPOCH
from runtime.protocol.receiver import Receiver
from runtime.wire.framing import Buffer

log = logging.getLogger("smile.install")

INSTALLS_MAX = 16
"""Installs under way at once in one broker; further ones are refused."""

INSTALL_BYTES_MAX = 1024**3
"""One state, encoded. It is in memory twice while it is built."""

INSTALL_SILENT_US = 6 * 3_600 * 1_000_000
"""An install whose parts do not come for so long is given up, though its owner is still connected: its logs grow. A
bulk computation that takes longer says `Hold` again meanwhile."""

SWITCH_INTERVAL_S = 0.000_5
"""While a thread builds, it gives way to the loop after this."""

HOLDING, HELD, RECEIVING = "holding", "held", "receiving"
BUILDING, CATCHING_UP = "building", "catching up"
INSTALLED, FAILED = "installed", "failed"

Refusal = tuple[str, str]


class Far(Protocol):
    """Second in-edges whose senders are on other brokers."""

    def attach_second(self, edge: str, sender: str, receiver: str) -> None: ...

    def detach_second(self, edge: str) -> None: ...

    def is_attached(self, edge: str) -> bool: ...


class Shelf(Protocol):
    """What is asked of checkpoints (`checkpointing.py`)."""

    def acknowledged(self, component: str, digest: str) -> int: ...

    def hasten(self) -> None: ...


@dataclass(slots=True)
class Built:
    """What the thread leaves behind: a component and what its restart asked for, or why there is none."""

    component: AnyComponent | None = None
    instructions: list[Instruction] = field(default_factory=list)
    reason: str = ""


@dataclass(slots=True)
class Install:
    """`owner` is the peer that has not sent everything yet; with its connection its install goes."""

    component: str
    owner: bytes
    began_us: int
    heard_us: int
    state: str = HOLDING
    reason: str = ""
    acknowledged: int = -1
    data: bytearray = field(default_factory=bytearray)
    received: int = 0
    thread: threading.Thread | None = None
    built: Built = field(default_factory=Built)
    ended_us: int = 0


class Installing:
    def __init__(
        self,
        host: Host,
        far: Far,
        shelf: Shelf | None,
        digests: Mapping[str, str],
        next_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._host = host
        self._far = far
        self._shelf = shelf
        self._digests = digests
        self._next_epoch = next_epoch
        self._clock = clock
        self._under_way: dict[str, Install] = {}
        self._ended: dict[str, Install] = {}
        self._leaving: list[Iterator[None]] = []
        self._switch_interval_s = sys.getswitchinterval()

    @property
    def is_building(self) -> bool:
        """Then this process has a thread that may not be in the middle of something when it forks."""
        return any(one.state == BUILDING for one in self._under_way.values())

    @property
    def is_busy(self) -> bool:
        """Is there something to do in the next round without waiting?"""
        return bool(self._leaving)

    # What is asked for

    def hold(self, owner: bytes, component: str, digest: str) -> Refusal | None:
        """Begin. Asked again: the owner is still there."""
        hosted = self._host.hosted.get(component)
        if hosted is None or hosted.stands_by or hosted.log is not None:
            return "unknown-component", f"`{component}` is no view that this broker computes"
        if digest != self._digests.get(component):
            return "other-deployment", f"`{component}` is another one here: the deployment has changed"
        now_us = self._clock.steady_us()
        known = self._under_way.get(component)
        if known is not None:
            if known.owner != owner:
                return "busy", f"a bulk install of `{component}` is under way"
            known.heard_us = now_us
            return None
        if len(self._under_way) >= INSTALLS_MAX:
            return "busy", f"{INSTALLS_MAX} bulk installs are under way"
        made = Install(component, owner, now_us, now_us)
        self._under_way[component] = made
        hosted.is_held = True
        for edge in self._event_edges(made):
            self._attach(made, edge)
        return None

    def part(self, owner: bytes, component: str, offset: int, total: int, data: Buffer) -> Refusal | None:
        """The next bytes of the state; with the last of `total` it is built."""
        made = self._under_way.get(component)
        if made is None or made.owner != owner:
            return "not-held", f"no bulk install of `{component}` is under way: begin again"
        if made.state not in (HELD, RECEIVING):
            return "not-held", f"the bulk install of `{component}` is {made.state}"
        if total > INSTALL_BYTES_MAX:
            self._end(made, "too large")
            return "too-large", f"a state of {total} bytes; at most {INSTALL_BYTES_MAX} are possible"
        if made.state == HELD:
            made.data, made.state = bytearray(total), RECEIVING
        if total != len(made.data) or offset != made.received or offset + len(data) > total or not data:
            self._end(made, "its parts do not fit together")
            return "bad-part", "parts come in order, and their lengths add up: begin again"
        made.data[offset : offset + len(data)] = data
        made.received += len(data)
        made.heard_us = self._clock.steady_us()
        if made.received == total:
            self._build(made)
        return None

    def release(self, owner: bytes, component: str | None = None) -> None:
        """Give up what has not been received completely: this one, or all of a peer that has left."""
        for made in list(self._under_way.values()):
            if made.owner == owner and component in (None, made.component) and made.state in (HOLDING, HELD, RECEIVING):
                self._end(made, "given up before everything was there")

    def status(self) -> dict[str, Any]:
        """By component, the last install of each."""
        said = {}
        for one in (*self._ended.values(), *self._under_way.values()):
            ended_us = one.ended_us or self._clock.steady_us()
            hosted = self._host.hosted.get(one.component)
            said[one.component] = {
                "state": one.state,
                "reason": one.reason,
                "bytes": one.received,
                "took_us": ended_us - one.began_us,
                "is_durable": one.state == INSTALLED and hosted is not None and hosted.checkpoint_us is not None,
            }
        return said

    # Every round

    def poll(self) -> None:
        """Costs nothing while there is no install."""
        if not self._leaving and not self._under_way:
            return
        if self._leaving and next(self._leaving[-1], self) is self:
            self._leaving.pop()
        for made in list(self._under_way.values()):
            if made.state == CATCHING_UP:
                self._watch(made)
            elif made.state == BUILDING:
                if made.thread is not None and not made.thread.is_alive():
                    self._stand_by(made)
            elif self._clock.steady_us() - made.heard_us > INSTALL_SILENT_US:
                self._end(made, "nothing was heard of it for too long")
            elif made.state == HOLDING and all(map(self._is_attached, self._event_edges(made))):
                self._held(made)

    def _held(self, made: Install) -> None:
        """From now on nothing is trimmed that a state not older than this would need (C5)."""
        if self._shelf is not None:
            made.acknowledged = self._shelf.acknowledged(made.component, self._digests[made.component])
        if made.acknowledged == TICK_MAX:  # nobody knows; what is missing shows as trimmed when it is asked for
            made.acknowledged = -1
        made.state = HELD

    def _build(self, made: Install) -> None:
        plan = self._host.hosted[made.component].plan
        try:
            epoch, now_us = self._next_epoch(), self._clock.wall_us()
        except LogError as error:
            self._end(made, str(error))
            return
        reached_tick = self._reached_tick(made)
        if not self.is_building:
            self._switch_interval_s = sys.getswitchinterval()
        made.state = BUILDING

        def build() -> None:
            try:
                checkpoint = Checkpoint.from_wire(codec.decode(made.data, gives_way=True))
                _check_bulk(checkpoint, reached_tick, made.acknowledged)
                component = build_component(plan, made.component)
                made.built.instructions = component.handle(Restarted(epoch, now_us, checkpoint, made.acknowledged))
                made.built.component = component
            except (ValueError, BadCheckpoint) as broken:
                made.built.reason = str(broken)
            except Exception as broken:  # a mistake of ours costs the install, not the broker
                log.exception("cannot be built", extra={"component": made.component})
                made.built.reason = f"{type(broken).__name__}: {broken}"

        gc.disable()  # or it would look at millions of new objects while everybody waits
        sys.setswitchinterval(min(self._switch_interval_s, SWITCH_INTERVAL_S))
        made.thread = threading.Thread(target=build, name="smile-install", daemon=True)
        made.thread.start()

    def _stand_by(self, made: Install) -> None:
        made.thread, made.data, made.state = None, bytearray(), CATCHING_UP
        if not self.is_building:
            gc.freeze()  # what was built stays: a collection need not look at it
            gc.enable()
            sys.setswitchinterval(self._switch_interval_s)
        if made.built.component is None:
            self._end(made, made.built.reason)
            return
        for edge in self._in_edges(made):
            self._attach(made, edge)
        self._host.stand_by(made.component, made.built.component, made.built.instructions)
        made.built = Built()

    def _watch(self, made: Install) -> None:
        second = self._host.hosted[second_name(made.component)]
        if not second.is_running:
            self._end(made, second.reason)
        elif second.failure is not None:
            self._end(made, second.failure.reason)
        elif second.lost_ticks:
            self._end(made, "ticks after its horizon have left the log: compute it again, as of a later tick")
        elif self._host.has_caught_up(made.component):
            self._switch(made)

    def _switch(self, made: Install) -> None:
        try:
            gone = self._host.switch(made.component)
        except LogError as error:  # no new epoch
            self._end(made, str(error))
            return
        self._leaving.append(dismantled(gone))
        if self._shelf is not None:
            self._shelf.hasten()
        self._end(made, "")

    def _end(self, made: Install, reason: str) -> None:
        made.state, made.reason = FAILED if reason else INSTALLED, reason
        made.ended_us = self._clock.steady_us()
        made.data, made.owner = bytearray(), b""
        if reason:
            log.warning("not installed: %s", reason, extra={"component": made.component})
        for edge in self._in_edges(made):
            self._detach(edge)
        gone = self._host.drop_second(made.component)
        if gone is not None:
            self._leaving.append(dismantled(gone))
        self._host.hosted[made.component].is_held = False
        del self._under_way[made.component]
        self._ended[made.component] = made

    def close(self) -> None:
        """The broker stops: what is under way was never anywhere but here."""
        if self.is_building:
            gc.enable()
            sys.setswitchinterval(self._switch_interval_s)
        self._under_way.clear()

    def _reached_tick(self, made: Install) -> int:
        """No state as of a later tick can be right now: its streams may still have events up to then. Told by senders
        here, by what the component has heard, and by the clock, since a component that has stopped hears nothing."""
        hosted = self._host.hosted[made.component]
        assert isinstance(hosted.component, Receiver)
        plan, reached = hosted.plan, TICK_MAX
        for edge in self._in_edges(made):
            known = hosted.component.in_edges.get(edge.name)  # none if it could never start
            sender = self._host.hosted.get(edge.sender)
            heard = [
                coverage for coverage in (known and known.coverage, sender and sender.component.coverage()) if coverage
            ]
            for at, stream in enumerate(plan.lineages[edge.sender]):
                spec = plan.by_name[stream].operator
                assert isinstance(spec, StreamSpec)
                now_tick = (self._clock.wall_us() + 1) * spec.ticks_per_us - 1
                reached = min(reached, max([now_tick, *(coverage[at].highest() for coverage in heard)]))
        return reached

    # Edges

    def _in_edges(self, made: Install) -> tuple[InEdge, ...]:
        return self._host.hosted[made.component].plan.by_name[made.component].in_edges

    def _event_edges(self, made: Install) -> list[InEdge]:
        """Only what events are answered from is trimmed."""
        plan = self._host.hosted[made.component].plan
        return [edge for edge in self._in_edges(made) if plan.by_name[edge.sender].relation.is_event]

    def _attach(self, made: Install, edge: InEdge) -> None:
        if edge.sender in self._host.hosted:
            self._host.join_second(made.component, edge.sender, edge.name)
        else:
            self._far.attach_second(second_name(edge.name), edge.sender, second_name(made.component))

    def _detach(self, edge: InEdge) -> None:
        if edge.sender in self._host.hosted:
            self._host.leave_second(edge.sender, edge.name)
        else:
            self._far.detach_second(second_name(edge.name))

    def _is_attached(self, edge: InEdge) -> bool:
        return edge.sender in self._host.hosted or self._far.is_attached(second_name(edge.name))


def _check_bulk(checkpoint: Checkpoint, reached_tick: int, acknowledged_tick: int) -> None:
    """C6: as of one horizon that has passed, and not before what was acknowledged as durable, with nothing of any
    sender's epochs in it, and nothing known about tombstones."""
    horizon = checkpoint.bulk_horizon
    if horizon is None or not checkpoint.drop_floor == checkpoint.in_floor == horizon:
        raise ValueError("not a bulk install: its horizon and its floors are not one tick")
    if horizon > reached_tick:
        raise ValueError(
            f"its horizon, tick {horizon}, has not passed yet: its streams have come to tick {reached_tick}, and what"
            " they still have up to then would be lost. Compute it as of an earlier tick"
        )
    if horizon < acknowledged_tick:
        raise ValueError(
            f"its horizon, tick {horizon}, lies before tick {acknowledged_tick}: up to there a checkpoint includes"
            " everything, so that logs may forget it. Compute it as of that tick or a later one, or of the newest"
        )
    for edge in checkpoint.edges:
        if edge.adopted_epoch != NO_EPOCH or edge.coverage != LineageCoverage.prefix(len(edge.coverage), horizon):
            raise ValueError("not a bulk install: an in-edge has other ticks than those up to its horizon")
