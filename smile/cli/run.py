"""`smile run`: a program on brokers of this machine."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.connecting import FIRST_PORT, AsJson
from smile.cli.ended import Ended
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.output import show

if TYPE_CHECKING:
    from smile.local import LocalBrokers
    from smile.program import Program

BROKERS_MAX = 64
LOOK_EVERY_S = 0.2


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An MPL file.")],
    brokers: Annotated[
        int | None, typer.Option(min=1, max=BROKERS_MAX, help="How many; default: as many as the program declares.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where logs are kept; default: .smile/NAME, continued next time.")
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Logs forget what is in it; `smile archive --follow --archive DIR` fills it."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Of the first broker, if it is free; others follow.")
    ] = FIRST_PORT,
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP too, at every broker.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Generate traffic, kill a broker, show the view, judge, and end.")
    ] = False,
    seconds: Annotated[float | None, typer.Option(min=0.0, help="End after so many seconds.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compile a program, start brokers on this machine, and print their addresses. Ctrl-C stops all of it.

    A broker that dies is started again. Other commands, in other terminals below the same folder, find the run by
    themselves: smile publish, query, subscribe, status, top, logs, fault.

    Example: smile run tickets.mpl --brokers 3
    """
    program = _compiled(file)
    if demo:
        _run_demo(program, brokers)
        return
    folder = data if data is not None else Path(".smile") / re.sub(r"\W+", "_", file.stem)
    ended = Ended()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with _started(program, brokers, folder, port, archive, ended, http=http, as_json=as_json) as local:
        _tell_start(local, as_json=as_json)
        _wait(local, ended, seconds)
    if not as_json:
        typer.echo(f"stopped; the logs are in {folder}, and the next run continues from them")


def _wait(local: LocalBrokers, ended: threading.Event, seconds: float | None) -> None:
    """Until told to end, or after so many seconds, or until nobody looks after the brokers any more."""
    end = inf if seconds is None else monotonic() + seconds
    while not ended.wait(max(0.0, min(LOOK_EVERY_S, end - monotonic()))) and monotonic() < end:
        if local.failure is not None:
            fail(f"all brokers have been stopped: {local.failure}", Exit.FAILED)


def _compiled(file: Path) -> Program:
    from mpl.diagnostic import MplError
    from smile.deploy.bundles import compile_file

    try:
        return compile_file(file)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read {file}: {getattr(error, 'strerror', None) or error}")
    except MplError as error:
        show(error.diagnostics)
        raise typer.Exit(Exit.FAILED) from None


def _cannot_run() -> tuple[type[Exception], ...]:
    """Programs that compile and cannot run here: where its components are, what its tables have."""
    from smile.deploy.deployment import DeploymentError
    from smile.deploy.placement import PlacementError
    from smile.errors import SmileError

    return (DeploymentError, PlacementError, SmileError)


@contextmanager
def _started(
    program: Program,
    brokers: int | None,
    folder: Path,
    port: int,
    archive: Path | None,
    ended: threading.Event,
    *,
    http: bool,
    as_json: bool,
) -> Iterator[LocalBrokers]:
    from smile.local import LocalBrokers, LocalRunError

    def changed(name: str, state: str) -> None:
        if not as_json:
            with suppress(OSError):  # nobody reads it any more: no reason to stop the brokers
                typer.echo(f"{name}: {state}", err=True)

    try:
        local = LocalBrokers(
            program,
            brokers,
            folder,
            first_port=port,
            http=http,
            keep="all" if archive is None else "archive",
            archive=archive,
            changed=changed,
        ).start(ended)
    except LocalRunError as error:
        if ended.is_set():
            typer.echo("stopped before all brokers served", err=True)
            raise typer.Exit(Exit.OK) from None
        fail(str(error), Exit.FAILED)
    except _cannot_run() as error:
        fail(str(error), Exit.FAILED)
    except OSError as error:
        fail(f"{folder}: {error.strerror or error}")
    try:
        yield local
    finally:
        local.close()


def _tell_start(local: LocalBrokers, *, as_json: bool) -> None:
    if as_json:
        brokers = {name: {"address": one.address, "http": one.http} for name, one in local.record.brokers.items()}
        told = {
            "address": local.address,
            "brokers": brokers,
            "placement": dict(local.placed.homes),
            "data": str(local.data),
        }
        typer.echo(json.dumps(told))
        return
    typer.echo(f"address: {local.address}")
    for name, one in local.record.brokers.items():
        here = ", ".join(local.deployment.components_on(name)) or "nothing"
        typer.echo(f"  {name} at {one.address}{f', http://{one.http}' if one.http else ''}: {here}")
    typer.echo("Ctrl-C stops it; `smile status` and others work in another terminal")


def _run_demo(program: Program, brokers: int | None) -> None:
    from random import Random

    from smile.cli.demo import Demo, Script, comparable_views, recomputed, report
    from smile.cli.traffic import random_rows
    from smile.local import LocalBrokers, LocalRunError

    declared = program.checked.program
    views = comparable_views(program)
    names = [*(one.view for one in declared.subscriptions.values() if one.view in views), *reversed(views)]
    if not names:
        fail("a demonstration needs a view to show, and one without a column of ticks")
    sources = {name: random_rows(stream, Random(name)) for name, stream in declared.streams.items()}
    demo = Demo(Script(names[0], sources, recomputed(program)))
    try:
        with LocalBrokers(program, brokers, changed=demo.changed) as local:
            verdict = demo.run(local)
    except LocalRunError as error:
        fail(str(error), Exit.FAILED)
    except _cannot_run() as error:
        fail(str(error), Exit.FAILED)
    report(verdict)
    if not verdict.is_good:
        raise typer.Exit(Exit.FAILED)
