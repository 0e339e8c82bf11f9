"""Brokers with keys: who may do what, decided by the name that a connection has proved."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import smile
from runtime.broker.hosted import guests_edge
from runtime.client.connection import Connection
from runtime.client.errors import ConnectFailed, RequestRefused
from runtime.client.installing import Installer
from runtime.security.allow_list import AllowList, add_entry, entry_for, read_allow_list, show_allow_list
from runtime.security.endpoints import join_address
from runtime.security.keys import Keys, new_keys, write_keys
from runtime.security.signatures import serial_now
from runtime.wire.control import Attach
from smile.cli import app
from smile.deploy.bundles import make_deployment, sign, table_rows_of
from smile.deploy.deployment import Deployment
from smile.deploy.placement import hosted_components
from smile.digests import component_digests
from smile.program import Program
from tests.broker.processes import WAIT_S, Brokers, Zygote, free_port, wait_for
from tests.broker.test_processes import PROGRAM, totals

PLACEMENT = {"Buys": "west", "Items": "west", "Sold": "east", "Shown": "east", "Large": "west"}


class Secured:
    """Two brokers on one list; `keys` of people by name."""

    def __init__(self, zygote: Zygote, folder: Path, program: Program | None = None) -> None:
        self.folder = folder
        self.allowed = folder / "allowed.toml"
        self.keys: dict[str, Keys] = {}
        self.program = program or smile.compile(PROGRAM)
        hosted = (one.name for one in hosted_components(self.program.plan))
        placement = {name: PLACEMENT.get(name, "west") for name in hosted}
        for name in ("west", "east"):
            self.allow(name, roles=["broker"])
        self.allow("owner", deploy=["*"], publish=["*"], subscribe=["*"], roles=["operator"])
        self.brokers = Brokers(zygote, folder, self.program, placement)
        endpoints = {name: f"tcp://127.0.0.1:{free_port()}" for name in ("west", "east")}
        self.brokers.addresses = {name: join_address(at, self.keys[name].public) for name, at in endpoints.items()}
        for name in ("west", "east"):
            self.brokers.own_settings[name] = {"security": [str(self.secret(name)), str(self.allowed)]}
        self.deployment = make_deployment(self.program, self.brokers.addresses, placement)
        signed = sign(self.deployment, self.keys["owner"], serial_now())
        for name in ("west", "east"):
            signed.write(folder / name)

    def allow(self, name: str, **rights: list[str]) -> None:
        if name not in self.keys:
            self.keys[name] = new_keys(name)
            write_keys(self.folder / "keys", self.keys[name])
        add_entry(self.allowed, entry_for(name, self.keys[name].public, **rights))

    def take_off(self, name: str) -> None:
        others = [entry for entry in read_allow_list(self.allowed).entries if entry.name != name]
        self.allowed.write_text(show_allow_list(AllowList(tuple(others))))

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


def test_a_connection_ends_with_the_key_that_made_it(zygote: Zygote, tmp_path: Path) -> None:
    """Somebody has seen alice's secret, and she gets another: who is connected with the old one is not alice."""
    world = Secured(zygote, tmp_path)
    world.allow("alice", publish=["Buys"], subscribe=["Sold"])
    address = world.brokers.address
    try:
        world.brokers.start()
        with smile.connect(address, keys=world.secret("alice")) as thief:
            seen: list[object] = []
            thief.subscribe("Sold", lambda change: seen.append(change.row["total"]))
            thief.publish("Buys", {"item": 1, "qty": 5})
            wait_for(lambda: seen == [5], "the first change")
            del world.keys["alice"]
            world.secret("alice").unlink()
            (tmp_path / "keys" / "alice.public").unlink()
            world.allow("alice", publish=["Buys"], subscribe=["Sold"])
            wait_for(lambda: all("read again" in world.brokers.log(name) for name in ("west", "east")), "the new list")
            stolen = thief.publish_nowait("Buys", {"item": 1, "qty": 50})
            with smile.connect(address, keys=world.secret("alice")) as alice:
                wait_for(lambda: owner_status(world, "west")["counters"].get("refused.not-listed"), "a refusal")
                alice.publish("Buys", {"item": 1, "qty": 6})
                assert totals(alice) == {1: 11}
            assert not stolen.done() or stolen.exception() is not None
            assert seen == [5]
    finally:
        world.brokers.close()


def test_a_pattern_for_views_says_nothing_about_what_is_below_them(zygote: Zygote, tmp_path: Path) -> None:
    """A total may be read without its details, also by `Total*`, which `Totals.where_1` begins like."""
    program = smile.compile(
        """
stream Wages (person int, dept int, amount int[0..100000]);
view Totals = from Wages |> where amount > 10 |> aggregate total := sum(amount) group by person, dept
    |> where total > 5 |> aggregate paid := sum(total) group by dept;
"""
    )
    world = Secured(zygote, tmp_path, program)
    world.allow("board", subscribe=["Total*"])
    digests = component_digests(world.deployment, world.program)
    parts = [name for name in digests if name.startswith("Totals.")]
    assert parts
    try:
        world.brokers.start()
        with smile.connect(world.brokers.address, keys=world.secret("board")) as board:
            assert board.rows("Totals") == []
            for part in parts:
                with pytest.raises(RequestRefused, match="below views"):
                    board.connection.ask("west", partial(attach_to, part, digests[part]))
    finally:
        world.brokers.close()


