"""Messages whose rows are too many for one frame: split by the sender, put together before anything is applied.

A state message is applied wholly or not at all (S2), so its pieces are useless alone and are collected here. An event
message can be cut into smaller true messages, because each tick stands for itself (E1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from runtime.batch import Batch
from runtime.protocol.coverage import Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Events, Knowledge, Part, Snapshot

CHARS_MAX = 8 * 1024 * 1024
"""Letters of all texts in one piece, at up to 4 bytes each: half of what a frame may have. One row may have more."""


def split_state(
    message: Knowledge | Snapshot, rows_max: int, revision: int, texts: Sequence[int] = ()
) -> list[Knowledge | Snapshot | Part]:
    """The message itself, or pieces of it with at most `rows_max` rows each; fewer if the columns `texts` are long."""
    rows = message.rows
    if len(rows) <= rows_max:
        return [message]
    spans = list(_spans(rows, rows_max, texts))
    return [
        Part(i, len(spans), len(rows), revision, replace(message, rows=rows.slice(first, end)))
        for i, (first, end) in enumerate(spans)
    ]


def _spans(rows: Batch, rows_max: int, texts: Sequence[int]) -> Iterator[tuple[int, int]]:
    for first in range(0, len(rows), rows_max):
        end = min(first + rows_max, len(rows))
        columns = [rows.columns[column][first:end] for column in texts]
        chars = 0
        for at, values in enumerate(zip(*columns, strict=True), first):
            row_chars = sum([len(value) for value in values if type(value) is str])
            if chars and chars + row_chars > CHARS_MAX:
                yield first, at
                first, chars = at, 0
            chars += row_chars
        yield first, end


def split_events(cover: LineageCoverage, rows: Batch, rows_max: int) -> list[Events]:
    """One message, or several whose covers are disjoint and together make `cover`; rows in tick order per lineage."""
    if len(rows.max_ticks) <= rows_max:
        return [Events(cover, rows)]
    assert rows.lineages is not None
    made: list[Events] = []
    for lineage, part in enumerate(cover):
        mine = sorted((tick, i) for i, tick in enumerate(rows.max_ticks) if rows.lineages[i] == lineage)
        rest = part
        for first in range(0, max(len(mine), 1), rows_max):
            chunk = mine[first : first + rows_max]
            is_last = first + rows_max >= len(mine)
            piece = rest if is_last else rest.intersection(Coverage.prefix(chunk[-1][0]))
            rest = rest.difference(piece)
            if piece:
                made.append(Events(_only(piece, lineage, len(cover)), rows.take([i for _, i in chunk])))
    return made


def _only(part: Coverage, lineage: int, count: int) -> LineageCoverage:
    return LineageCoverage(part if n == lineage else Coverage() for n in range(count))


class Assembly:
    """The pieces of one message on one in-edge. A piece of a newer message replaces an unfinished older one.

    Pieces of a repeated answer complete each other as long as the sender has not moved on in between; if it has, the
    repeated answer is another message. So under loss a large answer needs either few pieces or a pause.
    """

    __slots__ = ("_head", "_pieces")

    def __init__(self) -> None:
        self._head: Part | None = None
        self._pieces: dict[int, Batch] = {}

    def add(self, part: Part) -> Knowledge | Snapshot | None:
        """The whole message once its last piece is there. ValueError: the pieces do not make what they promised."""
        if self._head is None or _identity(part) != _identity(self._head):
            if self._head is not None and _age(part) < _age(self._head):
                return None
            self._head, self._pieces = part, {}
        self._pieces[part.index] = part.message.rows
        if len(self._pieces) < part.count:
            return None
        rows = Batch.concat([self._pieces[i] for i in range(part.count)])
        self.clear()
        if len(rows) != part.rows_count:
            raise ValueError(f"{part.count} parts have {len(rows)} rows, not {part.rows_count}")
        return replace(part.message, rows=rows)

    def clear(self) -> None:
        self._head, self._pieces = None, {}

    def rows_count(self) -> int:
        return sum(len(rows) for rows in self._pieces.values())


def _age(part: Part) -> tuple[int, int, int]:
    return part.message.epoch, part.message.to_step, part.revision


def _identity(part: Part) -> tuple[object, ...]:
    message = part.message
    question = (
        (message.from_step,) if isinstance(message, Knowledge) else (message.horizon, message.complete, message.floor)
    )
    return (*_age(part), part.count, part.rows_count, message.filtered_for, type(message), question)
