"""`smile deploy`: a program to the brokers of smile.toml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from smile.cli.configs import required_config
from smile.cli.connecting import TIMEOUT_S, AsJson, KeysFile, Timeout
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.output import show

if TYPE_CHECKING:
    from runtime.client.connection import Connection
    from runtime.security.keys import Keys
    from smile.bulk.sources import Sources
    from smile.bulk.switching import Installed
    from smile.deploy.backfill import Choice
    from smile.deploy.config import Config
    from smile.deploy.deployment import Deployment
    from smile.deploy.placement import Placed
    from smile.program import Program

TRIES_AGAIN = "the deployment runs, and `smile recompute VIEW --install` tries again"
PAST = {"replay": "replays its past from the logs", "bulk": "gets its past from Spark"}


def deploy(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="smile.toml; default: the nearest one.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run where, and why; send nothing.")
    ] = False,
    master: Annotated[
        str | None, typer.Option("--master", help="Spark's, if a past has to be computed; default: [spark] master.")
    ] = None,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Give the program of smile.toml to all its brokers, which compile it themselves and compare.

    Streams stay where their logs are, and keep their ticks. All brokers must answer and agree before the first one is
    told to switch: one that missed a deployment could not talk to the others. With keys the deployment is signed;
    brokers with an allow-list run nothing else.

    A new view gets its past from the logs by itself. If these no longer have it, or it is long, Spark computes it.

    Example: smile deploy --dry-run
    """
    found = required_config(config)
    program = _compiled(found)
    signer = _signer(keys or found.client_keys)
    previous = None if dry_run else _previous(found, signer, timeout)
    deployment, placed = _made(found, program, previous)
    chosen = [] if previous is None else _choices(found, previous, deployment, program, signer, timeout, master)
    if signer is not None:
        from runtime.security.signatures import serial_now
        from smile.deploy.bundles import sign

        deployment = sign(deployment, signer, serial_now())
    if not dry_run:
        _send(found, deployment, signer, timeout)
    if not as_json:
        typer.echo(placed.explain())
        if not dry_run:
            typer.echo(f"{deployment.name} runs on {', '.join(found.brokers)} ({deployment.digest[:19]})")
        for choice in chosen:
            typer.echo(f"{choice.component}: {PAST[choice.how]}, because {choice.reason}")
    installed = _filled_in(found, deployment, program, chosen, signer, timeout, master, quiet=as_json)
    if not as_json:
        for one in installed:
            typer.echo(f"{one.component} on {one.broker}: has its past up to {one.as_of} after {one.seconds:.1f} s")
        return
    told = {"deployment": deployment.name, "digest": deployment.digest, "sent": not dry_run}
    past = {"backfill": [asdict(one) for one in chosen], "installed": [asdict(one) for one in installed]}
    typer.echo(json.dumps({**told, "placement": dict(placed.homes), "reasons": dict(placed.reasons), **past}, indent=2))


def _choices(
    config: Config,
    before: Deployment,
    after: Deployment,
    program: Program,
    signer: Keys | None,
    timeout: float,
    master: str | None,
) -> list[Choice]:
    """How what is new gets its past. Leaves if it cannot, before anything has changed."""
    from smile.bulk.install import not_in_bulk
    from smile.deploy.backfill import BACKFILL_EVENTS, choose, histories, new_components, streams_of
    from smile.deploy.bundles import BundleRefused, verify

    try:
        old = verify(before)
    except BundleRefused:  # of another version: everything is computed anew
        old = None
    streams = streams_of(after, program, new_components(before, old, after, program))
    if not streams:
        return []
    name, address = next(iter(config.addresses.items()))
    with _connection(name, address, signer, timeout) as connection:
        status = connection.status()
    known = histories({stream for read in streams.values() for stream in read}, status, _sources(config))
    limit = int(config.spark.get("backfill_events", BACKFILL_EVENTS))
    chosen = choose(streams, known, not_in_bulk(program, list(streams)), limit)
    for choice in chosen:
        if choice.how == "impossible":
            fail(
                f"`{choice.component}` cannot get its past: {choice.reason}\n"
                "       nothing was deployed; bring back the archive, or let the view read a new stream",
                Exit.REFUSED,
            )
    bulk = next((choice for choice in chosen if choice.how == "bulk"), None)
    if bulk is not None:
        _require_spark(bulk, master)
    return chosen


def _require_spark(choice: Choice, master: str | None) -> None:
    from smile.cli.histories import spark_settings

    settings = spark_settings(master)
    from runtime.bulk.session import NoSpark, check_spark

    try:
        check_spark(settings)
    except NoSpark as error:
        fail(
            f"`{choice.component}` gets its past from Spark, because {choice.reason}; but {error}\n"
            "       nothing was deployed",
            Exit.UNREACHABLE,
        )


