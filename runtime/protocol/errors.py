"""Refusals: input that no correct peer sends. `handle` raises one, having changed nothing but a counter."""

from __future__ import annotations


class ProtocolError(Exception):
    """Carries what was wrong and where, so that a log line or a test can name it."""

    code = "protocol"

    def __init__(self, component: str, place: str, what: str) -> None:
        super().__init__(f"{component}: {place}: {what}")
        self.component = component
        self.place = place  # an edge, a timer, or the event's name
        self.what = what


class NotStarted(ProtocolError):
    """The first event of a component must be Restarted."""

    code = "not_started"


class UnknownEdge(ProtocolError):
    code = "unknown_edge"


class UnexpectedMessage(ProtocolError):
    """This kind of message does not travel on this edge in this direction."""

    code = "unexpected_message"


class BadShape(ProtocolError):
    """Wrong number of columns, lineages or rows, or parts that do not belong together."""

    code = "bad_shape"


class BadType(ProtocolError):
    code = "bad_type"


class BadRange(ProtocolError):
    """Ticks, steps or epochs that contradict each other or the coverage."""

    code = "bad_range"


class BadEpoch(ProtocolError):
    """An epoch that cannot be: not positive, or a restart that does not raise it."""

    code = "bad_epoch"


class BadCheckpoint(ProtocolError):
    """A checkpoint of another component or shape, or a bulk install below an acknowledged horizon."""

    code = "bad_checkpoint"


class TooLarge(ProtocolError):
    """A message beyond a named bound of the plan."""

    code = "too_large"
