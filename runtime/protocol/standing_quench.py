"""The standing quench of an event edge: what its receiver would drop at once does not travel (E4).

Whoever carries messages from one process to another applies it (`runtime/broker/shell.py`, the simulator's world) to
all that goes down the edge: what is told as it happens, answers, repeats. A message covers the same ticks as before,
and what was left out is silence in it. Neither end of the edge knows: the sender keeps, logs and answers everything,
the receiver still selects. Within a process nothing is saved by it, so nothing is computed.
"""

from __future__ import annotations

from functools import cached_property

from runtime.operators.select import SelectEvents, SelectSpec
from runtime.plan import InEdge, Relation
from runtime.protocol.messages import Events, Message


class StandingQuench:
    """`relation` is the sender's. `events_quenched`: how many were left out so far."""

    def __init__(self, edge: InEdge, relation: Relation) -> None:
        self.events_quenched = 0
        self._edge = edge
        self._relation = relation

    @cached_property
    def _selection(self) -> SelectEvents:
        """The receiver's own loop; made when the first message leaves, because most edges stay in one process."""
        assert self._edge.wants is not None
        made = SelectSpec(self._edge.wants).build((self._relation,), self._relation)
        assert isinstance(made, SelectEvents)
        return made

    def applied(self, message: Message) -> Message:
        """The message as the receiver wants it; anything but events passes."""
        if not isinstance(message, Events) or not len(message.rows):
            return message
        rows = self._selection.map(0, message.rows)
        if len(rows) == len(message.rows):
            return message
        self.events_quenched += len(message.rows) - len(rows)
        return Events(message.cover, rows)


def standing_quenches(edges: tuple[InEdge, ...], relation: Relation) -> dict[str, StandingQuench]:
    """Of those out-edges of a component that have one, by name."""
    return {edge.name: StandingQuench(edge, relation) for edge in edges if edge.wants is not None}
