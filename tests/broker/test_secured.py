"""Brokers with keys: who may do what, decided by the name that a connection has proved."""

from __future__ import annotations

from pathlib import Path

import pytest

import smile
from runtime.client.connection import Connection
from runtime.client.errors import RequestRefused
from runtime.client.installing import Installer
from runtime.security.allow_list import add_entry, entry_for
from runtime.security.endpoints import join_address
from runtime.security.keys import Keys, new_keys, write_keys
from runtime.security.signatures import serial_now
from smile.deploy.bundles import make_deployment, sign
from smile.digests import component_digests
from tests.broker.processes import WAIT_S, Brokers, Zygote, free_port, wait_for
from tests.broker.test_processes import PROGRAM, totals

PLACEMENT = {"Buys": "west", "Items": "west", "Sold": "east", "Shown": "east", "Large": "west"}


class Secured:
    """Two brokers on one list; `keys` of people by name."""

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        self.folder = folder
        self.allowed = folder / "allowed.toml"
        self.keys: dict[str, Keys] = {}
        self.program = smile.compile(PROGRAM)
        for name in ("west", "east"):
            self.allow(name, roles=["broker"])
        self.allow("owner", deploy=["*"], publish=["*"], subscribe=["*"], roles=["operator"])
        self.brokers = Brokers(zygote, folder, self.program, PLACEMENT)
        endpoints = {name: f"tcp://127.0.0.1:{free_port()}" for name in ("west", "east")}
        self.brokers.addresses = {name: join_address(at, self.keys[name].public) for name, at in endpoints.items()}
        for name in ("west", "east"):
            self.brokers.own_settings[name] = {"security": [str(self.secret(name)), str(self.allowed)]}
        self.deployment = make_deployment(self.program, self.brokers.addresses, PLACEMENT)
        signed = sign(self.deployment, self.keys["owner"], serial_now())
        for name in ("west", "east"):
            signed.write(folder / name)

    def allow(self, name: str, **rights: list[str]) -> None:
        if name not in self.keys:
            self.keys[name] = new_keys(name)
            write_keys(self.folder / "keys", self.keys[name])
        add_entry(self.allowed, entry_for(name, self.keys[name].public, **rights))

    def secret(self, name: str) -> Path:
        return self.folder / "keys" / f"{name}.secret"


def test_names_rights_and_signatures_decide(zygote: Zygote, tmp_path: Path) -> None:
    world = Secured(zygote, tmp_path)
    world.allow("alice", publish=["Buys"], subscribe=["Sold"])
    stranger = new_keys("stranger")
    write_keys(tmp_path / "keys", stranger)
    address = world.brokers.address
    try:
        world.brokers.start()
        with pytest.raises(smile.ConnectFailed):
            smile.connect(address.partition("?")[0], timeout=1)  # no key at all
        with pytest.raises(smile.ConnectFailed):
            smile.connect(address, keys=world.secret("stranger"), timeout=1)
        with smile.connect(address, keys=world.secret("alice")) as alice:
            alice.publish("Buys", {"item": 1, "qty": 5})
            with pytest.raises(smile.NotAllowed):
                alice.publish("Items", {"item": 1, "name": "x"})
            assert totals(alice) == {1: 5}
            with pytest.raises(smile.SmileError, match="may not read"):
                alice.rows("Shown")
            with pytest.raises(RequestRefused):
                alice.connection.stop("west")
            with pytest.raises(RequestRefused):
                alice.connection.deploy(world.deployment.to_wire())
            digest = component_digests(world.deployment, world.program)["Sold"]
            with pytest.raises(RequestRefused, match="no right to deploy"):
                Installer(alice.connection, "Sold", digest).hold(WAIT_S)
            seen: list[object] = []
            alice.subscribe("Sold", lambda change: seen.append(change.row["total"]))
            wait_for(lambda: seen == [5], "the snapshot")
            world.allow("alice", publish=["Buys"])  # no longer allowed to read
            wait_for(lambda: "read again" in world.brokers.log("east"), "the new list")
            alice.publish("Buys", {"item": 1, "qty": 6})
            with smile.connect(address, keys=world.secret("owner")) as owner:
                assert totals(owner) == {1: 11}
                Installer(owner.connection, "Sold", digest).hold(WAIT_S)  # one broker may ask the other for more edges
            assert seen == [5]
            refused = owner_status(world, "east")["counters"]
            assert any(code.startswith("refused.subscribe") for code in refused)
    finally:
        world.brokers.close()


def owner_status(world: Secured, broker: str) -> dict[str, dict[str, int]]:
    connection = Connection(world.brokers.address, keys=world.keys["owner"], request_timeout=WAIT_S)
    try:
        return connection.status()[broker]
    finally:
        connection.close()
