"""Brokers on this machine, one process each, looked after: what `smile run`, the demo and tests start.

    with LocalBrokers("tickets.mpl", 3) as brokers:
        system = smile.connect(brokers.address)
        brokers.kill("hub")          # -9; it is started again

The deployment is made here and put into every broker's data folder before it starts, so nothing has to be sent. One
thread starts all processes and starts again those that die, waiting longer after each early death. It is the one thread
because the kernel ends the nursery, and with it all brokers, when the thread that started it ends: no broker outlives
its run, whatever happens.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from smile.deploy.bundles import compile_file, make_deployment
from smile.deploy.config import Keep, Sync
from smile.deploy.deployment import Deployment
from smile.deploy.local_broker import SERVING_FILE, LocalBroker
from smile.deploy.nursery import Nursery, NurseryError
from smile.deploy.placement import Placed, place
from smile.deploy.run_record import RunRecord, State, lock_run
from smile.program import Program

log = logging.getLogger("smile")

START_TIMEOUT_S = 60.0
"""A loaded machine may take long to import everything; a broker that cannot start says so much earlier."""

STOP_TIMEOUT_S = 5.0
EARLY_DEATHS_MAX = 20
"""So many deaths in a row before it served, and a broker is given up; unless the disk is full, which will pass."""

FULL_DISK_BYTES = 16 * 1024 * 1024
"""With less than this a broker may not even start."""

RECORD_AGAIN_S = 1.0
"""A record that could not be written is tried again after this."""

LOOK_EVERY_S = 0.02
LOG_TAIL_BYTES = 4_000
PORTS_FROM = 10_240
PORT_MAX = 65_535


class LocalRunError(Exception):
    """The run cannot start or go on: which broker, why, and what to do."""


class LocalBrokers:
    """`brokers`: how many, or their names; left out, as many as the program declares (at least one).

    `data` keeps logs from run to run; left out, a temporary folder is used and removed. `restart`: a broker that dies
    is started again by itself; otherwise only by `restart(name)`. `changed` is called, from the supervising thread,
    when the state of a broker has changed.

    `keep` and `archive` say how long logs are kept (smile/deploy/config.py).

    `listen` fixes where brokers listen, `announced` what others are told instead (a proxy in front of it), `extra` adds
    arguments to the command of one broker; each by broker. `script` is run by each process instead of a broker.
    """

    def __init__(
        self,
        program: str | os.PathLike[str] | Program,
        brokers: int | Sequence[str] | None = None,
        data: str | os.PathLike[str] | None = None,
        *,
        restart: bool = True,
        http: bool = False,
        first_port: int | None = None,
        sync: Sync = "always",
        keep: Keep = "all",
        archive: Path | None = None,
        checkpoint_every: str | None = None,
        changed: Callable[[str, State], object] | None = None,
        announced: Mapping[str, str] | None = None,
        listen: Mapping[str, str] | None = None,
        extra: Mapping[str, Sequence[str]] | None = None,
        script: str | None = None,
    ) -> None:
        self.program = program if isinstance(program, Program) else compile_file(Path(program))
        names = _names(self.program, brokers)
        self.is_temporary = data is None
        self.data = Path(tempfile.mkdtemp(prefix="smile-")) if data is None else Path(data).absolute()
        self._restart = restart
        self._options = ["--sync", sync, "--keep", keep]
        if archive is not None:
            self._options += ["--archive", str(archive.absolute())]
        if checkpoint_every is not None:
            self._options += ["--checkpoint-every", checkpoint_every]
        self._changed = changed
        self._script = script
        self._nursery: Nursery | None = None
        self._failure: str | None = None
        self._record_at: float | None = None  # when to write the record again, if it could not be written
        self._told: dict[str, State] = {}
        self._cleanup = ExitStack()
        self._wake = threading.Condition()
        self._is_closing = False
        self._is_deployed = False
        self._supervisor: threading.Thread | None = None
        self._announced = dict(announced or {})
        self._extra = dict(extra or {})
        ports = iter(free_ports(2 * len(names), first_port))
        self._brokers: dict[str, LocalBroker] = {}
        for name in names:
            address = (listen or {}).get(name) or f"tcp://127.0.0.1:{next(ports)}"
            self._brokers[name] = LocalBroker(name, address, self.data / name, self.data / f"{name}.log")
        if http:
            for broker in self._brokers.values():
                broker.http = f"127.0.0.1:{next(ports)}"
        self.placed: Placed
        self.deployment: Deployment

    # What it is

    @property
    def names(self) -> list[str]:
        return list(self._brokers)

    @property
    def addresses(self) -> dict[str, str]:
        """What others are told, by broker."""
        return {name: self._announced.get(name, broker.address) for name, broker in self._brokers.items()}

    @property
    def address(self) -> str:
        """Of the first broker. Any of them knows all."""
        return next(iter(self.addresses.values()))

    @property
    def record(self) -> RunRecord:
        with self._wake:
            brokers = {name: broker.record() for name, broker in self._brokers.items()}
        return RunRecord(self.data, os.getpid(), self.program.checked.source.name, brokers)

    def state(self, name: str) -> State:
        with self._wake:
            return self._brokers[name].state()

    def pid(self, name: str) -> int | None:
        with self._wake:
            process = self._brokers[name].process
            return None if process is None else process.pid

    def starts(self, name: str) -> int:
        """How often it was started."""
        with self._wake:
            return self._brokers[name].starts

    @property
    def failure(self) -> str | None:
        """Why nobody looks after the brokers any more, and all have been stopped; None while somebody does."""
        return self._failure

    def log_of(self, name: str) -> str:
        """The end of what a broker printed."""
        return _tail(self._brokers[name].log)

    # Its life

    def start(self, ended: threading.Event | None = None) -> LocalBrokers:
        """Make the deployment, start all, return when all serve. Raises LocalRunError, and then none runs: also when
        somebody sets `ended` meanwhile, since starting may take long."""
        try:
            self.data.mkdir(parents=True, exist_ok=True)
            if not self._cleanup.enter_context(lock_run(self.data)):
                raise LocalRunError(f"{self.data} is in use by another run; stop that one or choose another --data")
            self._supervisor = threading.Thread(target=self._supervise, name="smile-supervisor", daemon=True)
            self._supervisor.start()
            self._deploy()
            with self._wake:
                self._is_deployed = True
                self._wake.notify_all()
            for name in self._brokers:
                self.wait_serving(name, ended=ended)
        except BaseException:
            self.close()
            raise
        return self

    def _deploy(self) -> None:
        previous = next((found for b in self._brokers.values() if (found := Deployment.read(b.folder))), None)
        self.placed = place(
            self.program.checked.program, self.program.plan, self.names, previous=previous, ignore_absent=True
        )
        self.deployment = make_deployment(self.program, self.addresses, self.placed.homes, previous=previous)
        for broker in self._brokers.values():
            self.deployment.write(broker.folder)

    def wait_serving(
        self, name: str, timeout: float = START_TIMEOUT_S, *, ended: threading.Event | None = None
    ) -> None:
        """Returns when the broker serves. Raises LocalRunError if it does not, with what it printed last."""
        end = time.monotonic() + timeout
        broker = self._brokers[name]
        with self._wake:
            while broker.state() != "serving":
                if self._failure is not None:
                    raise LocalRunError(self._failure)
                if self._is_closing or (ended is not None and ended.is_set()):
                    raise LocalRunError(f"broker {name} was stopped before it served")
                first_death = broker.early_deaths > 0 and broker.starts == broker.early_deaths
                if broker.state() == "failed" or (first_death and not broker.has_served):
                    raise LocalRunError(self._obituary(broker))
                if not self._wake.wait(max(0.0, min(1.0, end - time.monotonic()))) and time.monotonic() >= end:
                    raise LocalRunError(f"broker {name} does not serve after {timeout:.0f} s: {self.log_of(name)}")

    def _obituary(self, broker: LocalBroker) -> str:
        said = self.log_of(broker.name).strip() or "it said nothing"
        return f"broker {broker.name} ended with code {broker.last_code} before it served: {said}"

    def close(self) -> None:
        """Stop all in order, then by force; remove the temporary folder."""
        with self._wake:
            self._is_closing = True
            self._wake.notify_all()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
            if not self.is_temporary:
                self._write_record()
        self._cleanup.close()
        if self.is_temporary:
            shutil.rmtree(self.data, ignore_errors=True)

    def __enter__(self) -> LocalBrokers:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Faults

    def kill(self, name: str) -> None:
        """With -9, as a power switch would. It is started again unless the run was made with restart=False."""
        self._signal(name, signal.SIGKILL)

    def pause(self, name: str) -> None:
        """Freeze it: it stays connected and answers nothing."""
        self._signal(name, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)

    def stop(self, name: str) -> None:
        """An orderly end, by force if it takes long; it stays down until `restart`."""
        with self._wake:
            broker = self._brokers[name]
            broker.is_wanted = False
            self._signal(name, signal.SIGTERM)
            if not self._wake.wait_for(lambda: broker.process is None, STOP_TIMEOUT_S):
                self._signal(name, signal.SIGKILL)
                self._wake.wait_for(lambda: broker.process is None)

    def restart(self, name: str, timeout: float = START_TIMEOUT_S) -> None:
        """Kill it if it runs, start it at once, return when it serves."""
        with self._wake:
            broker = self._brokers[name]
            starts = broker.starts
            broker.is_wanted = broker.is_urgent = True
            broker.is_given_up, broker.early_deaths = False, 0
            self._signal(name, signal.SIGKILL)
            is_started = self._wake.wait_for(
                lambda: broker.starts > starts or self._is_closing or self._failure is not None, timeout
            )
        if not is_started:
            raise LocalRunError(f"broker `{name}` could not be started within {timeout:g} s; it is tried on")
        self.wait_serving(name, timeout)

    def _signal(self, name: str, number: signal.Signals) -> None:
        with self._wake:
            process = self._brokers[name].process
            if process is not None:
                process.send_signal(number)

    # The supervising thread

    def _supervise(self) -> None:
        try:
            # It loads while the deployment is being made.
            self._nursery = Nursery(self.data / "nursery.log", self._script)
            self._nursery.wait_ready()
            with self._wake:
                self._wake.wait_for(lambda: self._is_deployed or self._is_closing)
            self._look_until_closed()
        except (NurseryError, OSError) as error:
            self._fail(str(error))
        except Exception as error:
            log.exception("the supervisor of the brokers has failed")
            self._fail(f"the supervisor of the brokers has failed: {error!r}")
        finally:
            self._stop_all()

    def _fail(self, reason: str) -> None:
        with self._wake:
            self._failure = reason
            self._wake.notify_all()

    def _write_record(self) -> None:
        """It is for others to read: brokers do not depend on it, and a disk may be full for a while."""
        try:
            self.record.write()
            self._record_at = None
        except OSError as error:
            if self._record_at is None:
                log.warning("cannot write the record of the run in %s: %s", self.data, error.strerror or error)
            self._record_at = time.monotonic() + RECORD_AGAIN_S

    def _look_until_closed(self) -> None:
        while True:
            with self._wake:
                if self._is_closing:
                    return
                for broker in self._brokers.values():
                    self._look_at(broker)
                told = {name: broker.state() for name, broker in self._brokers.items()}
                changes = {name: state for name, state in told.items() if self._told.get(name) != state}
                if changes:
                    self._told = told
                    self._wake.notify_all()
                if changes or (self._record_at is not None and time.monotonic() >= self._record_at):
                    self._write_record()
            for name, state in changes.items():
                if self._changed is not None:
                    self._changed(name, state)
            with self._wake:
                if not self._is_closing:
                    self._wake.wait(LOOK_EVERY_S)

    def _look_at(self, broker: LocalBroker) -> None:
        process = broker.process
        if process is None:
            if broker.is_wanted and (broker.is_urgent or time.monotonic() >= broker.start_at):
                self._try_to_spawn(broker)
        elif process.poll() is not None:
            broker.process, broker.last_code = None, process.returncode
            if not broker.has_served and process.returncode != -signal.SIGKILL:  # which would not be its own fault
                broker.early_deaths += 1
            broker.put_off()
            broker.is_given_up = broker.early_deaths >= EARLY_DEATHS_MAX and not _is_full(self.data)
            if broker.is_given_up or not (self._restart or broker.is_urgent):
                broker.is_wanted = False
        elif not broker.has_served and broker.serves():
            broker.has_served, broker.early_deaths = True, 0

    def _try_to_spawn(self, broker: LocalBroker) -> None:
        """What has started once is tried again later: the others go on meanwhile."""
        try:
            self._spawn(broker)
        except (NurseryError, OSError) as error:
            if not broker.starts:
                raise
            log.warning("cannot start broker %s: %s; tried again", broker.name, error)
            broker.is_urgent = False
            broker.put_off()

    def _spawn(self, broker: LocalBroker) -> None:
        arguments = [broker.name, "--listen", broker.address, "--data", str(broker.folder), "--allow-faults"]
        arguments += self._options
        if broker.http is not None:
            arguments += ["--http", broker.http]
        arguments += self._extra.get(broker.name, ())
        (broker.folder / SERVING_FILE).unlink(missing_ok=True)
        if self._nursery is not None and not self._nursery.is_alive:
            self._nursery.close()
            self._nursery = None
        if self._nursery is None:
            self._nursery = Nursery(self.data / "nursery.log", self._script)
            self._nursery.wait_ready()
        broker.process = self._nursery.start(broker.name, arguments, broker.log)
        broker.starts += 1
        broker.has_served = broker.is_urgent = False

    def _stop_all(self) -> None:
        processes = [broker.process for broker in self._brokers.values() if broker.process is not None]
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + STOP_TIMEOUT_S
        for process in processes:
            if not process.wait(max(0.0, end - time.monotonic())):
                process.send_signal(signal.SIGKILL)
                process.wait(STOP_TIMEOUT_S)
        if self._nursery is not None:
            self._nursery.close()
        with self._wake:
            for broker in self._brokers.values():
                broker.process, broker.is_wanted = None, False
            self._wake.notify_all()


def _names(program: Program, brokers: int | Sequence[str] | None) -> list[str]:
    """The program's own names first: so `publish S at west` means something in a local run."""
    declared = list(program.checked.program.brokers)
    if brokers is None:
        return declared or ["b1"]
    if not isinstance(brokers, int):
        return list(brokers)
    return (declared + [f"b{number}" for number in range(len(declared) + 1, brokers + 1)])[:brokers]


def free_ports(count: int, first: int | None = None) -> list[int]:
    """Ports of this machine on which nobody listens now; from `first` upwards if those are free.

    Below those that the kernel gives to outgoing connections: a client that tries to reach a broker that is down could
    otherwise be given the broker's own port, and keep it from coming back.
    """
    if first is not None:
        wanted = list(range(first, first + count))
        if first + count - 1 <= PORT_MAX and all(_is_free(port) for port in wanted):
            return wanted
    try:
        end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        end = 32_768
    candidates = random.SystemRandom().sample(range(PORTS_FROM, max(end, PORTS_FROM + 1_000)), 1_000)
    found = [port for port in candidates if _is_free(port)][:count]
    if len(found) < count:
        raise LocalRunError(f"this machine has no {count} free ports; stop what is not needed")
    return found


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < FULL_DISK_BYTES
    except OSError:
        return False


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
