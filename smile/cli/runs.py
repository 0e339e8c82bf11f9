"""Which local run a command means, and which of its brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.exits import Exit
from smile.cli.files import fail

if TYPE_CHECKING:
    from smile.deploy.run_record import BrokerProcess, RunRecord

DataFolder = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The folder of a local run; default: the newest one here.")
]


def the_run(data: Path | None, *, alive: bool) -> RunRecord:
    """Leaves with exit code 2 or 4 if there is none. `alive`: one that has ended does not count."""
    from smile.deploy.run_record import find_run, read_run

    run = find_run(Path.cwd()) if data is None else read_run(data)
    if run is None:
        where = f"in {data}" if data is not None else "here"
        fail(
            f"there is no local run {where}; start one with `smile run FILE`, or say where with --data",
            Exit.UNREACHABLE,
        )
    if alive and not run.is_alive:
        fail(f"the run in {run.folder} has ended; start it again with `smile run`", Exit.UNREACHABLE)
    return run


def the_broker(run: RunRecord, name: str) -> BrokerProcess:
    from mpl.diagnostic import did_you_mean

    if name not in run.brokers:
        hint = did_you_mean(name, run.brokers) or f"there are {', '.join(run.brokers)}"
        fail(f"the run in {run.folder} has no broker `{name}`; {hint}")
    return run.brokers[name]
