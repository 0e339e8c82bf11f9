"""`smile logs`: what the brokers of a local run print."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    """The last lines; where the file ended."""
    try:
        data = Path(broker.log).read_bytes()
    except FileNotFoundError:
        return 0
    whole = data[: data.rfind(b"\n") + 1]
    _print(broker, whole.splitlines()[-count:] if count else [], width)
    return len(whole)


def _print_from(broker: BrokerProcess, start: int, width: int | None) -> int:
    """Whole lines only: the rest of a line comes with the next look."""
    try:
        with Path(broker.log).open("rb") as file:
            file.seek(start)
            data = file.read(READ_BYTES)
    except FileNotFoundError:
        return start
    whole = data[: data.rfind(b"\n") + 1]
    _print(broker, whole.splitlines(), width)
    return start + len(whole)


def _print(broker: BrokerProcess, lines: list[bytes], width: int | None) -> None:
    """`width`: of the column of names; None for JSON."""
    for line in lines:
        text = line.decode(errors="replace")
        typer.echo(
            json.dumps({"broker": broker.name, "text": text}) if width is None else f"{broker.name:{width}}  {text}"
        )
