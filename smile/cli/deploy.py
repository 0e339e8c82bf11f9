"""`smile deploy`: a program to the brokers of smile.toml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.configs import required_config
from smile.cli.connecting import TIMEOUT_S, AsJson, KeysFile, Timeout
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.output import show

if TYPE_CHECKING:
    from runtime.client.connection import Connection
    from runtime.security.keys import Keys
    from smile.deploy.config import Config
    from smile.deploy.deployment import Deployment
    from smile.deploy.placement import Placed
    from smile.program import Program


def deploy(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="smile.toml; default: the nearest one.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run where, and why; send nothing.")
    ] = False,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Give the program of smile.toml to all its brokers, which compile it themselves and compare.

    Streams stay where their logs are, and keep their ticks. All brokers must answer: one that missed a deployment could
    not talk to the others. With keys the deployment is signed; brokers with an allow-list run nothing else.

    Example: smile deploy --dry-run
    """
    found = required_config(config)
    program = _compiled(found)
    signer = _signer(keys or found.client_keys)
    previous = None if dry_run else _previous(found, signer, timeout)
    deployment, placed = _made(found, program, previous)
    if signer is not None:
        from runtime.security.signatures import serial_now
        from smile.deploy.bundles import sign

        deployment = sign(deployment, signer, serial_now())
    if not dry_run:
        _send(found, deployment, signer, timeout)
    if as_json:
        told = {"deployment": deployment.name, "digest": deployment.digest, "sent": not dry_run}
        typer.echo(json.dumps({**told, "placement": dict(placed.homes), "reasons": dict(placed.reasons)}, indent=2))
        return
    typer.echo(placed.explain())
    if not dry_run:
        typer.echo(f"{deployment.name} runs on {', '.join(found.brokers)} ({deployment.digest[:19]})")


def _compiled(config: Config) -> Program:
    from mpl.diagnostic import MplError
    from smile.deploy.bundles import compile_file
    from smile.deploy.config import ConfigError

    try:
        path = config.required_program()
        return compile_file(path)
    except ConfigError as error:
        fail(str(error))
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
    except MplError as error:
        show(error.diagnostics)
        raise typer.Exit(Exit.FAILED) from None


def _signer(path: Path | None) -> Keys | None:
    from runtime.security.errors import SecurityError
    from runtime.security.keys import read_keys

    try:
        return None if path is None else read_keys(path)
    except SecurityError as error:
        fail(str(error))


def _made(config: Config, program: Program, previous: Deployment | None) -> tuple[Deployment, Placed]:
    from smile.deploy.bundles import make_deployment
    from smile.deploy.deployment import DeploymentError
    from smile.deploy.placement import PlacementError, place
    from smile.errors import SmileError

    try:
        placed = place(program.checked.program, program.plan, list(config.brokers), config.pins, previous=previous)
        return make_deployment(program, config.addresses, placed.homes, previous=previous), placed
    except (PlacementError, DeploymentError, SmileError) as error:
        fail(str(error), Exit.FAILED)


def _previous(config: Config, signer: Keys | None, timeout: float) -> Deployment | None:
    """What runs now, according to the first broker that has something. Leaves if one does not answer."""
    from smile.deploy.deployment import Deployment

    found: Deployment | None = None
    for name, address in config.addresses.items():
        with _connection(name, address, signer, timeout) as connection:
            if found is None and connection.deployment:
                found = Deployment.from_wire(connection.deployment)
    return found


def _send(config: Config, deployment: Deployment, signer: Keys | None, timeout: float) -> None:
    for name, address in config.addresses.items():
        with _connection(name, address, signer, timeout) as connection:
            connection.deploy(deployment.to_wire())


@contextmanager
def _connection(name: str, address: str, signer: Keys | None, timeout: float) -> Iterator[Connection]:
    from runtime.client.connection import Connection
    from runtime.client.errors import ConnectFailed, RequestRefused
    from runtime.security.errors import SecurityError

    try:
        connection = Connection(
            address, keys=signer, name="smile deploy", request_timeout=timeout, needs_deployment=False
        )
        try:
            yield connection
        finally:
            connection.close()
    except (ConnectFailed, TimeoutError) as error:
        remedy = f"start it with `smile broker {name}`; all brokers must answer"
        fail(f"broker {name} at {address}: {error}; {remedy}", Exit.UNREACHABLE)
    except RequestRefused as error:
        fail(f"broker {name} refuses: {error}", Exit.REFUSED)
    except SecurityError as error:
        fail(str(error), Exit.REFUSED)