def attach_to(component: str, digest: str, number: int) -> Attach:
    return Attach(number, guests_edge(component), component, "guest", digest)


def owner_status(world: Secured, broker: str) -> dict[str, dict[str, int]]:
    connection = Connection(world.brokers.address, keys=world.keys["owner"], request_timeout=WAIT_S)
    try:
        return connection.status()[broker]
    finally:
        connection.close()


def test_rows_of_tables_go_to_those_who_may_read_them(zygote: Zygote, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("item,price\n1,10\n2,20\n")
    (tmp_path / "shop.mpl").write_text(
        """
table Prices (item int, price int) key item from "prices.csv";
stream Buys (item int, qty int[0..1000]);
view Sold = from Buys |> aggregate total := sum(qty) group by item;
view Worth = from Sold |> join Prices using item |> extend worth := total * price |> project item, worth;
"""
    )
    world = Secured(zygote, tmp_path, smile.compile(tmp_path / "shop.mpl"))
    world.allow("alice", publish=["Buys"], subscribe=["Worth", "Prices2"])
    world.allow("clerk", subscribe=["Prices"])
    world.allow("author", deploy=["*"])
    path = "tables/Prices.csv"
    try:
        world.brokers.start()
        for name in ("clerk", "author", "owner", "west"):
            with smile.connect(world.brokers.address, keys=world.secret(name)) as system:
                assert system.deployment.files[path] == b"item,price\n1,10\n2,20\n", name
        with smile.connect(world.brokers.address, keys=world.secret("alice")) as alice:
            assert path not in alice.connection.deployment["files"]
            assert alice.deployment.digest == world.deployment.digest
            with pytest.raises(smile.NotAllowed, match="`Prices`"):
                table_rows_of(alice.deployment, alice.program)
            alice.publish("Buys", {"item": 2, "qty": 3})
            assert alice.rows("Worth") == [{"item": 2, "worth": 60}], "digests are enough to be let in"
            counters = alice.connection.status()["west"]["counters"]
            assert not [code for code in counters if code.startswith(("refused.subscribe", "refused.deploy"))]
            with pytest.raises(RequestRefused, match="lacks rows"):
                alice.connection.deploy(alice.deployment.to_wire() | {"withheld": dict(alice.deployment.withheld)})
    finally:
        world.brokers.close()


def test_a_deployment_outlives_its_signer_only_until_the_next_start(
    zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`owner` leaves: `heir` may deploy at once, also the same again, and also to brokers that started meanwhile."""
    monkeypatch.chdir(tmp_path)
    world = Secured(zygote, tmp_path)
    world.allow("heir", deploy=["*"], publish=["*"], subscribe=["*"])
    world.allow("late", deploy=["*"], subscribe=["*"])
    brokers = "".join(f'[brokers.{name}]\naddress = "{at}"\n' for name, at in world.brokers.addresses.items())
    pins = "".join(f'{name} = "{home}"\n' for name, home in PLACEMENT.items())
    (tmp_path / "smile.toml").write_text(f'program = "shop.mpl"\n{brokers}[pins]\n{pins}')
    (tmp_path / "shop.mpl").write_text(PROGRAM)

    def deploy() -> Result:
        return CliRunner().invoke(app, ["deploy", "--keys", str(world.secret("heir")), "--timeout", str(WAIT_S)])

    def sold() -> dict[int, int]:
        with smile.connect(world.brokers.address, keys=world.secret("late"), timeout=WAIT_S) as system:
            return totals(system)

    try:
        world.brokers.start()
        with smile.connect(world.brokers.address, keys=world.secret("heir")) as heir:
            heir.publish("Buys", {"item": 1, "qty": 5})
            assert totals(heir) == {1: 5}
        world.take_off("owner")
        for name in ("west", "east"):
            world.brokers.restart(name)
        with pytest.raises(ConnectFailed, match=r"signed by `owner`.*deploy again"):
            Connection(world.brokers.address, keys=world.keys["heir"], request_timeout=WAIT_S)
        old = sign(world.deployment, world.keys["heir"], serial_now() - 3_600_000_000)
        with pytest.raises(RequestRefused, match="newer deployment"):
            give(world, old, "heir", "west")
        assert deploy().exit_code == 0
        assert sold() == {1: 5}, "the same data"
        stored = Deployment.read(tmp_path / "west")
        assert stored is not None
        for name in ("west", "east"):  # the same program, signed by somebody else: nothing starts anew
            give(world, sign(stored, world.keys["late"], serial_now()), "late", name)
        assert world.brokers.log("west").count("serves at") == 3
        world.take_off("heir")
        for name in ("west", "east"):
            world.brokers.restart(name)
        assert sold() == {1: 5}
    finally:
        world.brokers.close()


def give(world: Secured, deployment: Deployment, sender: str, broker: str) -> None:
    connection = Connection(
        world.brokers.addresses[broker], keys=world.keys[sender], request_timeout=WAIT_S, needs_deployment=False
    )
    try:
        connection.deploy(deployment.to_wire())
    finally:
        connection.close()
