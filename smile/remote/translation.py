"""Errors of the connection in the words of the public API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime.client.errors import ConnectionClosed
from smile.errors import Closed, SmileError, TimedOut


@contextmanager
def public_errors() -> Iterator[None]:
    """Around whatever asks the connection for something."""
    try:
        yield
    except ConnectionClosed as error:
        raise Closed("the connection is closed") from error
    except TimeoutError as error:
        if isinstance(error, SmileError):
            raise
        raise TimedOut("the connection does not answer: its thread is busy, or a callback waits in it") from error
