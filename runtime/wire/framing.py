"""The frame layout: a msgpack header, and a body in which column buffers follow each other at multiples of 8 bytes.

header = [version, kind, field..., body]: the body's bytes if they are few, otherwise nil and the body is the second
frame. Two frames at most, whatever the number of columns: a data socket hands every frame to every subscriber, so
frames are what fan-out costs.

`Outgoing` collects a body while the fields are made, `Incoming` hands it out while they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgpack

from runtime.wire.errors import WireGarbage, WireTooLarge, WireVersion
from runtime.wire.limits import (
    FRAME_BYTES_MAX,
    FRAMES_MAX,
    HEADER_BYTES_MAX,
    HEADER_ITEMS_MAX,
    INLINE_BODY_BYTES_MAX,
    INLINE_BYTES_MAX,
    NAME_BYTES_MAX,
)

VERSION: Final = 1
"""Changes with every change of layout; `tests/wire/golden` notices one that was not meant."""

Buffer = bytes | bytearray | memoryview

_FIXED_ARRAY: Final = 0x90  # a msgpack list of up to 15 entries: its first byte is this plus their number
_FIELDS_MAX: Final = 15
_ALIGNMENT: Final = 8
_PADDING: Final = tuple(bytes(-size % _ALIGNMENT) for size in range(_ALIGNMENT))
INT_MAX: Final = 2**63 - 1


_unpack = partial(
    msgpack.unpackb,
    max_array_len=HEADER_ITEMS_MAX,
    max_map_len=0,
    max_ext_len=0,
    max_str_len=INLINE_BYTES_MAX,
    max_bin_len=INLINE_BYTES_MAX,
)


class Outgoing:
    """The body of a message being encoded, and how much more its header can take."""

    __slots__ = ("_parts", "_size", "inline_bytes_left")

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._size = 0
        self.inline_bytes_left = INLINE_BYTES_MAX

    def add(self, data: Any, size: int) -> None:
        """Append a contiguous buffer of `size` bytes."""
        self._parts.append(data)
        self._size += size
        if size % _ALIGNMENT:
            padding = _PADDING[size % _ALIGNMENT]
            self._parts.append(padding)
            self._size += len(padding)

    def frames(self, kind: int, fields: list[object]) -> list[bytes]:
        """The finished message."""
        if self._size > FRAME_BYTES_MAX:
            raise WireTooLarge(f"a body of {self._size} bytes, the bound is {FRAME_BYTES_MAX}")
        assert len(fields) + 3 <= _FIELDS_MAX
        body = b"".join(self._parts) if self._parts else b""
        is_inline = self._size <= INLINE_BODY_BYTES_MAX
        try:
            header: bytes = msgpack.packb([VERSION, kind, *fields, body if is_inline else None])
        except UnicodeEncodeError as broken:
            raise WireGarbage(f"a text that is not Unicode: {broken.reason}") from None
        if len(header) > HEADER_BYTES_MAX:
            raise WireTooLarge(f"a header of {len(header)} bytes, the bound is {HEADER_BYTES_MAX}")
        return [header] if is_inline else [header, body]


class Incoming:
    """The fields of a header, and the body as far as it has been read."""

    __slots__ = ("_at", "_body", "_size", "fields", "kind")

    def __init__(self, kind: int, fields: list[Any], body: Buffer) -> None:
        self.kind = kind
        self.fields = fields
        self._body = body
        self._size = len(body)
        self._at = 0

    def take(self, size: int) -> memoryview:
        """The next `size` bytes of the body."""
        first = self._at
        end = first + size
        if size < 0 or end > self._size:
            raise WireGarbage(f"a body of {self._size} bytes ends before byte {end}")
        self._at = end + -end % _ALIGNMENT
        return memoryview(self._body)[first:end]

    @property
    def is_finished(self) -> bool:
        return self._at == self._size

    def finish(self) -> None:
        """Everything must have been asked for: what is left over was put there by no encoder."""
        if self._at != self._size:
            raise WireGarbage(f"{self._size} bytes of body where {self._at} were announced")


def open_frames(frames: Sequence[Buffer]) -> Incoming:
    """Check sizes and version, read the header. Its fields may still be anything."""
    if not 1 <= len(frames) <= FRAMES_MAX:
        raise WireGarbage(f"{len(frames)} frames, a message has 1 to {FRAMES_MAX}")
    header = frames[0]
    if len(header) > HEADER_BYTES_MAX:
        raise WireTooLarge(f"a header of {len(header)} bytes, the bound is {HEADER_BYTES_MAX}")
    if len(header) < 4 or header[0] & 0xF0 != _FIXED_ARRAY:
        raise WireGarbage("a header is a list that starts with a version")
    if header[1] != VERSION:
        raise WireVersion(f"wire version {header[1]}, this side speaks {VERSION}")
    try:
        values: list[Any] = _unpack(header)
    except (ValueError, TypeError, msgpack.UnpackException) as broken:
        if "exceeds max" in str(broken):
            raise WireTooLarge(f"in a header: {broken}") from None
        raise WireGarbage(f"a header that cannot be read: {broken}") from None
    if len(values) < 3:
        raise WireGarbage("a header has a version, a kind and a body")
    kind, body = values[1], values.pop()
    if type(kind) is not int:
        raise WireGarbage("the kind of a message is a number")
    if len(frames) == FRAMES_MAX:
        if body is not None:
            raise WireGarbage("two bodies in one message")
        body = frames[1]
        if len(body) > FRAME_BYTES_MAX:
            raise WireTooLarge(f"a body of {len(body)} bytes, the bound is {FRAME_BYTES_MAX}")
    elif type(body) is not bytes:
        raise WireGarbage("a message without its body")
    return Incoming(kind, values[2:], body)


# Checks of single fields


def whole(value: Any, lowest: int = 0) -> int:
    """A number of 64 bits, `lowest` or larger."""
    if type(value) is not int:
        raise WireGarbage(f"{type(value).__name__} where a number is expected")
    if not lowest <= value <= INT_MAX:
        raise WireGarbage(f"{value} where a number of 64 bits from {lowest} is expected")
    return value


def check_wholes(*values: Any) -> None:
    """All of them must be what `whole` accepts."""
    for value in values:
        if type(value) is not int or not 0 <= value <= INT_MAX:
            whole(value)


def name_out(value: str) -> str:
    """A name that the peer will accept."""
    if len(value) * 4 > NAME_BYTES_MAX and len(value.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise WireTooLarge(f"a name of {len(value)} characters, the bound is {NAME_BYTES_MAX} bytes")
    return value


def name(value: Any) -> str:
    """By the same measure as `name_out`: answers repeat names, and must be possible for whatever was let in."""
    if type(value) is not str:
        raise WireGarbage(f"{type(value).__name__} where a name is expected")
    return name_out(value)
