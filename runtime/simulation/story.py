"""A run told in words: which component heard what, what it said, what the disk and the network did.

A watcher that writes one line for each event a component handles, with what the component covers afterwards. Used
for one seed at a time (`--seed`) and for shrunk failures; a run without a story pays nothing for it.
"""

from __future__ import annotations

from typing import Any

from runtime.batch import Batch
from runtime.protocol.events import (
    ArmTimer,
    Deliver,
    Event,
    Instruction,
    LogRead,
    MessageArrived,
    PersistCheckpoint,
    Published,
    Restarted,
    Send,
    TimerFired,
)
from runtime.protocol.messages import (
    Ack,
    Curiosity,
    Durable,
    EventAck,
    EventCuriosity,
    Events,
    Heartbeat,
    Knowledge,
    Part,
    Quench,
    Snapshot,
    Trimmed,
)
from runtime.simulation.oracle import Row
from runtime.simulation.world import Instance, World

ROWS_TOLD = 6


class Story:
    """Collects lines; `attach` it to a world before the run."""

    def __init__(self, only: frozenset[str] = frozenset()) -> None:
        self.lines: list[str] = []
        self._only = only
        self._world: World | None = None

    def attach(self, world: World) -> None:
        self._world = world

    def tell(self, text: str) -> None:
        now_us = self._world.clock.now_us if self._world is not None else 0
        self.lines.append(f"{now_us / 1000:9.3f} ms  {text}")

    def logged(self, stream: str, tick: int, row: Row) -> None:
        self.tell(f"  {stream} logs tick {tick}: {row}")

    def trimming(self, stream: str, tick: int) -> None:
        self.tell(f"  {stream} trims its log up to {tick}")

    def handled(self, instance: Instance, event: Event, instructions: list[Instruction]) -> None:
        """One line for the event, one for each thing said."""
        if self._only and instance.name not in self._only:
            return
        said = [describe_instruction(i) for i in instructions if not isinstance(i, ArmTimer)]
        if isinstance(event, TimerFired) and not said:
            return
        self.tell(f"{instance.name}/{instance.epoch} on {instance.node.name}: {describe_event(event)}")
        component: Any = instance.component
        step = f"step {component.step}, " if hasattr(component, "step") else ""
        self.lines.append(f"{'':14}now {step}covers {component.coverage().show()}")
        self.lines.extend(f"{'':14}-> {line}" for line in said)


def describe_event(event: Event) -> str:
    match event:
        case MessageArrived(edge, message):
            return f"{edge} brings {describe_message(message)}"
        case Restarted(epoch, _, checkpoint, _, log):
            if log is not None:
                return f"starts with epoch {epoch}, log up to {log.last_tick}, reserved {log.reserved_tick}"
            loaded = "nothing" if checkpoint is None else "|".join(edge.coverage.show() for edge in checkpoint.edges)
            return f"starts with epoch {epoch} from {loaded}"
        case Published(producer, sequence, columns, _):
            return f"{producer} publishes {sequence}: {list(zip(*columns, strict=True))}"
        case LogRead(edge, cover, rows, _):
            return f"read for {edge}: {cover.show()} {_rows(rows)}"
        case TimerFired(name, _):
            return f"timer {name}"
        case _:
            return str(event)


def describe_instruction(instruction: Instruction) -> str:
    match instruction:
        case Send(edge, message):
            return f"{edge}: {describe_message(message)}"
        case PersistCheckpoint(number, _):
            return f"checkpoint {number}"
        case Deliver(kind, rows, horizon, _, _):
            return f"delivers {kind} {_rows(rows)} as of {horizon}"
        case _:
            return str(instruction)[:200]


def describe_message(message: object) -> str:
    """A message in the words of the protocol."""
    match message:
        case Events(cover, rows):
            return f"events {cover.show()} {_rows(rows)}"
        case Trimmed(ranges):
            return f"trimmed {ranges.show()}"
        case Knowledge(epoch, first, last, coverage, rows, filtered):
            return f"knowledge e{epoch} ({first}, {last}] {coverage.show()} {_rows(rows)}{_filter(filtered)}"
        case Snapshot(epoch, step, coverage, horizon, complete, floor, rows, filtered):
            kind = "complete snapshot" if complete else "snapshot"
            head = f"{kind} e{epoch} step {step} {coverage.show()} above {horizon}, floor {floor}"
            return f"{head} {_rows(rows)}{_filter(filtered)}"
        case Heartbeat(epoch, step, coverage):
            return f"heartbeat e{epoch} step {step} {coverage.show()}"
        case Part(index, count, _, _, whole):
            return f"part {index + 1} of {count} of {describe_message(whole)}"
        case EventCuriosity(epoch, wanted):
            return f"curiosity (receiver e{epoch}) for {wanted.show()}"
        case Curiosity(epoch, adopted, step, coverage):
            return f"curiosity (receiver e{epoch}) since e{adopted} step {step}, having {coverage.show()}"
        case Ack() | EventAck() | Quench() | Durable():
            return str(message)
        case _:
            return repr(message)


def _rows(rows: Batch) -> str:
    told = [
        f"{row}@{tick}" if seen else f"gone {row}@{tick}"
        for row, tick, seen in list(zip(rows.rows(), rows.max_ticks, rows.visible, strict=True))[:ROWS_TOLD]
    ]
    more = f" and {len(rows) - ROWS_TOLD} more" if len(rows) > ROWS_TOLD else ""
    return f"[{', '.join(told)}{more}]"


def _filter(filtered_for: int | None) -> str:
    return "" if filtered_for is None else f" filtered for e{filtered_for}"
