"""How calls of an engine end otherwise than well: what is refused, what stops a component, what cuts a call short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from runtime.log.stream_log import LogError

LOG_FAILED = "log"
"""The code of a failure whose reason is the log's, not a row's."""

WORKING = "an interruption"
"""What cuts a call short that is still under way, as long as nobody knows better."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A component that stopped because a batch could not be computed. Nothing of that batch was applied."""

    component: str
    code: str
    reason: str


class PublishRefused(Exception):
    """The stream did not take the rows. `uncertain`: the log failed, and they may be in it or not."""

    def __init__(self, reason: str, uncertain: bool) -> None:
        super().__init__(reason)
        self.uncertain = uncertain


class NotOpened(LogError):
    """The log of a stream that would have to start cannot be opened. Nothing has begun."""


class Interruptible(Protocol):
    """`unfinished`: what cut a call short in the middle of its work, WORKING while one works, otherwise None."""

    unfinished: str | None


E = TypeVar("E", bound=Interruptible)
P = ParamSpec("P")
T = TypeVar("T")


def whole(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """A method after which its object is unusable unless it comes to its end. Ctrl-C may come between any two changes
    that belong together; the mark is there before them, so nothing need succeed at that moment."""

    @wraps(method)
    def marked(self: E, /, *arguments: P.args, **named: P.kwargs) -> T:
        before = self.unfinished
        self.unfinished = WORKING
        try:
            result = method(self, *arguments, **named)
        except (PublishRefused, NotOpened):  # decided as a whole
            self.unfinished = before
            raise
        except BaseException as error:
            self.unfinished = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise
        self.unfinished = before
        return result

    return marked
