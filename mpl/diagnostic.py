"""Diagnostics: what the language tells its users, as data.

Parser, checker and analysis report through one `Diagnostics` collector; `mpl/render.py` turns the records into text or
JSON. Nothing here prints. A diagnostic is one sentence, a place, a reason under the caret, and at most one note and
one help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from heapq import nsmallest

from mpl.source import Span

DIAGNOSTICS_MAX = 200
"""More than this in one run are counted but not kept: a hostile file must not fill memory with complaints."""

COMPARED_MAX = 100
"""Of more names than this, a suggestion considers those with the most similar letters: comparing all takes too long."""


class Severity(Enum):
    """An error stops the program from being compiled; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Code:
    """A stable code. Every code has an entry in docs/errors.md."""

    name: str
    severity: Severity
    title: str


@dataclass(frozen=True)
class Note:
    """One further fact, with the place it concerns when there is one."""

    text: str
    span: Span | None = None


@dataclass(frozen=True)
class Diagnostic:
    """One thing that a user should know about one place."""

    code: Code
    span: Span
    message: str
    label: str = ""
    note: Note | None = None
    help: str | None = None

    @property
    def severity(self) -> Severity:
        return self.code.severity


class MplError(Exception):
    """The program has errors. `diagnostics` holds all of them, in source order, warnings included."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        first = next((d for d in self.diagnostics if d.severity is Severity.ERROR), None)
        super().__init__(f"{first.span}: {first.code.name}: {first.message}" if first else "no error")


class Diagnostics:
    """Collects diagnostics in any order and hands them out in source order, each place and code once."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, int, int, str], Diagnostic] = {}
        self.dropped = 0

    def report(
        self,
        code: Code,
        span: Span,
        message: str,
        label: str = "",
        *,
        note: Note | None = None,
        help: str | Callable[[], str | None] | None = None,
    ) -> None:
        """`help` may be a function, called only if the diagnostic is kept: to look for a similar name takes a while."""
        key = (code.name, span.start, span.end, message)
        if key in self._items:
            return
        if len(self._items) >= DIAGNOSTICS_MAX:
            self.dropped += 1
            return
        self._items[key] = Diagnostic(code, span, message, label, note, help() if callable(help) else help)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(sorted(self._items.values(), key=lambda d: (d.span.start, d.span.end, d.code.name, d.message)))

    def __len__(self) -> int:
        return len(self._items)

    @property
    def has_errors(self) -> bool:
        return any(item.severity is Severity.ERROR for item in self._items.values())


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line for a name that was not found, or None when nothing known is close."""
    candidates = list(dict.fromkeys(known))
    if len(candidates) > COMPARED_MAX:
        letters = set(name.lower())
        candidates = nsmallest(
            COMPARED_MAX, candidates, key=lambda other: len(letters ^ set(other.lower())) + abs(len(name) - len(other))
        )
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    close = get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    return f"did you mean `{lowered[close[0]]}`?" if close else None
