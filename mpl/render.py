"""Diagnostics as text for people and as records for editors.

The only module that knows how a diagnostic looks. Called by the command line and by tests; it prints nothing itself
and decides nothing about what is wrong.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO, TypedDict

from mpl.diagnostic import DIAGNOSTICS_MAX, Diagnostic, Severity
from mpl.source import Source

TAB_CELLS = 4
LINE_CELLS_MAX = 110
"""A longer source line is cut on both sides of what is underlined."""

UNDERLINE_CELLS_MAX = 80
CUT = "..."

RED, YELLOW, BLUE, BOLD, PLAIN = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m"


class Record(TypedDict):
    """A diagnostic for editors. Lines and columns count from 1, columns in characters; the end is exclusive."""

    code: str
    severity: str
    message: str
    label: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    note: str | None
    help: str | None


def wants_color(stream: TextIO) -> bool:
    """Whether colours help there: only on a terminal, and not when NO_COLOR asks for none."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def render_all(diagnostics: Iterable[Diagnostic], *, color: bool = False, dropped: int = 0) -> str:
    """All diagnostics with a blank line after each, and the summary; nothing at all when there are none."""
    items = list(diagnostics)
    if not items:
        return ""
    return "".join(render(item, color=color) + "\n\n" for item in items) + summary(items, dropped) + "\n"


def summary(diagnostics: Iterable[Diagnostic], dropped: int = 0) -> str:
    """`2 errors, 1 warning`."""
    severities = [item.severity for item in diagnostics]
    counts = [(severities.count(severity), severity.value) for severity in Severity]
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    if dropped:
        parts.append(f"{dropped} more not shown")
    elif len(severities) >= DIAGNOSTICS_MAX:
        parts.append("and there may be more")
    return ", ".join(parts) or "no errors"


def render(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """One diagnostic: header, place, source lines with the underline, note and help; no newline at the end."""
    paint = _Paint(color)
    tint = RED if diagnostic.severity is Severity.ERROR else YELLOW
    source, span = diagnostic.span.source, diagnostic.span
    first = source.line_of(span.start)
    last = source.line_of(max(span.start, span.end - 1))
    gutter = len(str(last + 1))
    bar = paint(BLUE, " " * gutter + " |")
    header = paint(tint, f"{diagnostic.severity.value}[{diagnostic.code.name}]")
    lines = [
        header + paint(BOLD, ": " + _printable(diagnostic.message)),
        paint(BLUE, " " * gutter + "--> ") + _printable(str(span)),
        bar,
    ]

    def numbered(line: int, text: str) -> str:
        return (paint(BLUE, f"{line + 1:>{gutter}} |") + " " + text).rstrip()

    def underlined(line: int, label: str) -> list[str]:
        cells = _cells_of_line(source, line, span.start, span.end)
        marks = " " * cells.before + paint(tint, "^" * cells.marked + (f" {_printable(label)}" if label else ""))
        return [numbered(line, cells.text), f"{bar} {marks}"]

    if first > 0:
        context = _cells_of_line(source, first - 1, source.line_starts[first - 1], source.line_starts[first - 1])
        lines.append(numbered(first - 1, context.text))
    if first == last:
        lines += underlined(first, diagnostic.label)
    else:
        lines += underlined(first, "")
        if last > first + 1:
            lines.append(paint(BLUE, CUT))
        lines += underlined(last, diagnostic.label)
    remarks = [
        f"{kind}: {_printable(text)}" for kind, text in (("note", _note(diagnostic)), ("help", diagnostic.help)) if text
    ]
    if remarks:
        lines.append(bar)
        lines += [paint(BLUE, " " * gutter + " = ") + remark for remark in remarks]
    return "\n".join(lines)


def record(diagnostic: Diagnostic) -> Record:
    """The diagnostic as plain data, ready for JSON."""
    span = diagnostic.span
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return Record(
        code=diagnostic.code.name,
        severity=diagnostic.severity.value,
        message=diagnostic.message,
        label=diagnostic.label,
        file=span.source.name,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        note=_note(diagnostic),
        help=diagnostic.help,
    )


def _note(diagnostic: Diagnostic) -> str | None:
    if diagnostic.note is None:
        return None
    place = f" at {diagnostic.note.span}" if diagnostic.note.span else ""
    return diagnostic.note.text + place


class _Paint:
    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __call__(self, tint: str, text: str) -> str:
        return f"{tint}{text}{PLAIN}" if self._enabled and text else text


# --- a source line as cells of a terminal -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cells:
    """A line as it is shown: blanks before the underline and its length are counted in terminal cells."""

    text: str
    before: int
    marked: int


def _printable(text: str) -> str:
    """What the user wrote may hold controls and half characters; a terminal must not see them."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _shown(character: str) -> tuple[str, int]:
    """How a character is shown, and how many cells that takes."""
    if character == "\t":
        return " " * TAB_CELLS, TAB_CELLS
    if not character.isprintable():
        return "\ufffd", 1
    if unicodedata.combining(character):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cells_of_line(source: Source, line: int, start: int, end: int) -> _Cells:
    """The line with what lies between offsets `start` and `end` to be underlined, cut to a readable length."""
    offset = source.line_starts[line]
    text = source.line_text(line)
    low = min(max(start - offset, 0), len(text))
    high = min(max(end - offset, low), len(text))
    if start < offset:  # the span began on an earlier line: do not underline the indentation
        low = len(text) - len(text.lstrip())
    # Only the part that can be seen is measured: a line may be a megabyte long.
    high_shown = min(high, low + UNDERLINE_CELLS_MAX)
    left = max(0, low - (LINE_CELLS_MAX - UNDERLINE_CELLS_MAX)) if len(text) > LINE_CELLS_MAX else 0
    right = min(len(text), max(high_shown + 20, left + LINE_CELLS_MAX))
    head = [_shown(character) for character in text[left:low]]
    middle = [_shown(character) for character in text[low:high_shown]]
    tail = [_shown(character) for character in text[high_shown:right]]
    prefix = CUT if left else ""
    suffix = CUT if right < len(text) else ""
    shown = prefix + "".join(part for part, _ in (*head, *middle, *tail)) + suffix
    before = len(prefix) + sum(width for _, width in head)
    return _Cells(shown.rstrip(), before, max(1, sum(width for _, width in middle)))
