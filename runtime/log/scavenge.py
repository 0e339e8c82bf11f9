"""Rows of a damaged log, found without SQLite: every page of the database and of its write-ahead log, in any version.

SQLite gives up where the way to a page is broken, and forgets what follows a damaged place in its write-ahead log. But
every row that matters here has a checksum over all of it and is never changed once it is written, so a row that is
found anywhere is true, wherever it lay. Rows that were deleted, or written by a transaction that never ended, turn up
too: `repair.py` sorts that out. Nothing is written.
"""

from __future__ import annotations

import mmap
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from struct import Struct
from typing import Any

from runtime.log.checksums import batch_checksum, publish_checksum, stream_checksum
from runtime.log.database import FILE_NAME, WAL_NAME
from runtime.log.state import State

_PAGE_BYTES = 4096
_WAL_HEAD_BYTES, _FRAME_HEAD_BYTES = 32, 24
_INDEX_INTERIOR, _TABLE_LEAF, _INDEX_LEAF = 0x02, 0x0D, 0x0A
_PAYLOAD_BYTES_MAX = 2**30
_U16, _U32 = Struct(">H"), Struct(">I")
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


@dataclass(frozen=True, slots=True)
class _Cell:
    """Where a row begins, how long it is, and which versions of its further pages belong to it."""

    page: _Page
    rowid: int
    size: int
    at: int
    prefers: str = "near"


@dataclass(frozen=True, slots=True)
class _Page:
    """One version of a page. `frame` is -1 in the database itself, else its place in the write-ahead log."""

    number: int
    frame: int
    offset: int


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """Without its body, which `Scavenger.body` reads again: a log may be larger than the memory."""

    stream: int
    last_tick: int
    first_tick: int
    previous_tick: int
    producer: str
    sequence: int
    cell: _Cell


