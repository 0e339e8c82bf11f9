"""Errors of the connection, and of those who use it where they cannot, in the words of the public API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime.client.connection import Connection
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


def check_process(connection: Connection) -> None:
    """Before any lock is taken: in a fork it may be held by a thread that is not there."""
    if connection.is_foreign:
        raise Closed("this process is a fork of the one that connected: connect here, too")


def check_thread(connection: Connection) -> None:
    """Before anything is waited for that the connection's own thread would bring."""
    if connection.is_here:
        raise SmileError("a future's callback runs where the answers come in: it cannot wait for one there")
