"""Reading MPL files for the command line: every way in which that can fail, said in one sentence."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import typer

from mpl.source import Source
from smile.cli.exits import Exit

READ_BYTES_MAX = 16 * 2**20
"""Far beyond the language's own limit, which gives the better message; this one only protects memory."""

STDIN = "-"


def read_source(path: str) -> Source:
    """The text of a file, or of standard input for `-`; leaves with exit code 2 if it cannot be had."""
    name = "<stdin>" if path == STDIN else path
    try:
        data = sys.stdin.buffer.read(READ_BYTES_MAX + 1) if path == STDIN else _read(Path(path))
    except OSError as error:
        fail(f"cannot read {name}: {error.strerror or error}")
    if len(data) > READ_BYTES_MAX:
        fail(f"cannot read {name}: larger than {READ_BYTES_MAX // 2**20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fail(f"cannot read {name}: line {line} is not UTF-8 text (byte {error.start})")
    return Source(name, text)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(READ_BYTES_MAX + 1)


def fail(message: str, code: Exit = Exit.USAGE) -> NoReturn:
    """Says what went wrong on standard error and leaves with this exit code."""
    with suppress(OSError):  # nowhere to say it: the code still does
        typer.echo(f"smile: {message}", err=True)
    raise typer.Exit(code)
