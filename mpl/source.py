"""Source text and places in it.

A `Source` is one MPL file; a `Span` is a half-open, zero-based range of its characters. Everything that a user can
be told about carries a span. Lines and columns are computed here, only when something is printed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

QUOTED_CHARACTERS_MAX = 60


@dataclass(frozen=True)
class Source:
    """One MPL text and the name that diagnostics show for it."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offsets at which lines begin; only newline ends a line, as in editors that number what `git` shows."""
        starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return tuple(starts)

    def line_of(self, offset: int) -> int:
        """Zero-based line that holds `offset`."""
        return bisect_right(self.line_starts, offset) - 1

    def position(self, offset: int) -> tuple[int, int]:
        """One-based (line, column) of `offset`."""
        line = self.line_of(offset)
        return line + 1, offset - self.line_starts[line] + 1

    def line_text(self, line: int) -> str:
        """Text of a zero-based line without its end."""
        start = self.line_starts[line]
        end = self.line_starts[line + 1] - 1 if line + 1 < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` up to but not including `end` of `source`."""

    source: Source
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from here to the end of `other`."""
        return Span(self.source, self.start, other.end)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def quoted(self) -> str:
        """The text for a message, which is one line: `...` where it is long or goes over several."""
        text = self.text
        return text if len(text) <= QUOTED_CHARACTERS_MAX and text.isprintable() else "..."

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"
