"""What can go wrong for a user of the Python API. `MplError`, about the text of a program, comes from `mpl`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PROBLEMS_SHOWN_MAX = 10


class SmileError(Exception):
    """Everything below; for those who do not care which."""


class UnknownName(SmileError, KeyError):
    """The program declares nothing of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Closed(SmileError):
    """The system or the subscription was closed."""


@dataclass(frozen=True)
class Problem:
    """One value that a stream does not take. `row` counts from 0 within the call; None for a single row."""

    column: str | None
    value: object
    rule: str
    row: int | None = None

    def __str__(self) -> str:
        place = "" if self.row is None else f"row {self.row}: "
        if self.column is None:
            return f"{place}{self.rule}"
        return f"{place}column `{self.column}`: {_shown(self.value)} {self.rule}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class PublishError(SmileError, ValueError):
    """Nothing of this call was published. `problems` names at most ten values, each with row, column and rule."""

    def __init__(self, stream: str, problems: Sequence[Problem], *, more: bool = False) -> None:
        self.stream = stream
        self.problems = tuple(problems)
        shown = "; ".join(str(problem) for problem in self.problems)
        super().__init__(f"`{stream}` refuses {shown}" + (" (and more)" if more else ""))

    @property
    def column(self) -> str | None:
        return self.problems[0].column

    @property
    def value(self) -> object:
        return self.problems[0].value

    @property
    def rule(self) -> str:
        return self.problems[0].rule


class LogUnusable(SmileError):
    """The directory of the log is in use, damaged, or belongs to streams with other columns."""


class Interrupted(SmileError):
    """An earlier call was cut short in the middle of its work, by Ctrl-C for example. What the system would show could
    be wrong, so it refuses every call; what was acknowledged is in the log, from which the next run starts."""


class PublishUncertain(SmileError):
    """The log failed while these rows were written: they may be in it or not. What was acknowledged before is there."""


class ViewFailed(SmileError):
    """A row of this view cannot be computed. The view stays at its last true state; everything else goes on, and the
    events are in the log."""

    def __init__(self, view: str, code: str, reason: str, origin: str) -> None:
        self.view = view
        self.code = code
        self.reason = reason
        self.origin = origin
        super().__init__(f"view `{view}` has stopped ({code}) at {origin}: {reason}")


class ConnectFailed(SmileError):
    """No broker answers at this address, or it does not talk to us. `remedy` says what to do about it."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        self.address = address
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{address}: {reason}; {remedy}")


class NotAllowed(SmileError):
    """The brokers' allow-list does not give us this right."""


class TimedOut(SmileError, TimeoutError):
    """A broker did not answer in time, or a view did not catch up. Nothing was changed by this call."""


class TooManyRows(SmileError):
    """More rows than may be read or published at once."""


class TokenRefused(SmileError):
    """A token that does not belong to this view of this deployment, or is damaged: subscribe without it."""
