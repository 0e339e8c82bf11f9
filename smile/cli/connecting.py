"""Reaching the brokers: which address a command means, and what it says when nobody answers there.

An address comes from --address (or SMILE_ADDRESS), else from a run of `smile run` that was started here and is alive,
else from the nearest smile.toml, else it is the one on which `smile run` listens first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from smile.cli.configs import optional_config
from smile.cli.exits import Exit
from smile.cli.files import fail

if TYPE_CHECKING:
    from runtime.client.connection import Connection
    from smile.remote.system import RemoteSystem

FIRST_PORT = 7070
DEFAULT_ADDRESS = f"tcp://127.0.0.1:{FIRST_PORT}"

Address = Annotated[
    str | None,
    typer.Option("--address", "-a", envvar="SMILE_ADDRESS", help="Any broker, such as tcp://127.0.0.1:7070."),
]
KeysFile = Annotated[
    Path | None, typer.Option("--keys", envvar="SMILE_KEYS", metavar="FILE", help="Your secret keys, if needed.")
]
Timeout = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for brokers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Target:
    """`origin` says where the address comes from, for messages."""

    address: str
    origin: str
    keys: Path | None


def find_target(address: str | None, keys: Path | None) -> Target:
    if address is not None:
        return Target(address, "given", keys)
    from smile.deploy.run_record import find_run

    run = find_run(Path.cwd())
    if run is not None:
        return Target(run.address, f"the run in {run.folder}", keys)
    config = optional_config(None)
    if config is not None and config.brokers:
        name, first = next(iter(config.addresses.items()))
        return Target(first, f"broker {name} of {config.path}", keys or config.client_keys)
    return Target(DEFAULT_ADDRESS, "the usual one", keys)


@contextmanager
def connected(address: str | None, keys: Path | None, timeout: float = TIMEOUT_S) -> Iterator[RemoteSystem]:
    """A connection for one command. What goes wrong in the block is said in one line, with the exit code it has."""
    from smile.errors import ConnectFailed, SmileError
    from smile.remote.connect import connect

    target = find_target(address, keys)
    try:
        system = connect(target.address, keys=target.keys, timeout=timeout)
    except ConnectFailed as error:
        _fail_to_connect(target, error.reason, error.remedy)
    with system:
        try:
            yield system
        except SmileError as error:
            fail(str(error), exit_code_of(error))


@contextmanager
def linked(address: str | None, keys: Path | None, timeout: float) -> Iterator[Connection]:
    """A connection that only asks how things are: the program is not compiled, so this is fast."""
    from runtime.client.connection import Connection
    from runtime.client.errors import ConnectFailed
    from runtime.security.errors import SecurityError
    from runtime.security.keys import read_keys

    target = find_target(address, keys)
    try:
        own = None if target.keys is None else read_keys(target.keys)
        connection = Connection(target.address, keys=own, request_timeout=timeout)
    except (ConnectFailed, SecurityError) as error:
        _fail_to_connect(target, error.reason, error.remedy)
    try:
        yield connection
    finally:
        connection.close()


def _fail_to_connect(target: Target, reason: str, remedy: str) -> NoReturn:
    fail(
        f"no connection to {target.address} ({target.origin}): {reason}; {remedy}\n"
        "       start brokers with `smile run FILE`, or say where they are with --address",
        Exit.UNREACHABLE,
    )


def column_names(system: RemoteSystem, view: str) -> tuple[str, ...]:
    from smile.views import ViewReader

    return ViewReader(system.program.relation(view)).names


def exit_code_of(error: Exception) -> Exit:
    from smile.errors import ConnectFailed, NotAllowed, PublishUncertain, TimedOut, UnknownName

    if isinstance(error, UnknownName):
        return Exit.USAGE
    if isinstance(error, NotAllowed):
        return Exit.REFUSED
    if isinstance(error, TimedOut | ConnectFailed | PublishUncertain):
        return Exit.UNREACHABLE
    return Exit.FAILED
