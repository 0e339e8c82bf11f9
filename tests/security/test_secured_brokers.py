"""Two broker processes with keys and an allow-list: who gets in, what each name may do, which deployments run, what is
logged.

The view is on another broker than its stream, so that brokers authenticate each other as well.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import smile
from mpl.source import Source
from runtime.client.connection import Connection
from runtime.client.errors import ConnectFailed, RequestRefused
from runtime.security.allow_list import AllowList, add_entry, entry_for, read_allow_list, show_allow_list
from runtime.security.endpoints import join_address
from runtime.security.errors import NotSecured
from runtime.security.keys import Keys, new_keys, write_keys
from runtime.security.signatures import serial_now
from smile.deploy.bundles import make_deployment, sign
from smile.deploy.deployment import Deployment
from smile.gateway.server import start_gateway
from smile.local import free_ports
from smile.program import compile_source
from tests.measures import PATIENCE_S, eventually

TEXT = """
stream Sales (item int, qty int[0..100]);
stream Wages (person int, amount int[0..100000]);
view Totals = from Sales |> aggregate total := sum(qty) group by item;
view Paid = from Wages |> aggregate amount := sum(amount) group by person;
"""
HOMES = {"Sales": "west", "Wages": "west", "Totals": "hub", "Paid": "hub"}
pytestmark = pytest.mark.slow
RIGHTS: dict[str, dict[str, list[str]]] = {
    "west": {"roles": ["broker"]},
    "hub": {"roles": ["broker"]},
    "author": {"deploy": ["*"]},
    "intern": {"deploy": ["Sales", "Totals"]},
    "till": {"publish": ["Sales"]},
    "desk": {"subscribe": ["Sales"]},
    "board": {"subscribe": ["Totals"]},
    "guest": {},
}


class Site:
    """Keys, list, configuration and processes of one installation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: dict[str, Keys] = {}
        self.allowed = folder / "allowed.toml"
        for name, rights in RIGHTS.items():
            self.add_key(name)
            add_entry(self.allowed, entry_for(name, self.keys[name].public, **rights))
        self.add_key("stranger")
        ports = free_ports(2)
        self.addresses = {
            name: join_address(f"tcp://127.0.0.1:{port}", self.keys[name].public)
            for name, port in zip(("west", "hub"), ports, strict=True)
        }
        brokers = "".join(f'[brokers.{name}]\naddress = "{address}"\n' for name, address in self.addresses.items())
        security = '[security]\nsecret = "{broker}.secret"\nallowed = "allowed.toml"\n'
        (folder / "smile.toml").write_text(brokers + security)
        self.processes = {name: self._start(name) for name in self.addresses}
        program = compile_source(Source("shop.mpl", TEXT), folder)
        self.deployment = make_deployment(program, self.addresses, HOMES)

    def add_key(self, name: str) -> None:
        self.keys[name] = new_keys(name)
        write_keys(self.folder, self.keys[name])

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "smile", "broker", name, "--config", str(self.folder / "smile.toml")]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def deploy(self, deployment: Deployment, *, sender: str, to: tuple[str, ...] = ("west", "hub")) -> None:
        for name in to:
            connection = Connection(
                self.addresses[name], keys=self.keys[sender], request_timeout=PATIENCE_S, needs_deployment=False
            )
            try:
                connection.deploy(deployment.to_wire())
            finally:
                connection.close()

    def signed(self, name: str) -> Deployment:
        return sign(self.deployment, self.keys[name], serial_now())

    def connect(self, name: str, timeout: float = PATIENCE_S) -> smile.RemoteSystem:
        return smile.connect(self.addresses["west"], keys=self.folder / f"{name}.secret", timeout=timeout)

    def close(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With a deployment that runs, after several that were refused."""
    site = Site(tmp_path_factory.mktemp("site"))
    try:
        _refused_deployments(site)
        site.deploy(site.signed("author"), sender="author")
        yield site
    finally:
        site.close()


def _refused_deployments(site: Site) -> None:
    good = site.signed("author")
    changed = replace(good, placement={**HOMES, "Paid": "west"})
    other_text = {**good.files, "program.mpl": good.files["program.mpl"] + b"view All = from Wages;\n"}
    for deployment, sender, said in (
        (site.deployment, "author", "not signed"),
        (site.signed("stranger"), "author", "may not deploy here"),
        (site.signed("till"), "till", "no right to deploy"),
        (site.signed("intern"), "intern", "lacking for `Paid`, `Wages`"),
        (good, "till", "no broker"),
        (changed, "author", "is not what"),
        (replace(good, signer="intern"), "intern", "is not what"),
        (sign(replace(site.deployment, files=other_text), site.keys["author"], serial_now()), "author", "compile"),
    ):
        with pytest.raises(RequestRefused, match=said):
            site.deploy(deployment, sender=sender)
    with pytest.raises(ConnectFailed, match="nothing has been deployed"):
        Connection(site.addresses["west"], keys=site.keys["guest"], request_timeout=PATIENCE_S)


def test_each_name_may_do_what_it_may(site: Site) -> None:
    with site.connect("till") as till, site.connect("desk") as desk, site.connect("board") as board:
        till.publish("Sales", {"item": 1, "qty": 3})
        with pytest.raises(smile.NotAllowed, match="`Wages`"):
            till.publish("Wages", {"person": 1, "amount": 1})
        with pytest.raises(smile.SmileError, match="may not read `Totals`"):
            till.rows("Totals")
        assert desk.rows("Totals") == [{"item": 1, "total": 3}]  # derived from what it may read
        assert desk.rows("Sales") == [{"item": 1, "qty": 3}]
        with pytest.raises(smile.NotAllowed):
            desk.publish("Sales", {"item": 1, "qty": 1})
        with pytest.raises(smile.SmileError, match="may not read `Paid`"):
            desk.rows("Paid")
        assert board.rows("Totals") == [{"item": 1, "total": 3}]  # granted, without its stream
        with pytest.raises(smile.SmileError, match="may not read `Sales`"):
            board.rows("Sales")
        with pytest.raises(RequestRefused, match="no operator"):
            board.connection.stop("west")
    assert site.processes["west"].poll() is None
    west = site.log("west")
    for said in ("till` has no right to publish to `Wages", "board` may not read `Sales", "board` is no operator"):
        assert said in west
    assert site.keys["till"].curve_secret.hex() not in west


def test_strangers_do_not_get_in(site: Site) -> None:
    key, end = site.keys["stranger"].public.curve.hex(), time.monotonic() + PATIENCE_S
    while key not in site.log("west"):  # in a second it may not even have been noticed
        assert time.monotonic() < end
        with pytest.raises(smile.ConnectFailed):
            site.connect("stranger", timeout=1.0)
    with pytest.raises(smile.ConnectFailed, match="keys="):
        smile.connect(site.addresses["west"], timeout=1.0)
    with pytest.raises(smile.ConnectFailed):  # in the open, to a socket that does not speak without encryption
        smile.connect(site.addresses["west"].partition("?")[0], timeout=1.0)
    wrong = join_address(site.addresses["west"].partition("?")[0], site.keys["hub"].public)
    with pytest.raises(smile.ConnectFailed):  # not the one it expects there
        smile.connect(wrong, keys=site.folder / "till.secret", timeout=1.0)


def test_an_old_deployment_does_not_come_back(site: Site) -> None:
    """Neither from the wire nor, changed, from the disk."""
    old = sign(site.deployment, site.keys["author"], serial_now() - 60_000_000)
    with pytest.raises(RequestRefused, match="newer deployment"):
        site.deploy(old, sender="author")
    site.deploy(site.signed("author"), sender="author")  # the same again, newly signed


def test_a_right_taken_away_ends_a_subscription(site: Site) -> None:
    site.add_key("clerk")
    add_entry(site.allowed, entry_for("clerk", site.keys["clerk"].public, subscribe=["Totals"]))
    with site.connect("till") as till, site.connect("clerk") as clerk:
        changes = clerk.subscribe("Totals")
        till.publish("Sales", {"item": 7, "qty": 1})
        assert _heard(changes, 7, PATIENCE_S)
        add_entry(site.allowed, entry_for("clerk", site.keys["clerk"].public))
        assert not read_allow_list(site.allowed).by_name["clerk"].rights.subscribe.texts
        eventually(lambda: "clerk` may not read `Totals" in site.log("hub"), "the list to be read again")
        till.publish("Sales", {"item": 100, "qty": 1})
        with site.connect("desk") as desk:
            assert {"item": 100, "total": 1} in desk.rows("Totals")  # others still hear
        assert not _heard(changes, 100, 0.5)


def test_a_connection_of_a_name_that_was_taken_off_is_told_nothing_more(site: Site) -> None:
    site.add_key("temp")
    add_entry(site.allowed, entry_for("temp", site.keys["temp"].public, subscribe=["Totals"]))
    with site.connect("temp") as temp:
        assert "error" not in temp.status()["west"]
        others = [entry for entry in read_allow_list(site.allowed).entries if entry.name != "temp"]
        site.allowed.write_text(show_allow_list(AllowList(tuple(others))))
        end = time.monotonic() + PATIENCE_S
        while "error" not in (answer := temp.status()["west"]):
            assert time.monotonic() < end, "it still answers"
            time.sleep(0.2)
        assert "no longer on the allow-list" in answer["error"]


def test_a_gateway_has_the_rights_of_its_broker_and_its_tokens_narrow_them(site: Site) -> None:
    tokens = site.folder / "tokens.toml"
    tokens.write_text(
        '[[token]]\nname = "app"\ntoken = "0123456789abcdef"\npublish = ["Sales"]\nsubscribe = ["Totals"]\n'
    )
    tokens.chmod(0o600)
    gateway = start_gateway(site.addresses["hub"], "127.0.0.1", 0, keys=site.folder / "hub.secret", tokens=tokens)
    bearer = {"Authorization": "Bearer 0123456789abcdef"}
    try:
        with httpx.Client(base_url=gateway.url, headers=bearer, timeout=PATIENCE_S) as http:
            assert http.get("/views/Totals").status_code == 200
            assert http.get("/views/Paid").status_code == 403, "the broker may, the token may not"
            refused = http.post("/streams/Sales", json={"item": 55, "qty": 1})
            assert refused.status_code == 403
            assert "`hub` has no right to publish to `Sales`" in refused.json()["error"]
            add_entry(
                site.allowed, entry_for("hub", site.keys["hub"].public, roles=["broker"], publish=["Sales", "Wages"])
            )
            eventually(lambda: http.post("/streams/Sales", json={"item": 55, "qty": 1}).status_code == 200, "the list")
            assert http.post("/streams/Wages", json={"person": 1, "amount": 1}).status_code == 403
    finally:
        gateway.close()


def _heard(changes: smile.Subscription, item: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            batch = changes.wait(end - time.monotonic())
        except smile.SmileError:
            return False
        if batch is not None and item in batch.column("item"):
            return True
    return False


def test_a_broker_beyond_this_machine_does_not_start_without_keys(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "smile", "broker", "b1", "--listen", f"tcp://0.0.0.0:{free_ports(1)[0]}"]
    done = subprocess.run([*command, "--data", str(tmp_path)], capture_output=True, timeout=60, text=True, check=False)
    assert done.returncode == 2
    assert "smile keys new" in done.stderr
    with pytest.raises(NotSecured):
        Connection("tcp://192.0.2.1:7070")
