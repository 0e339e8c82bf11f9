"""`smile fault`: harm a local run, to see it recover."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.completing import brokers
from smile.cli.connecting import AsJson
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.runs import DataFolder, the_broker, the_run

fault = typer.Typer(
    name="fault",
    help="Harm the brokers of a local run, to see that nothing shown becomes false and all of it catches up.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Broker = Annotated[str, typer.Argument(metavar="BROKER", help="A broker of the run.", autocompletion=brokers)]
Fraction = Annotated[float, typer.Argument(min=0.0, max=1.0, help="Of its messages: 0.1 is every tenth.")]


@fault.command()
def kill(broker: Broker, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Kill a broker with -9. The run starts it again.

    Example: smile fault kill hub
    """
    _signal(broker, data, signal.SIGKILL, "was killed with -9; it is started again", as_json=as_json)


@fault.command()
def pause(broker: Broker, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Freeze a broker: its connections stay, it answers nothing. `smile fault resume` ends it.

    Example: smile fault pause hub
    """
    _signal(broker, data, signal.SIGSTOP, "is frozen; `smile fault resume` ends it", as_json=as_json)


@fault.command()
def resume(broker: Broker, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Let a frozen broker go on.

    Example: smile fault resume hub
    """
    _signal(broker, data, signal.SIGCONT, "goes on", as_json=as_json)


@fault.command()
def drop(broker: Broker, fraction: Fraction, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Lose this fraction of the messages that a broker sends.

    Example: smile fault drop west 0.2
    """
    _ask(broker, data, "drop", {"fraction": fraction}, f"loses {fraction:.0%} of what it sends", as_json=as_json)


@fault.command()
def duplicate(broker: Broker, fraction: Fraction, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Send this fraction of a broker's messages twice.

    Example: smile fault duplicate west 0.2
    """
    _ask(broker, data, "duplicate", {"fraction": fraction}, f"sends {fraction:.0%} twice", as_json=as_json)


@fault.command()
def delay(
    broker: Broker,
    fraction: Fraction,
    ms: Annotated[int, typer.Argument(metavar="MS", min=1, help="By so many milliseconds.")],
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Hold this fraction of a broker's messages back, so that others overtake them.

    Example: smile fault delay west 0.3 200
    """
    told = f"sends {fraction:.0%} of its messages {ms} ms late"
    _ask(broker, data, "delay", {"fraction": fraction, "ms": ms}, told, as_json=as_json)


@fault.command()
def clear(broker: Broker, data: DataFolder = None, as_json: AsJson = False) -> None:
    """End drop, duplicate and delay.

    Example: smile fault clear west
    """
    _ask(broker, data, "none", {}, "sends everything once and in time", as_json=as_json)


def _signal(name: str, data: Path | None, number: signal.Signals, told: str, *, as_json: bool) -> None:
    process = the_broker(the_run(data, alive=True), name)
    if process.pid is None:
        fail(f"broker `{name}` is {process.state}; wait until it serves", Exit.FAILED)
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        fail(f"broker `{name}` is down already", Exit.FAILED)
    _tell(name, told, as_json=as_json)


def _ask(name: str, data: Path | None, kind: str, arguments: dict[str, object], told: str, *, as_json: bool) -> None:
    """Faults inside a broker are asked for over its own control connection."""
    from runtime.client.connection import Connection
    from runtime.client.errors import ConnectFailed, RequestRefused

    process = the_broker(the_run(data, alive=True), name)
    try:
        connection = Connection(process.address, name="smile fault")
        try:
            connection.fault(name, kind, arguments)
        finally:
            connection.close()
    except (ConnectFailed, TimeoutError) as error:
        fail(f"broker `{name}` does not answer: {error}", Exit.UNREACHABLE)
    except RequestRefused as error:
        fail(f"broker `{name}` refuses: {error}", Exit.REFUSED)
    _tell(name, told, as_json=as_json)


def _tell(name: str, told: str, *, as_json: bool) -> None:
    typer.echo(json.dumps({"broker": name, "told": told}) if as_json else f"{name} {told}")
