"""Checksums of what a log stores: over all of a row, its place included, so that no row can pass for another."""

from __future__ import annotations

import zlib
from struct import Struct

_HEAD = Struct("<qqqqq")


def batch_checksum(stream: int, last: int, first: int, previous: int, producer: str, sequence: int, body: bytes) -> int:
    head = _HEAD.pack(stream, last, first, previous, sequence) + producer.encode()
    return zlib.crc32(body, zlib.crc32(head))


def publish_checksum(stream: int, producer: str, sequence: int, ticks: bytes) -> int:
    return zlib.crc32(ticks, zlib.crc32(b"%d %d %s" % (stream, sequence, producer.encode())))


def stream_checksum(number: int, name: str, columns: str, rules: str) -> int:
    return zlib.crc32("\0".join((str(number), name, columns, rules)).encode())
