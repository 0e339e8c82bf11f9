"""What the system in this process and the one behind a connection have in common: names, rows, and what is asked for.

`smile/system.py` and `smile/remote/system.py` say where the rows come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from compiler.plan.build import ViewPlan
from runtime.batch import Batch
from runtime.plan import Emit
from runtime.protocol.events import Deliver
from smile.errors import SmileError, ViewFailed
from smile.frames import arrow_table, pandas_frame
from smile.program import Program
from smile.views import ViewReader


@dataclass(frozen=True)
class Inspected:
    """Everything that a subscriber to a view can rely on at one moment: rows, bounds, finality, horizon, coverage.

    `lineages` names the stream or table of each part of the coverage. Rows whose `max_tick` and `in_floor` the horizon
    has reached are settled. `failure`: why the view has stopped; what it told remains true.
    """

    told: Deliver
    lineages: tuple[str, ...]
    in_floor: int
    failure: SmileError | None = None


class Reading(ABC):
    """Rows of views by name, in the forms that users want."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._readers: dict[str, ViewReader] = {}

    def rows(self, view: str) -> list[dict[str, object]]:
        """The rows that a view (or stream, or table) has now, in the order of its key. Raises ViewFailed."""
        reader, batch = self._read(view)
        return reader.rows(batch)

    def arrow(self, view: str) -> Any:
        """The same as a pyarrow table."""
        reader, batch = self._read(view)
        return arrow_table(reader.fields, reader.canonical(batch))

    def pandas(self, view: str) -> Any:
        """The same as a pandas frame."""
        reader, batch = self._read(view)
        return pandas_frame(reader.fields, reader.canonical(batch))

    @abstractmethod
    def inspect(self, view: str) -> Inspected:
        """A view with all that is claimed about it, for whoever checks it."""

    @abstractmethod
    def _read(self, view: str) -> tuple[ViewReader, Batch]:
        """The visible rows, in the order of the key."""

    def _reader(self, view: str) -> ViewReader:
        if view not in self._readers:
            self._readers[view] = ViewReader(self.program.relation(view))
        return self._readers[view]

    def _view_failed(self, view: str, component: str, code: str, reason: str) -> ViewFailed:
        """`component` is the one that stopped: the view's own or one that it reads."""
        part = self.program.plan.parts.get(component)
        return ViewFailed(view, code, reason, part.module.origin if part else component)


@dataclass(frozen=True)
class Asked:
    """What a call of `subscribe` wants: of a subscription that the program declares, or of any relation."""

    name: str
    plan: ViewPlan
    mode: Emit
    every_us: int
    wants_snapshot: bool

    @property
    def key_width(self) -> int:
        return self.plan.side.layout.relation.key_width


def asked(program: Program, name: str, emit: str | None) -> Asked:
    """`emit`: how changes are told, None for the default; a declared subscription has its own."""
    view, every_us, wants_snapshot = name, 0, True
    declared = program.subscriptions.get(name)
    if declared is not None:
        if emit not in (None, declared.emit):
            raise SmileError(f"subscription `{name}` is declared with emit {declared.emit}")
        view, emit = declared.view, declared.emit
        every_us, wants_snapshot = declared.every_us or 0, declared.snapshot
    try:
        mode = Emit(emit or "changes")
    except ValueError:
        modes = ", ".join(repr(one.value) for one in Emit)
        raise SmileError(f"emit is one of {modes}, not {emit!r}") from None
    return Asked(name, program.relation(view), mode, every_us, wants_snapshot)
