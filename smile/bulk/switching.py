"""States computed by Spark, brought into brokers that go on serving meanwhile (rule C6 of docs/protocol.md).

First the brokers are asked to hold, so that nothing leaves the logs which a state as of a later tick would need; then
Spark computes as of a tick up to which everything is logged; then the states are sent, catch up beside what runs, and
take its place. `smile recompute --install` and the back-fill of `smile deploy` call this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from runtime.client.connection import Connection
from runtime.client.errors import ConnectionClosed, RequestRefused
from runtime.client.installing import LOOK_AGAIN_S, Installer, InstallFailed
from runtime.plan import Plan
from runtime.protocol.coverage import Coverage
from smile.bulk.as_of import LOSS_ACCEPTED, require_events, said
from smile.bulk.install import Bases, make_checkpoints, not_in_bulk
from smile.bulk.replay import replayed_checkpoints
from smile.bulk.sources import Sources
from smile.deploy.bundles import components_of
from smile.deploy.deployment import Deployment, table_log
from smile.digests import component_digests
from smile.errors import NotAllowed, SmileError, TimedOut
from smile.program import Program

Watch = Callable[[int], AbstractContextManager[object]]
"""Entered while states are computed: from how many events."""

CATCH_UP_S = 600.0
"""So long a state may take to catch up and to be written; the broker goes on with it even if nobody waits any more."""


@dataclass(frozen=True)
class Installed:
    """`seconds`: from the hold to the switch."""

    component: str
    broker: str
    as_of: int
    bytes: int
    seconds: float


class Holding:
    """Components of a deployment that are about to get another state. Made by `holding`."""

    def __init__(
        self, connection: Connection, deployment: Deployment, program: Program, components: Collection[str]
    ) -> None:
        digests = component_digests(deployment, program)
        self._connection = connection
        self._deployment = deployment
        self._program = program
        self._digests = digests
        self.installers = [Installer(connection, name, digests[name]) for name in components]
        lineages = Plan(tuple(components_of(deployment, program).values())).lineages
        self.bases = sorted({base for name in components for base in lineages[name]})

    def known_up_to(self) -> int:
        """Everything up to this tick is logged, of all streams and tables that these components come from."""
        standing = self._connection.coverages(self.bases)
        silent = [name for name in self.bases if name not in standing.coverages]
        if silent:
            raise TimedOut(f"the brokers of {', '.join(silent)} do not answer: nobody knows what they have logged")
        return min(standing.coverages[name].horizon() for name in self.bases)

    def install(
        self, spark: Any, sources: Sources, as_of: int | None = None, *, watch: Watch = lambda _events: nullcontext()
    ) -> list[Installed]:
        """Compute, send, and wait until all of them serve and are on disk. SmileError says which does not, and why."""
        known = self.known_up_to()
        if as_of is None:
            as_of = known
        if as_of > known:  # what comes up to then would be in no state
            raise SmileError(
                f"the streams are known up to {said(known)} only, not to {said(as_of)};"
                " ask as of a tick that has passed"
            )
        tables = {
            name: table_log(name, self._digests[name])
            for name in self._program.checked.program.tables
            if name in self.bases
        }
        logs = [tables.get(name, name) for name in self.bases]
        wanted = {name: Coverage.prefix(as_of) for name in logs}
        events = require_events(sources, wanted, loss_remedy=LOSS_ACCEPTED)
        names = [installer.component for installer in self.installers]
        by_replay = not_in_bulk(self._program, names)
        by_spark = [name for name in names if name not in by_replay]
        with watch(events):
            made = make_checkpoints(spark, self._program, by_spark, sources, as_of, tables)
            if by_replay:
                bases = Bases(spark, self._program, sources, as_of, tables)
                made |= replayed_checkpoints(self._program, list(by_replay), as_of, bases.batches)
        for installer in self.installers:
            installer.send(made.pop(installer.component))
        return [self._installed(installer, as_of) for installer in self.installers]

    def _installed(self, installer: Installer, as_of: int) -> Installed:
        told = installer.wait(CATCH_UP_S)
        return Installed(installer.component, installer.broker, as_of, told["bytes"], told["took_us"] / 1e6)


def wait_for_deployment(connection: Connection, digest: str, timeout_s: float) -> None:
    """Until all brokers run it: they start with it after they have said yes. Raises TimedOut."""
    limit = monotonic() + timeout_s
    while waiting := [name for name, body in connection.status().items() if body.get("deployment") != digest]:
        if monotonic() > limit:
            raise TimedOut(f"after {timeout_s:g} s {', '.join(waiting)} did not run the deployment yet")
        sleep(LOOK_AGAIN_S)


@contextmanager
def holding(
    connection: Connection,
    deployment: Deployment,
    program: Program,
    components: Collection[str],
    timeout_s: float,
) -> Iterator[Holding]:
    """Logs are held while the block lasts. What fails in it leaves the brokers as they were."""
    made = Holding(connection, deployment, program, components)
    try:
        for installer in made.installers:
            installer.hold(timeout_s)
        yield made
    except RequestRefused as refused:
        if refused.code in ("deploy", "not-listed"):
            raise NotAllowed(refused.reason) from refused
        raise SmileError(refused.reason) from refused
    except InstallFailed as failed:
        raise SmileError(str(failed)) from failed
    except TimeoutError as late:
        raise late if isinstance(late, SmileError) else TimedOut(str(late)) from late
    finally:
        for installer in made.installers:  # of what has been sent completely, nothing is taken back
            with suppress(RequestRefused, TimeoutError, ConnectionClosed):
                installer.release()
