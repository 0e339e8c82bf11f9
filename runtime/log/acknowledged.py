"""The number of the newest commit that is on disk, in a small file beside the database.

Whoever finds the database behind this number knows that commits are missing: SQLite itself takes a damaged end of its
write-ahead log for a commit that was never finished. Writing it costs a few microseconds, because it is not synced
each time: after a crash of the process it is exact, after a power loss it may be older, never newer. Two records in
two sectors, written in turn, so that one is whole whatever happens to the other.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from struct import Struct

_RECORD = Struct("<8sQ")
_MAGIC = b"smileACK"
_CHECKSUM = Struct("<I")
_SLOT_BYTES = 4096
_SLOTS = 2


class AcknowledgedFile:
    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._slot = 0

    def write(self, number: int) -> None:
        record = _RECORD.pack(_MAGIC, number)
        os.pwrite(self._handle, record + _CHECKSUM.pack(zlib.crc32(record)), self._slot * _SLOT_BYTES)
        self._slot = (self._slot + 1) % _SLOTS

    def sync(self) -> None:
        os.fsync(self._handle)

    def close(self) -> None:
        os.close(self._handle)


def read_acknowledged(path: Path) -> int:
    """0 if there is no undamaged record: then nothing is known here."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    newest = 0
    for slot in range(_SLOTS):
        record = data[slot * _SLOT_BYTES : slot * _SLOT_BYTES + _RECORD.size]
        checksum = data[slot * _SLOT_BYTES + _RECORD.size :][: _CHECKSUM.size]
        if len(record) == _RECORD.size and checksum == _CHECKSUM.pack(zlib.crc32(record)):
            magic, number = _RECORD.unpack(record)
            if magic == _MAGIC:
                newest = max(newest, number)
    return newest
