"""From a plan to its components. Shells call `build_component` for each component that runs here."""

from __future__ import annotations

from runtime.plan import Plan
from runtime.protocol.event_component import EventComponent
from runtime.protocol.leaf import Leaf
from runtime.protocol.state_component import StateComponent
from runtime.protocol.stream import StreamComponent

AnyComponent = StreamComponent | EventComponent | StateComponent


def build_component(plan: Plan, name: str) -> AnyComponent:
    """A component that waits for its first event, Restarted."""
    component = plan.by_name[name]
    if component.is_stream:
        return StreamComponent(plan, name)
    if component.emit is not None:
        return Leaf(plan, name)
    if component.relation.is_event:
        return EventComponent(plan, name)
    return StateComponent(plan, name)
