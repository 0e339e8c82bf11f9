"""Whatever arrived on a socket that carries both: a control record or a message."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.protocol.messages import Message
from runtime.wire.control import ControlRecord, read_control
from runtime.wire.framing import Buffer, open_frames
from runtime.wire.messages import Kind, read_message


def decode_frames(frames: Sequence[Buffer]) -> ControlRecord | tuple[str, Message]:
    """A record, or (edge, message). Raises `WireError` and nothing else."""
    incoming = open_frames(frames)
    return read_message(incoming) if incoming.kind <= Kind.MESSAGE_MAX else read_control(incoming)
