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
        _run_and_flush(command)
    except KeyboardInterrupt:
        _leave(Exit.INTERRUPTED)
    except (OSError, SystemExit) as error:
        failure = error.__context__ if isinstance(error, SystemExit) else error  # typer ends where nobody reads
        if not isinstance(failure, Unwritten):
            raise
        if failure.errno == errno.EPIPE:
            _leave(Exit.UNREAD)
        with suppress(OSError):
            sys.stderr.write(f"smile: cannot write the output: {failure.strerror}\n")
        _leave(Exit.USAGE)


def _run_and_flush(command: Callable[[], None]) -> None:
    try:
        command()
    except SystemExit as left:
        if left.code == Exit.INTERRUPTED:  # perhaps because nobody reads: no waiting for that once more
            raise KeyboardInterrupt from None
        sys.stdout.flush()
        raise
    sys.stdout.flush()


def _leave(code: Exit) -> NoReturn:
    """What is left to print goes nowhere: Python would try to write it once more at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)
    sys.exit(code)
