"""The broker process: from settings and a stored deployment to a running `runtime.broker.Broker`.

`serve` is what `smile broker` calls. It binds the sockets once and then runs one deployment after the other: a new one
is checked, stored, and started in the same process, in which everything unchanged goes on from its checkpoint. A broker
that has no deployment yet waits for one. Nothing that comes over a wire is run: programs are compiled here.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import zmq

from runtime.broker.archived import ArchiveWatch
from runtime.broker.broker import Broker
from runtime.broker.checkpointing import Checkpointing
from runtime.broker.endpoints import Endpoints
from runtime.broker.faults import Faults
from runtime.broker.log_access import no_limit
from runtime.broker.log_lines import log_to_stderr
from runtime.broker.publishing import Columns, Gate
from runtime.broker.requests import Hosting
from runtime.broker.timers import Clock
from runtime.broker.tuning import BROKER, LOCAL, TEXT_ROWS_MAX
from runtime.checkpoints.store import CheckpointStore
from runtime.log.sqlite import LogDirectory, SqliteLog
from runtime.log.stream_log import LogError
from runtime.plan import Component, Plan, ValueType
from runtime.security.allow_list import WatchedAllowList
from runtime.security.endpoints import check_binding, split_address
from runtime.security.errors import SecurityError
from runtime.security.keys import Keys, read_keys
from runtime.security.policy import Action, Policy
from runtime.security.refusals import Refusals
from runtime.security.signatures import check_serial, serial_of
from runtime.security.zap import Authenticator
from smile.deploy.bundles import BundleRefused, check_signature, components_of, table_rows_of, verify
from smile.deploy.config import BrokerSettings, is_address
from smile.deploy.deployment import TABLES_FOLDER, Deployment, DeploymentError, table_log
from smile.deploy.tuning import checkpoint_every_us, tuned
from smile.digests import component_digests
from smile.errors import SmileError
from smile.gate import StreamGate
from smile.program import Program
from smile.streams import StreamInput

log = logging.getLogger("smile.broker")

SERVING_FILE = "serving.json"
CHECKPOINTS_FOLDER = "checkpoints"
LOGS_FOLDER = "log"

BIND_S_MAX = 5.0
"""An address may still be held by what a killed broker left behind; so long it is tried again."""

GATEWAY_SWITCH_S = 0.000_5
"""With a gateway in the same process, its thread gives way to the loop after this: the usual 5 ms would show."""

FILES_MAX = 65_536
EXIT_CANNOT_START = 2


class CannotStart(Exception):
    """Why a broker cannot serve, and what to do about it, on one line."""


def serve(settings: BrokerSettings) -> int:
    """Run a broker until it is told to stop; the exit code of the process."""
    log_to_stderr(settings.name, settings.log_format)
    _allow_many_connections()
    try:
        with BrokerProcess(settings) as process:
            process.run()
    except (CannotStart, SecurityError, LogError, DeploymentError, BundleRefused, SmileError) as error:
        print(f"smile broker {settings.name}: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    return 0


class BrokerProcess:
    """What lasts from deployment to deployment: sockets, data folder, keys."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings
        self._clock = Clock.system()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._keys: Keys | None = None
        self._policy = Policy.local()
        self._authenticator: Authenticator | None = None
        self._endpoints: Endpoints | None = None
        self._directory: LogDirectory | None = None
        self._archive: ArchiveWatch | None = None
        self._gateway: Any = None
        self._broker: Broker | None = None
        self._is_told_to_stop = False
        self._stored: Deployment | None = None
        self._program: Program | None = None  # of a deployment that was just accepted
        self._is_running = False  # does the stored one run?
        self._checked: tuple[str, Program | None] = ("", None)  # digest and program of one that somebody asked about

    def __enter__(self) -> BrokerProcess:
        settings = self.settings
        try:
            check_binding(
                [settings.address, *([settings.data_listen] if settings.data_listen else [])],
                has_keys=settings.security is not None,
                has_allow_list=settings.security is not None,
            )
            if settings.security is not None:
                self._keys = read_keys(settings.security.secret)
                watched, refusals = WatchedAllowList(settings.security.allowed), Refusals()
                self._policy = Policy.listed(watched, refusals)
                self._authenticator = Authenticator(self._context, watched, refusals)
            self._directory = LogDirectory(settings.data / LOGS_FOLDER, sync=settings.sync)
            (settings.data / SERVING_FILE).unlink(missing_ok=True)  # it was nobody's, since the folder is ours
            if settings.keep == "archive":
                self._archive = self._watched_archive()
            self._stored = Deployment.read(settings.data)
            self._endpoints = self._bound()
        except OSError as error:
            self.close()
            raise CannotStart(f"{error.filename or settings.data}: {error.strerror or error}") from error
        except BaseException:
            self.close()
            raise
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_told_to_stop = True
        if self._broker is not None:
            self._broker.stop()

    def _watched_archive(self) -> ArchiveWatch:
        archive = self.settings.archive
        if archive is None:
            raise CannotStart("logs are kept until they are archived, but no archive is named; name it with --archive")
        return ArchiveWatch(archive, self.settings.data / LOGS_FOLDER).start()

    def _log_status(self) -> dict[str, int]:
        assert self._directory is not None
        return {**self._directory.status(), **({} if self._archive is None else self._archive.status())}

    def _bound(self) -> Endpoints:
        settings = self.settings
        endpoint, _ = split_address(settings.address)
        data_endpoint = settings.data_listen or f"{endpoint.rpartition(':')[0]}:*"
        if endpoint.startswith("ipc://"):
            data_endpoint = settings.data_listen or f"{endpoint}.data"
        limit = time.monotonic() + BIND_S_MAX
        while True:
            try:
                return Endpoints(self._context, endpoint, data_endpoint, self._keys)
            except zmq.ZMQError as error:
                if error.errno != zmq.EADDRINUSE or time.monotonic() > limit:
                    raise CannotStart(
                        f"cannot listen at {endpoint}: {error}; is another broker running there?"
                    ) from error
                time.sleep(0.1)

    # Running

    def run(self) -> None:
        """One deployment after the other, until told to stop."""
        assert self._endpoints is not None
        while True:
            broker = self._made()
            self._broker = broker
            try:
                if not self._is_told_to_stop:
                    broker.run(self._serving)
            finally:
                broker.close()
            if self._is_told_to_stop or not broker.is_redeployed:
                return

    def _made(self) -> Broker:
        assert self._endpoints is not None
        assert self._directory is not None
        settings, directory = self.settings, self._directory
        hosting, checkpoints = Hosting(), None
        logs: dict[str, SqliteLog] = {}
        gates: dict[str, Gate] = {}
        fills: dict[str, Columns] = {}
        program, self._program = self._program, None
        if self._stored is not None and program is None:
            program, why_none = self._verified(self._stored)
            tables = self._stored.table_files()
            hosting = Hosting(self._stored.to_wire(), table_files=tables, why_none=why_none)
        self._is_running = program is not None
        if self._stored is not None and program is not None:
            hosting = _hosting(self._stored, program, settings.name)
            logs, gates, fills = self._inputs(self._stored, program)
            store = CheckpointStore(settings.data / CHECKPOINTS_FOLDER)
            here = hosting.here(settings.name)
            store.clean({name: (hosting.digests or {})[name] for name in here})
            every_us = checkpoint_every_us(program, here, settings.checkpoint_every_us)
            checkpoints = Checkpointing(store, every_us, self._clock.steady_us)
        broker = Broker(
            settings.name,
            self._endpoints,
            hosting,
            incarnation=directory.next_epoch(self._clock.wall_us()),
            next_epoch=lambda: directory.next_epoch(self._clock.wall_us()),
            group=directory.group,
            logs={**logs},
            gates=gates,
            checkpoints=checkpoints,
            keep_logs=settings.keep == "all",
            trim_limit=no_limit if self._archive is None else self._archive.held,
            policy=self._policy,
            authenticator=self._authenticator,
            keys=self._keys,
            faults=Faults() if settings.allow_faults else None,
            deploy=self._deploy,
            idle=directory.idle,
            log_status=self._log_status,
            data_announced=settings.data_announced,
            clock=self._clock,
        )
        for table, columns in fills.items():
            broker.fill(table, columns)
        return broker

    def _verified(self, deployment: Deployment) -> tuple[Program | None, str]:
        """Of the stored deployment. None, and why, for one whose signer is no longer listed, that somebody has changed,
        or that this version would not make: then this broker waits for another, and says so."""
        why_none = "the deployment here is no longer allowed ({}): deploy again with a key that is on the list"
        try:
            self._check_signature(deployment)
            why_none = "the deployment here is of another version of smile ({}): deploy again"
            return verify(deployment), ""
        except BundleRefused as error:
            log.error("the stored deployment is not run: %s", error)
            return None, why_none.format(error.reason)

    def _inputs(
        self, deployment: Deployment, program: Program
    ) -> tuple[dict[str, SqliteLog], dict[str, Gate], dict[str, Columns]]:
        """Logs and rules of the streams that live here, and the rows of tables."""
        assert self._directory is not None
        logs: dict[str, SqliteLog] = {}
        gates: dict[str, Gate] = {}
        fills = self._fills(deployment, program)
        for name, log_name, given in self._logged_here(deployment, program):
            logs[name] = self._directory.stream(log_name, given.schema, given.rules, BROKER.producer_window)
            if name not in fills:
                gates[name] = StreamGate(given)
        return logs, gates, fills

    def _check_inputs(self, deployment: Deployment, program: Program) -> None:
        """Refuses what `_inputs` could not take, such as a stream whose log here has other columns; changes nothing."""
        assert self._directory is not None
        self._fills(deployment, program)
        self._directory.check_room([log_name for _, log_name, _ in self._logged_here(deployment, program)])
        for _, log_name, given in self._logged_here(deployment, program):
            self._directory.check_stream(log_name, given.schema, given.rules)

    def _logged_here(self, deployment: Deployment, program: Program) -> Iterator[tuple[str, str, StreamInput]]:
        """Streams and tables that live here: name, name of the log, and what they take."""
        declared, plan = program.checked.program, program.plan
        here = set(deployment.components_on(self.settings.name))
        for name, stream in declared.streams.items():
            if name in here:
                yield name, name, StreamInput(stream, plan.streams[name])
        digests = component_digests(deployment, program)
        for name, table in declared.tables.items():
            if name in here:
                yield name, table_log(name, digests[name]), StreamInput(table, plan.tables[name])

    def _fills(self, deployment: Deployment, program: Program) -> dict[str, Columns]:
        """The rows of the tables that live here."""
        here, declared = deployment.components_on(self.settings.name), program.checked.program.tables
        tables = [name for name in here if name in declared]
        rows = table_rows_of(deployment, program) if tables else {}
        return {
            name: StreamInput(declared[name], program.plan.tables[name]).encode_many(rows[name])[0] for name in tables
        }

    def _serving(self) -> None:
        """Everything is bound and started: say so, to whoever waits for the file, and open the gateway."""
        assert self._endpoints is not None
        if self.settings.http is not None and self._gateway is None:
            self._gateway = self._opened_gateway(self.settings.http)
        said = {
            "pid": os.getpid(),
            "broker": self.settings.name,
            "address": self._endpoints.address,
            "data_address": self.settings.data_announced or self._endpoints.data_address,
            "http": None if self._gateway is None else self._gateway.url,
        }
        _write_whole(self.settings.data / SERVING_FILE, json.dumps(said))
        log.info("serves at %s", self._endpoints.address)

    def _opened_gateway(self, http: str) -> Any:
        from runtime.security.endpoints import join_address
        from smile.gateway.server import start_gateway  # only brokers with a gateway load it

        assert self._endpoints is not None
        sys.setswitchinterval(GATEWAY_SWITCH_S)
        host, _, port = http.rpartition(":")
        address = join_address(self._endpoints.address, None if self._keys is None else self._keys.public)
        security = self.settings.security
        return start_gateway(
            address,
            host.strip("[]"),
            int(port),
            keys=None if security is None else security.secret,
            tokens=getattr(self.settings, "http_tokens", None),
        )

    # Deploying

    def _deploy(self, data: Mapping[str, Any], sender: str, only_check: bool) -> tuple[str, str] | bool:
        """Check a deployment that somebody sent, and store it unless that was all. Raises nothing: a code and a reason
        if it is refused, False if it is what runs already, or was only to be checked."""
        try:
            deployment = Deployment.from_wire(data)
            if deployment.withheld:
                raise DeploymentError("the deployment lacks rows of tables; deploy with `smile deploy`")
            refusal = self._may_deploy(deployment, sender)
            if refusal is not None:
                return refusal
            stored = self._stored
            if stored is not None and stored.digest == deployment.digest and self._is_running:
                if not only_check:
                    self._sign_anew(stored, deployment)
                return False
            program = self._verified_before(deployment)
            self._check_change(deployment)
            self._check_inputs(deployment, program)
            if only_check:
                self._checked = (deployment.digest, program)
                return False
            deployment.write(self.settings.data)
        except (DeploymentError, BundleRefused, SecurityError, SmileError, LogError) as error:
            log.warning("deployment refused: %s", error)
            return "bad-deployment", str(error)
        self._stored, self._program = deployment, program
        log.info("deployment %s accepted", deployment.digest[:19])
        return True

    def _sign_anew(self, stored: Deployment, deployment: Deployment) -> None:
        """The same, signed by somebody else or later: at the next start it is this signature that counts."""
        if self._policy.watched is not None and stored.signature != deployment.signature:
            deployment.write(self.settings.data)
            self._stored = deployment
            log.info("deployment %s is now signed by %s", deployment.digest[:19], deployment.signer)

    def _verified_before(self, deployment: Deployment) -> Program:
        """A deployer asks first and sends then: what has just been compiled and compared need not be again."""
        (digest, program), self._checked = self._checked, ("", None)
        return program if program is not None and digest == deployment.digest else verify(deployment)

    def _may_deploy(self, deployment: Deployment, sender: str) -> tuple[str, str] | None:
        if self._policy.watched is None:
            return None
        serial = self._check_signature(deployment)
        declared = [*deployment.residues, *deployment.placement]
        refusal = self._policy.may(deployment.signer, Action.DEPLOY, deployment.name, declared)
        if refusal is None and sender != deployment.signer:
            refusal = self._policy.may(sender, Action.PEER)
        if refusal is not None:
            return refusal.code, refusal.reason
        if self._stored is not None:
            check_serial(serial, deployment.digest, serial_of(self._stored.signature), self._stored.digest)
        return None

    def _check_signature(self, deployment: Deployment) -> int:
        """Of a stored one too: a data folder that somebody changed is not run."""
        if self._policy.watched is None:
            return 0
        entries = self._policy.watched.current.by_name
        return check_signature(deployment, {name: entry.key for name, entry in entries.items()})

    def _check_change(self, deployment: Deployment) -> None:
        """What must not change from one deployment to the next."""
        before, name = self._stored, self.settings.name
        if name not in deployment.brokers:
            raise DeploymentError(f"broker `{name}` is not among those of the deployment; deploy to its own brokers")
        for broker, address in deployment.brokers.items():  # one that nobody can connect to would end us at every start
            if not is_address(address):
                raise DeploymentError(f"{address!r} of broker `{broker}` is no address")
            split_address(address)
        if before is None:
            return
        if before.identity != deployment.identity:
            raise DeploymentError("this broker has data of another deployment; give it an empty data folder")
        for stream, share in before.residues.items():
            if deployment.residues.get(stream, share) != share:
                raise DeploymentError(f"stream `{stream}` would change its share of the ticks; deploy again")
            home, wanted = before.placement.get(stream), deployment.placement.get(stream)
            is_table = f"{TABLES_FOLDER}{stream}.csv" in deployment.files
            if home is not None and wanted not in (None, home) and not is_table:
                raise DeploymentError(
                    f"stream `{stream}` has its log on broker `{home}`; pin it there, or start with new data"
                )

    def close(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
        if self._endpoints is not None:
            self._endpoints.close()
        if self._authenticator is not None:
            self._authenticator.close()
        if self._archive is not None:
            self._archive.close()
        if self._directory is not None:
            self._directory.close()
            (self.settings.data / SERVING_FILE).unlink(missing_ok=True)
        self._context.term()


def _sized(component: Component, homes: Mapping[str, str], here: str) -> Component:
    """What comes from other processes is checked, value by value. Rows with texts travel in smaller messages."""
    is_local = bool(component.in_edges) and all(homes[edge.sender] == here for edge in component.in_edges)
    tuning = LOCAL if is_local else BROKER
    if any(column.type is ValueType.TEXT for column in component.relation.columns):
        tuning = replace(tuning, message_rows_max=TEXT_ROWS_MAX)
    return replace(component, tuning=tuning)


def _hosting(deployment: Deployment, program: Program, broker: str) -> Hosting:
    """What the deployment makes of this broker."""
    components = components_of(deployment, program)
    plan = program.plan
    shown: dict[str, tuple[str, ...]] = {}
    for name, view in {**plan.streams, **plan.tables, **plan.views}.items():
        shown[view.component] = (*shown.get(view.component, ()), name)
    origins = {name: part.module.origin for name, part in plan.parts.items()}
    return Hosting(
        deployment.to_wire(),
        deployment.digest,
        Plan(tuple(tuned(program, _sized(one, deployment.placement, broker)) for one in components.values()), origins),
        dict(deployment.placement),
        dict(deployment.brokers),
        component_digests(deployment, program),
        shown,
        frozenset(plan.tables),
        deployment.table_files(),
    )


def _allow_many_connections() -> None:
    """Each peer is two open files; what a shell allows by default is soon used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(FILES_MAX, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _write_whole(path: Path, text: str) -> None:
    """Nobody reads half of it."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.write_text(text, encoding="utf-8")
    made.replace(path)
