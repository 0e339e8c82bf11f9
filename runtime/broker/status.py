"""What a broker says about itself: plain data for `smile status`, `smile top` and metrics. Nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.broker.hosted import Hosted
from runtime.kernels.operator import KernelOperator
from runtime.plan import StreamSpec
from runtime.protocol.coverage import Coverage
from runtime.protocol.event_component import EventComponent
from runtime.protocol.leaf import Leaf
from runtime.protocol.state_component import StateComponent
from runtime.protocol.stream import StreamComponent

LOST = "ticks that it needs have left the log; `smile recompute VIEW --install` computes it from the archive"


def component_status(hosted: Hosted, origin: str = "") -> dict[str, Any]:
    """One component; ticks are given as such and as microseconds since 1970."""
    component = hosted.component
    counters = component.counters
    said: dict[str, Any] = {
        "kind": _kind(hosted),
        "state": hosted.state,
        "reason": hosted.reason,
        "epoch": component.epoch,
        "began_with": hosted.began_with,
        "restarts": hosted.restarts,
        "failure": None
        if hosted.failure is None
        else {"edge": hosted.failure.edge, "code": hosted.failure.code, "reason": hosted.failure.reason},
        "lost_ticks": hosted.lost_ticks,
        "has_guests": hosted.has_guests,
        "refused": dict(hosted.refused),
        "curiosity": {
            "sent": counters["sent.Curiosity"] + counters["sent.EventCuriosity"],
            "answered": counters["sent.Snapshot"] + counters["sent.Knowledge"] + counters["sent.Events"],
            "dont_care": counters["sent.Quench"],
            "dropped": counters["dropped.reading"] + counters["dropped.replaced_receiver"],
        },
        "counters": dict(counters),
        "checkpoint_us": hosted.checkpoint_us,
        "rows_since_checkpoint": hosted.rows_since_checkpoint,
        "origin": origin,
    }
    if hosted.is_running and component.epoch:
        said.update(_position(hosted))
    return said


def _position(hosted: Hosted) -> dict[str, Any]:
    component = hosted.component
    coverage = component.coverage()
    horizon = coverage.horizon()
    said: dict[str, Any] = {
        "horizon_tick": horizon,
        "horizon_us": horizon // _ticks_per_us(hosted),
        "gaps": [_gaps(part) for part in coverage],
        "lineages": list(hosted.plan.lineages[hosted.name]),
        "covered_ticks": [part.highest() for part in coverage],
    }
    if isinstance(component, StateComponent):
        rows = component.operator.rows
        said["step"] = component.step
        said["rows"] = len(rows)
        if isinstance(component.operator, KernelOperator):
            said["is_native"] = component.operator.is_native
    elif isinstance(component, EventComponent):
        said["rows"] = len(component.held)
    elif isinstance(component, StreamComponent):
        said["trimmed_tick"] = component.trimmed_tick
        said["producers"] = len(component.producers)
    return said


def _gaps(part: Coverage) -> int:
    """How many ranges of ticks are missing below the highest that is known."""
    return max(0, len(list(part)) - 1)


def _ticks_per_us(hosted: Hosted) -> int:
    for stream in hosted.plan.lineages[hosted.name]:
        spec = hosted.plan.by_name[stream].operator
        if isinstance(spec, StreamSpec):
            return spec.ticks_per_us
    return 1


def _kind(hosted: Hosted) -> str:
    component = hosted.component
    if isinstance(component, StreamComponent):
        return "stream"
    if isinstance(component, Leaf):
        return "leaf"
    name = type(hosted.plan.by_name[hosted.name].operator).__name__.removesuffix("Spec").lower()
    return f"events, {name}" if isinstance(component, EventComponent) else name


def failures_of(hosted: Mapping[str, Hosted], names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Of these components: what cannot go on, and why."""
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        one = hosted.get(name)
        if one is None:
            continue
        if one.failure is not None:
            found[name] = (one.failure.code, one.failure.reason)
        elif one.state == "stopped":
            found[name] = ("stopped", one.reason)
        elif one.lost_ticks and not one.is_held:
            found[name] = ("lost", LOST)
    return found
