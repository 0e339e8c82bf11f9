"""A TCP stream of ZMTP 3.x, cut into whole messages.

Enough of the format (RFC 23, RFC 37) to take a message out of a stream without either end noticing: greeting,
handshake commands, frames. Only the NULL mechanism has messages that may be removed or repeated; with any other the
stream stays in one piece (`is_plain` is False), since its encryption counts them.
"""

from __future__ import annotations

from dataclasses import dataclass

GREETING_BYTES = 64
MESSAGE_BYTES_MAX = 256 * 1024 * 1024

_MORE, _LONG, _COMMAND = 1, 2, 4


class NotZmtp(ValueError):
    """A stream that is something else, or that has a frame beyond the bound."""


@dataclass(frozen=True)
class Unit:
    """A piece that may only be passed on whole. `is_message`: a user's data; otherwise greeting, command, raw bytes."""

    data: bytes
    is_message: bool


class Splitter:
    """Bytes in any portions in, units out; what has been fed and not yet given out is kept."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._greeting = bytearray()
        self.is_plain = True

    def feed(self, data: bytes) -> list[Unit]:
        units: list[Unit] = []
        if len(self._greeting) < GREETING_BYTES:
            # In portions as they come: each end waits for the other's first bytes before it sends the rest.
            part, data = data[: GREETING_BYTES - len(self._greeting)], data[GREETING_BYTES - len(self._greeting) :]
            self._greeting += part
            units.append(Unit(part, is_message=False))
            self._check_greeting()
        self._buffer += data
        if not self.is_plain:
            if self._buffer:
                units.append(self._take(len(self._buffer), is_message=False))
            return units
        while (found := self._whole()) is not None:
            units.append(self._take(*found))
        return units

    def _check_greeting(self) -> None:
        greeting = bytes(self._greeting)
        if greeting[:1] != b"\xff" or greeting[9:10] not in (b"", b"\x7f") or greeting[10:11] not in (b"", b"\x03"):
            raise NotZmtp("no greeting of ZMTP 3")
        if len(greeting) == GREETING_BYTES:
            self.is_plain = greeting[12:32].rstrip(b"\0") == b"NULL"

    def _whole(self) -> tuple[int, bool] | None:
        """Length of the next message or command, if all of it is there."""
        end = 0
        while True:
            if len(self._buffer) < end + 2:
                return None
            flags = self._buffer[end]
            if flags & ~(_MORE | _LONG | _COMMAND):
                raise NotZmtp(f"frame flags {flags:#x}")
            size_bytes = 8 if flags & _LONG else 1
            start = end + 1 + size_bytes
            if len(self._buffer) < start:
                return None
            end = start + int.from_bytes(self._buffer[end + 1 : start], "big")
            if end > MESSAGE_BYTES_MAX:
                raise NotZmtp(f"a message of more than {MESSAGE_BYTES_MAX} bytes")
            if len(self._buffer) < end:
                return None
            if not flags & _MORE:
                return end, not flags & _COMMAND

    def _take(self, length: int, is_message: bool) -> Unit:
        unit = Unit(bytes(self._buffer[:length]), is_message)
        del self._buffer[:length]
        return unit
