"""Bulk installs into real brokers: subscribers that see every change, brokers that are killed at every stage."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import smile
from bench._bulk_state import bulk_of
from runtime.checkpoints import codec
from runtime.client.errors import RequestRefused
from runtime.client.installing import Installer, InstallFailed
from runtime.protocol.checkpoint import Checkpoint
from runtime.wire import control
from smile.digests import component_digests
from smile.remote.system import RemoteSystem
from tests.broker.processes import Brokers, Zygote, running, wait_for

PROGRAM = """
stream Buys (item int, qty int[0..1000]);
view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;
"""
PLACES = {"one broker": {"Buys": "a", "Sold": "a"}, "two brokers": {"Buys": "a", "Sold": "b"}}
ITEMS = 20
PATIENCE_S = 60.0


@contextmanager
def publishing(system: RemoteSystem) -> Iterator[list[int]]:
    """All the time; the list has the number of events sent so far."""
    sent, is_over = [0], threading.Event()

    def run() -> None:
        while not is_over.is_set():
            system.publish_many("Buys", {"item": [i % ITEMS for i in range(50)], "qty": [1] * 50})
            sent[0] += 50

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield sent
    finally:
        is_over.set()
        thread.join()


def wait_for_more(sent: list[int]) -> None:
    before = sent[0]
    wait_for(lambda: sent[0] > before + 200, "publishes", PATIENCE_S)


class Installs:
    def __init__(self, brokers: Brokers, system: RemoteSystem) -> None:
        self.brokers, self.system = brokers, system
        self.home = brokers.deployment.placement["Sold"]
        self.digest = component_digests(brokers.deployment, system.program)["Sold"]

    def installer(self) -> Installer:
        return Installer(self.system.connection, "Sold", self.digest)

    def bulk(self) -> Checkpoint:
        """As of the horizon that the stream has now."""
        horizon = self.system.connection.coverages(["Buys"]).coverages["Buys"].horizon()
        logs = self.brokers.folder / "a" / "log"
        return bulk_of(self.brokers.deployment, self.system.program, "Sold", horizon, logs)

    def status(self) -> dict[str, object]:
        found: dict[str, object] = self.brokers.status(self.system, self.home)["components"]["Sold"]
        return found

    def totals(self) -> int:
        return sum(row["total"] for row in self.system.rows("Sold"))  # type: ignore[misc]


@pytest.mark.parametrize("place", list(PLACES))
def test_an_install_under_load_is_seen_by_nobody_and_survives_a_kill(
    zygote: Zygote, tmp_path: Path, place: str
) -> None:
    with running(zygote, tmp_path, PROGRAM, PLACES[place]) as brokers, smile.connect(brokers.address) as system:
        installs = Installs(brokers, system)
        seen: list[tuple[object, ...]] = []
        system.subscribe("Sold", lambda change: seen.append(tuple(change.row.values())))
        with publishing(system) as sent:
            wait_for_more(sent)
            epoch = installs.status()["epoch"]
            installer = installs.installer()
            installer.hold(PATIENCE_S)
            bulk = installs.bulk()
            wait_for_more(sent)
            installer.send(bulk)
            told = installer.wait(PATIENCE_S)
            assert told["is_durable"]
            assert installs.status()["began_with"] == "a bulk install"
            assert installs.status()["epoch"] > epoch  # type: ignore[operator]
            wait_for_more(sent)
            brokers.restart(installs.home)
            wait_for_more(sent)
        assert installs.status()["began_with"] == "a checkpoint"
        assert installs.totals() == sent[0]
        wait_for(lambda: sum({row[0]: row[1] for row in seen}.values()) == sent[0], "changes", PATIENCE_S)  # type: ignore[arg-type]
        for item in range(ITEMS):  # totals rise with every change: none is false, none is told twice
            shown = [row[1] for row in seen if row[0] == item]
            assert all(one < other for one, other in pairwise(shown))  # type: ignore[operator]


def test_a_broker_killed_at_any_stage_has_the_old_state_or_the_new_one(zygote: Zygote, tmp_path: Path) -> None:
    with (
        running(zygote, tmp_path, PROGRAM, PLACES["two brokers"]) as brokers,
        smile.connect(brokers.address, timeout=PATIENCE_S) as system,
    ):
        installs = Installs(brokers, system)
        with publishing(system) as sent:
            _kill_at_every_stage(installs, sent)
        assert installs.totals() == sent[0]


def _kill_at_every_stage(installs: Installs, sent: list[int]) -> None:
    for stage in ("held", "received in part", "received", "switched in", "written"):
        wait_for_more(sent)
        installer = installs.installer()
        installer.hold(PATIENCE_S)
        if stage == "received in part":
            part = memoryview(codec.encode(installs.bulk().to_wire()))
            total = len(part)
            installs.system.connection.ask(installs.home, lambda n: control.Install(n, "Sold", 0, total, part[:100]))  # noqa: B023
        elif stage != "held":
            installer.send(installs.bulk())
        if stage in ("switched in", "written"):
            installer.wait(PATIENCE_S, is_durable=stage == "written")
        installs.brokers.restart(installs.home)
        assert installer.status()["state"] == "none"
        with pytest.raises(InstallFailed, match="has started again"):
            installer.wait(PATIENCE_S)
        with pytest.raises(RequestRefused, match="begin again"):
            installer.send(installs.bulk())
        wait_for(lambda: installs.totals() > 0, "rows", PATIENCE_S)
    installs.brokers.restart("a")  # whoever holds the log may go, too
    wait_for_more(sent)


def test_a_hold_ends_with_the_connection_of_whoever_made_it(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, PLACES["one broker"]) as brokers, smile.connect(brokers.address) as system:
        installer = Installs(brokers, system).installer()
        installer.hold(PATIENCE_S)
        installer.release()
        assert installer.status()["state"] == "failed"
        installer.hold(PATIENCE_S)
        with pytest.raises(RequestRefused, match="another one here"):
            Installer(system.connection, "Sold", "other").hold(PATIENCE_S)
        with smile.connect(brokers.address) as other, pytest.raises(RequestRefused, match="under way"):
            Installs(brokers, other).installer().hold(PATIENCE_S)
