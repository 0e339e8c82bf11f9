"""How the views of a changed program get their past: by replay of the logs, or by a bulk computation of all of it.

A component that did not run before, and reads events, has to see all that ever happened. As long as the logs have it
and it is not too much, it asks for it by itself. Otherwise Spark computes its state from archive and logs, which takes
the place of what the component has by then. `smile deploy` asks here, says which was chosen and why, and does it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runtime.plan import Plan
from runtime.protocol.coverage import NO_TICK, Coverage
from smile.bulk.as_of import LOSS_ACCEPTED, held, require_events
from smile.bulk.sources import Sources
from smile.deploy.bundles import components_of
from smile.deploy.deployment import Deployment
from smile.digests import component_digests
from smile.errors import SmileError
from smile.program import Program

BACKFILL_EVENTS = 5_000_000
"""More than this is not replayed but computed by Spark; `[spark] backfill_events` says otherwise."""

How = Literal["replay", "bulk", "impossible"]


@dataclass(frozen=True)
class History:
    """Of one stream: whether its log has everything; how many events there are in all, None if nobody here knows; and
    whether archive and logs that can be read here have everything up to now, with the reason if not."""

    stream: str
    is_trimmed: bool
    events: int | None
    missing: str = ""


@dataclass(frozen=True)
class Choice:
    component: str
    how: How
    reason: str


def new_components(before: Deployment, old: Program | None, after: Deployment, new: Program) -> list[str]:
    """What computes something that nobody computed before, and cannot ask a component that did: it reads events.
    `old` is None if nobody knows any more what `before` computed."""
    known = set() if old is None else set(component_digests(before, old).values())
    digests, components = component_digests(after, new), components_of(after, new)
    return [
        name
        for name, component in components.items()
        if digests[name] not in known and any(components[edge.sender].relation.is_event for edge in component.in_edges)
    ]


def streams_of(deployment: Deployment, program: Program, components: Collection[str]) -> dict[str, tuple[str, ...]]:
    """For each of these components the streams that it comes from; tables have all their rows in their logs."""
    lineages = Plan(tuple(components_of(deployment, program).values())).lineages
    tables = set(program.checked.program.tables)
    return {name: tuple(s for s in dict.fromkeys(lineages[name]) if s not in tables) for name in components}


def histories(
    streams: Collection[str], status: Mapping[str, Mapping[str, Any]], sources: Sources | None
) -> dict[str, History]:
    """Of these streams, from what their brokers say and from what can be read here."""
    standing = {name: said for body in status.values() for name, said in body.get("components", {}).items()}
    return {name: _history(name, standing.get(name, {}), sources) for name in streams}


def _history(stream: str, standing: Mapping[str, Any], sources: Sources | None) -> History:
    is_trimmed = standing.get("trimmed_tick", NO_TICK) > NO_TICK
    if sources is None:
        return History(stream, is_trimmed, None, "neither an archive nor the brokers' data folders are known here")
    try:
        logged = held(sources, stream).log
        if logged is not None:  # the broker says what may be trimmed, which may be more than what is
            is_trimmed = logged.trimmed_tick > NO_TICK
        wanted = {stream: Coverage.prefix(standing.get("horizon_tick", NO_TICK))}
        events = require_events(sources, wanted, loss_remedy=LOSS_ACCEPTED)
    except SmileError as error:
        return History(stream, is_trimmed, None, str(error))
    return History(stream, is_trimmed, events)


def choose(
    streams: Mapping[str, tuple[str, ...]],
    histories: Mapping[str, History],
    not_in_bulk: Mapping[str, str],
    events_max: int = BACKFILL_EVENTS,
) -> list[Choice]:
    """For each component with the streams it reads. `not_in_bulk`: which ones Spark cannot compute, and why."""
    return [_choice(name, [histories[one] for one in read], not_in_bulk, events_max) for name, read in streams.items()]


def _choice(component: str, read: list[History], not_in_bulk: Mapping[str, str], events_max: int) -> Choice:
    trimmed = [one.stream for one in read if one.is_trimmed]
    known = [one.events for one in read if one.events is not None]
    events = sum(known)
    why_bulk = ""
    if trimmed:
        why_bulk = f"the log of {', '.join(trimmed)} no longer has everything"
    elif events > events_max:
        why_bulk = f"{events:,} events are more than {events_max:,} (`[spark] backfill_events`)"
    if not why_bulk:
        counted = f"all {events:,} events" if len(known) == len(read) else "everything"
        return Choice(component, "replay", f"the logs have {counted}")
    missing = next((one.missing for one in read if one.missing), "")
    why_not = missing or not_in_bulk.get(component, "")
    if not why_not:
        return Choice(component, "bulk", why_bulk)
    if not trimmed:
        return Choice(component, "replay", f"{why_bulk}, but a bulk computation cannot be: {why_not}")
    if not missing:
        return Choice(component, "bulk", f"{why_bulk}; Spark only reads its events, they are replayed here: {why_not}")
    return Choice(component, "impossible", f"{why_bulk}, and a bulk computation cannot be: {why_not}")