def _sources(config: Config) -> Sources | None:
    from smile.bulk.sources import Sources
    from smile.cli.histories import logs_in

    archive = (config.path.parent / str(config.spark["archive"])).absolute() if "archive" in config.spark else None
    folders = tuple(folder.absolute() for broker in config.brokers.values() for folder in logs_in(broker.data))
    return Sources(archive, folders) if archive is not None or folders else None


def _filled_in(
    config: Config,
    deployment: Deployment,
    program: Program,
    chosen: list[Choice],
    signer: Keys | None,
    timeout: float,
    master: str | None,
    *,
    quiet: bool,
) -> list[Installed]:
    wanted = [choice.component for choice in chosen if choice.how == "bulk"]
    sources = _sources(config)
    if not wanted or sources is None:
        return []
    from smile.bulk.progress import watched
    from smile.bulk.switching import holding, wait_for_deployment
    from smile.cli.histories import spark_session

    what = f"the past of {', '.join(wanted)}"
    name, address = next(iter(config.addresses.items()))
    with _connection(name, address, signer, timeout) as connection, _said():
        wait_for_deployment(connection, deployment.digest, timeout)
        with holding(connection, deployment, program, wanted, timeout) as held, spark_session(master) as spark:
            return held.install(spark, sources, watch=lambda events: watched(spark, what, rows=events, quiet=quiet))


@contextmanager
def _said() -> Iterator[None]:
    from smile.cli.connecting import exit_code_of
    from smile.errors import SmileError

    try:
        yield
    except SmileError as error:
        fail(f"{error}; {TRIES_AGAIN}", exit_code_of(error))
    except typer.Exit:  # why has been said
        typer.echo(f"       {TRIES_AGAIN}", err=True)
        raise


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
    """What runs now. Leaves if a broker does not answer. If they differ, because a deployment did not reach all, it is
    what the broker has that knows most streams, since these never lose their share of the ticks; if nothing runs, what
    is stored."""
    from smile.deploy.deployment import Deployment

    found: list[tuple[bool, Deployment]] = []
    for name, address in config.addresses.items():
        with _connection(name, address, signer, timeout) as connection:
            if connection.deployment:
                is_run = "not_run" not in connection.deployment
                found.append((is_run, Deployment.from_wire(connection.deployment)))
    _, newest = max(found, key=lambda one: (one[0], len(one[1].residues)), default=(False, None))
    return newest


def _send(config: Config, deployment: Deployment, signer: Keys | None, timeout: float) -> None:
    """First all brokers are asked whether they would run it, then all are told to."""
    data = deployment.to_wire()
    for name, address in config.addresses.items():
        with _connection(name, address, signer, timeout, "nothing was changed anywhere") as connection:
            connection.check(data)
    failed: dict[str, _BrokerFailed] = {}
    for name, address in config.addresses.items():
        try:
            with _opened(name, address, signer, timeout) as connection:
                connection.deploy(data)
        except _BrokerFailed as failure:
            failed[name] = failure
    if failed:
        _tell_split(list(config.addresses), failed)


def _tell_split(brokers: list[str], failed: dict[str, _BrokerFailed]) -> NoReturn:
    """All had agreed, and then one failed: who runs what, and what to do."""
    new = [name for name in brokers if name not in failed]
    old = [name for name in failed if failed[name].is_certain]
    unknown = [name for name in failed if name not in old]
    lines = [str(failure) for failure in failed.values()]
    for said, names in (("new program", new), ("old program", old), ("old program or the new one", unknown)):
        if names:
            lines.append(f"the {said}: {', '.join(names)}")
    lines.append("run `smile deploy` again when all brokers answer; those with the new program stay as they are")
    fail("\n       ".join(lines), max(failure.code for failure in failed.values()))


class _BrokerFailed(Exception):
    """Which broker, why, and what to do. `is_certain`: it has surely not done what it was asked for."""

    def __init__(self, said: str, code: Exit, *, is_certain: bool = True) -> None:
        super().__init__(said)
        self.code = code
        self.is_certain = is_certain


@contextmanager
def _connection(
    name: str, address: str, signer: Keys | None, timeout: float, consequence: str = ""
) -> Iterator[Connection]:
    """Leaves if the broker does not answer or refuses."""
    try:
        with _opened(name, address, signer, timeout) as connection:
            yield connection
    except _BrokerFailed as failure:
        fail(f"{failure}{f'; {consequence}' if consequence else ''}", failure.code)


@contextmanager
def _opened(name: str, address: str, signer: Keys | None, timeout: float) -> Iterator[Connection]:
    """Raises _BrokerFailed."""
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
        is_certain = isinstance(error, ConnectFailed)  # otherwise it was asked, and the answer may be what is missing
        said = f"broker {name} at {address}: {error}; {remedy}"
        raise _BrokerFailed(said, Exit.UNREACHABLE, is_certain=is_certain) from error
    except RequestRefused as error:
        raise _BrokerFailed(f"broker {name} refuses: {error}", Exit.REFUSED) from error
    except SecurityError as error:
        raise _BrokerFailed(str(error), Exit.REFUSED) from error
