"""A view on a screen: its rows as a subscriber knows them, with what has just changed and what is final.

Fed with changes by `smile subscribe` and the demo; drawn by rich. It connects to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from smile.cli.cells import shown

if TYPE_CHECKING:
    from smile.subscription import Change

FRESH_S = 1.0
"""A cell is marked as changed for so long."""

GONE_S = 2.0
ROWS_SHOWN_MAX = 200

CHANGED_STYLE = "bold black on yellow"
FINAL_STYLE = "green"
GONE_STYLE = "dim strike"


@dataclass
class _ShownRow:
    row: dict[str, object]
    bounds: dict[str, tuple[object, object]] | None
    is_final: bool
    changed_at: dict[str, float]
    gone_at: float | None = None


class LiveTable:
    """`names` are the view's columns, in order. `clock` in seconds."""

    def __init__(self, title: str, names: Iterable[str], clock: Callable[[], float] = monotonic) -> None:
        self.title = title
        self.names = tuple(names)
        self.changes = 0
        self.as_of = 0
        self._clock = clock
        self._rows: dict[tuple[object, ...], _ShownRow] = {}

    def apply(self, change: Change) -> None:
        now = self._clock()
        self.changes += 1
        self.as_of = max(self.as_of, change.as_of)
        known = self._rows.get(change.key)
        if change.kind == "gone":
            if known is not None:
                known.gone_at = now
            return
        changed = {} if known is None or known.gone_at is not None else dict(known.changed_at)
        for name in self.names:
            is_news = known is None or known.gone_at is not None or known.row.get(name) != change.row.get(name)
            if is_news and change.kind != "snapshot":
                changed[name] = now
        self._rows[change.key] = _ShownRow(change.row, change.bounds, change.final, changed)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The rows that the view has, in the order in which they are drawn."""
        return [known.row for known in self._ordered() if known.gone_at is None]

    def _ordered(self) -> list[_ShownRow]:
        def order(item: tuple[tuple[object, ...], _ShownRow]) -> tuple[tuple[bool, str, object], ...]:
            return tuple((value is not None, type(value).__name__, value) for value in item[0])

        return [known for _, known in sorted(self._rows.items(), key=order)]

    def forget_gone(self) -> None:
        now = self._clock()
        self._rows = {
            key: known for key, known in self._rows.items() if known.gone_at is None or now - known.gone_at < GONE_S
        }

    def draw(self, rows_max: int = ROWS_SHOWN_MAX, *, caption: str = "", plain: bool = False) -> Table:
        """As a rich table; of more rows than fit, those that changed last. `plain`: marks are signs, not colours."""
        self.forget_gone()
        now = self._clock()
        ordered = self._ordered()
        left_out = len(ordered) - rows_max
        if left_out > 0:
            newest = sorted(ordered, key=lambda known: max(known.changed_at.values(), default=0.0))[left_out:]
            kept = {id(known) for known in newest}
            ordered = [known for known in ordered if id(known) in kept]
        told = f"{left_out} {'row' if left_out == 1 else 'rows'} more" if left_out > 0 else ""
        caption = "; ".join(filter(None, (told, caption)))
        table = Table(title=self.title, title_justify="left", caption=caption, caption_justify="left", min_width=40)
        for name in self.names:
            table.add_column(name)
        table.add_column("", width=5)
        for known in ordered:
            cells = [self._cell(known, name, now, plain=plain) for name in self.names]
            mark = Text("final", FINAL_STYLE) if known.is_final else Text("")
            table.add_row(*cells, Text("gone", GONE_STYLE) if known.gone_at is not None else mark)
        return table

    def _cell(self, known: _ShownRow, name: str, now: float, *, plain: bool) -> Text:
        text = Text(shown(known.row.get(name)))
        if known.gone_at is not None:
            text.stylize(GONE_STYLE)
        elif now - known.changed_at.get(name, float("-inf")) < FRESH_S:
            text.stylize(CHANGED_STYLE)
            text.append("*" if plain else "")
        elif known.is_final:
            text.stylize(FINAL_STYLE)
        low, high = (known.bounds or {}).get(name, (None, None))
        if known.bounds is not None and low != high:
            text.append(f" {_end(low)}..{_end(high)}", "dim")
        return text


def _end(value: object) -> str:
    return "" if value is None else shown(value)
