"""`smile logs`: what the brokers of a local run print."""

from __future__ import annotations

import json
import time
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from smile.cli.completing import brokers as complete
from smile.cli.runs import DataFolder, the_broker, the_run

if TYPE_CHECKING:
    from smile.deploy.run_record import BrokerProcess

LOOK_EVERY_S = 0.2
READ_BYTES = 2**20


def logs(
    brokers: Annotated[
        list[str] | None, typer.Argument(metavar="[BROKER...]", help="Only these brokers.", autocompletion=complete)
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="The last lines of each.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False,
    data: DataFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Print the logs of the brokers of a local run, each line with the name of its broker.

    Example: smile logs hub --follow
    """
    run = the_run(data, alive=False)
    chosen = [the_broker(run, name) for name in brokers or run.brokers]
    width = None if as_json else max(len(broker.name) for broker in chosen)
    ends = {broker.name: _print_tail(broker, lines, width) for broker in chosen}
    while follow:
        time.sleep(LOOK_EVERY_S)
        for broker in chosen:
            ends[broker.name] = _print_from(broker, ends[broker.name], width)


def _print_tail(broker: BrokerProcess, count: int, width: int | None) -> int:
    """The last lines; where they end. Only their part of the file is read: a log may be larger than the memory."""
    try:
        with Path(broker.log).open("rb") as file:
            end = _behind_line(file, file.seek(0, SEEK_END), 0)
            start = _behind_line(file, end, count)
    except FileNotFoundError:
        return 0
    before = -1
    while before < start < end:  # else somebody has cut the file meanwhile
        before, start = start, _print_from(broker, start, width)
    return start


def _behind_line(file: BinaryIO, end: int, skipped: int) -> int:
    """Where the last line before `end` ends, not counting so many after it; 0 if there are fewer."""
    while end > 0:
        start = max(0, end - READ_BYTES)
        file.seek(start)
        block = file.read(end - start)
        found = block.count(b"\n")
        if found > skipped:
            return start + len(block.rsplit(b"\n", skipped + 1)[0]) + 1
        skipped -= found
        end = start
    return 0


def _print_from(broker: BrokerProcess, start: int, width: int | None) -> int:
    """Whole lines only: the rest of a line comes with the next look. One that is too long is printed in parts."""
    try:
        with Path(broker.log).open("rb") as file:
            file.seek(start)
            data = file.read(READ_BYTES)
    except FileNotFoundError:
        return start
    whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == READ_BYTES else b"")
    _print(broker, whole.splitlines(), width)
    return start + len(whole)


def _print(broker: BrokerProcess, lines: list[bytes], width: int | None) -> None:
    """`width`: of the column of names; None for JSON."""
    for line in lines:
        text = line.decode(errors="replace")
        typer.echo(
            json.dumps({"broker": broker.name, "text": text}) if width is None else f"{broker.name:{width}}  {text}"
        )