class Scavenger:
    """All rows whose checksum is right: batches by stream and last tick, ticks of publishes as stored. Close it."""

    def __init__(self, folder: Path) -> None:
        self.batches: dict[tuple[int, int], FoundBatch] = {}
        self.publishes: dict[tuple[int, str, int], bytes] = {}
        self.streams: dict[int, tuple[str, str, str]] = {}
        self.states: dict[int, State] = {}
        self._open = ExitStack()
        self._database = _mapped(folder / FILE_NAME, self._open)
        self._wal = _mapped(folder / WAL_NAME, self._open)
        self._frames: dict[int, list[_Page]] = defaultdict(list)
        step = _FRAME_HEAD_BYTES + _PAGE_BYTES
        for frame, at in enumerate(range(_WAL_HEAD_BYTES, len(self._wal) - 4, step)):
            number = _U32.unpack_from(self._wal, at)[0]
            self._frames[number].append(_Page(number, frame, at + _FRAME_HEAD_BYTES))
        for at in range(0, len(self._database), _PAGE_BYTES):
            self._look_into(_Page(at // _PAGE_BYTES + 1, -1, at))
        for pages in self._frames.values():
            for page in pages:
                self._look_into(page)

    def close(self) -> None:
        self._open.close()

    def body(self, batch: FoundBatch) -> bytes:
        row = self._row(batch.cell)
        assert row is not None
        return bytes(row[-1])

    def _bytes(self, page: _Page) -> bytes:
        data = self._database if page.frame < 0 else self._wal
        return bytes(data[page.offset : page.offset + _PAGE_BYTES])

    def _look_into(self, page: _Page) -> None:
        for cell in _cells(page, self._bytes(page)):
            for prefers in ("near", "database", "newest"):
                tried = replace(cell, prefers=prefers)
                if self._is_taken(tried, self._row(tried)):
                    break

    def _is_taken(self, cell: _Cell, row: list[Any] | None) -> bool:
        """Put the row among those found, if its checksum is right."""
        match row:
            case [int(), int(), int(), int(), str(), int(), int(checksum), bytes()]:
                stream, last, first, previous, producer, sequence, _, body = row
                if batch_checksum(stream, last, first, previous, producer, sequence, body) == checksum:
                    self.batches[stream, last] = FoundBatch(stream, last, first, previous, producer, sequence, cell)
                    return True
            case [int(stream), str(producer), int(sequence), bytes(ticks), int(checksum)]:
                if publish_checksum(stream, producer, sequence, ticks) == checksum:
                    self.publishes[stream, producer, sequence] = ticks
                    return True
            case [None, str(name), str(columns), str(rules), int(checksum)]:
                if stream_checksum(cell.rowid, name, columns, rules) == checksum:
                    known = self.streams.get(cell.rowid)
                    if known is None or len(columns) > len(known[1]):  # columns are only ever added
                        self.streams[cell.rowid] = (name, columns, rules)
                    return True
            case [None, bytes(body)]:
                try:
                    state = State.decode(body)
                except ValueError:
                    return False
                self.states[state.seal.number] = state
                return True
            case _:
                pass
        return False

    def _row(self, cell: _Cell) -> list[Any] | None:
        """The values of a row, or None if it cannot be put together."""
        data = self._bytes(cell.page)
        is_table = data[100 if cell.page.number == 1 else 0] == _TABLE_LEAF
        local = _local_bytes(cell.size, is_table)
        payload = data[cell.at : cell.at + local]
        if local == cell.size:
            return _values(payload)
        parts, missing = [payload], cell.size - local
        at = cell.at + local
        if at + 4 > len(data):
            return None
        following = _U32.unpack_from(data, at)[0]
        while missing > 0:
            page = self._version(following, cell)
            content = b"" if page is None else self._bytes(page)
            if len(content) < min(_PAGE_BYTES, missing + 4):
                return None
            following = _U32.unpack_from(content)[0]
            parts.append(content[4 : 4 + missing])
            missing -= _PAGE_BYTES - 4
        return _values(b"".join(parts))

    def _version(self, number: int, cell: _Cell) -> _Page | None:
        """Of a page with the rest of a row: the one written nearest to it, the one in the database, or the newest."""
        frames = self._frames.get(number, [])
        if frames and cell.prefers == "newest":
            return frames[-1]
        if frames and cell.prefers == "near" and cell.page.frame >= 0:
            return min(frames, key=lambda page: abs(page.frame - cell.page.frame))
        offset = (number - 1) * _PAGE_BYTES
        return _Page(number, -1, offset) if 0 <= offset < len(self._database) else None


def _mapped(path: Path, stack: ExitStack) -> Any:
    if not path.exists() or path.stat().st_size == 0:
        return b""
    file = stack.enter_context(path.open("rb"))
    return stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _cells(page: _Page, data: bytes) -> Iterator[_Cell]:
    """Every row that begins in this page, if it is one that holds rows."""
    head = 100 if page.number == 1 else 0
    if len(data) < head + 12 or data[head] not in (_INDEX_INTERIOR, _TABLE_LEAF, _INDEX_LEAF):
        return
    is_interior = data[head] == _INDEX_INTERIOR
    pointers = head + (12 if is_interior else 8)
    for index in range(_U16.unpack_from(data, head + 3)[0]):
        if pointers + 2 * index + 2 > len(data):
            return
        at = _U16.unpack_from(data, pointers + 2 * index)[0] + (4 if is_interior else 0)
        rowid = 0
        size, at = _varint(data, at)
        if data[head] == _TABLE_LEAF:
            rowid, at = _varint(data, at)
        if 0 < size <= _PAYLOAD_BYTES_MAX and at < len(data):
            yield _Cell(page, rowid, size, at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number there and where the next thing begins; beyond the end there are zeros."""
    value = 0
    for count in range(8):
        byte = data[at + count] if at + count < len(data) else 0
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    return value << 8 | (data[at + 8] if at + 8 < len(data) else 0), at + 9


def _local_bytes(size: int, is_table: bool) -> int:
    """How much of a row is in its own page; SQLite's file format says so."""
    low = (_PAGE_BYTES - 12) * 32 // 255 - 23
    high = _PAGE_BYTES - 35 if is_table else (_PAGE_BYTES - 12) * 64 // 255 - 23
    if size <= high:
        return size
    wanted = low + (size - low) % (_PAGE_BYTES - 4)
    return wanted if wanted <= high else low


def _values(payload: bytes) -> list[Any] | None:
    """The columns of a record in SQLite's format; None if it is none."""
    head_bytes, at = _varint(payload, 0)
    types, end = [], head_bytes
    while at < head_bytes <= len(payload):
        kind, at = _varint(payload, at)
        types.append(kind)
    values: list[Any] = []
    for kind in types:
        size = _INTEGER_BYTES.get(kind, 0) if kind < 12 else (kind - 12) // 2
        part = payload[end : end + size]
        if len(part) < size:
            return None
        end += size
        values.append(_value(kind, part))
    return values


def _value(kind: int, part: bytes) -> Any:
    if kind == 0:
        return None
    if kind in _INTEGER_BYTES:
        return int.from_bytes(part, "big", signed=True)
    if kind in (8, 9):
        return kind - 8
    if kind >= 12 and kind % 2:
        return part.decode("utf-8", "replace")
    return part
