"""What a command prints must get somewhere: one line and an exit code where it does not, for every command.

Whoever prints need not care: what is printed may wait in a buffer, so only the end of the command shows whether it
arrived.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from smile.cli.exits import Exit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STANDARD_OUTPUT = 1


class Unwritten(OSError):
    """Standard output takes nothing: an `OSError` as such may be about any file."""


class _Output(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise Unwritten(error.errno, error.strerror) from None


def run_and_print(command: Callable[[], None]) -> None:
    """Runs `command` until everything it printed is written."""
    before = sys.stdout
    if before is None:  # closed by the shell, `>&-`: wanted by nobody
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the process ends)
    else:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(STANDARD_OUTPUT, "w", closefd=False)),
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=bool(before.line_buffering),
        )
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except (OSError, SystemExit) as error:
        failure = error.__context__ if isinstance(error, SystemExit) else error  # typer ends where nobody reads
        if not isinstance(failure, Unwritten):
            raise
        _leave(failure)


def _leave(failure: Unwritten) -> NoReturn:
    """What is left to print goes nowhere: Python would try to write it once more at the very end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)
    if failure.errno == errno.EPIPE:
        sys.exit(Exit.UNREAD)
    with suppress(OSError):
        sys.stderr.write(f"smile: cannot write the output: {failure.strerror}\n")
    sys.exit(Exit.USAGE)
