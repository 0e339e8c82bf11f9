"""Goal: the commands of a user, against real brokers: what they print, what they publish, how they exit."""

import asyncio
import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static
from typer.testing import CliRunner, Result

from runtime.client.connection import Connection
from smile.cli import app, output
from smile.cli.dashboard import Dashboard
from smile.cli.exits import Exit
from smile.cli.lines import Line
from smile.cli.publish import Publisher, _how_to_go_on, _Shown
from smile.errors import PublishUncertain
from smile.local import LocalBrokers, free_ports
from smile.remote.connect import connect
from tests.cli.test_dashboard import cells, until
from tests.measures import PATIENCE_S, eventually

ROOT = Path(__file__).parents[2]
PROGRAM = """
stream Items (item int, price decimal(10,2), qty int[0..1000]) unique item;
stream Buys (item int, qty int[1..100]);
stream Notes (note text null, x float);
view Sold = from Buys |> aggregate total := sum(qty) group by item;
view Left = from Items |> left join Sold using item default total := 0 |> extend rest := qty - total
  |> project item, price, rest;
subscribe stock to Left emit bounds;
"""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBrokers]:
    folder = tmp_path_factory.mktemp("commands")
    (folder / "shop.mpl").write_text(PROGRAM)
    with LocalBrokers(folder / "shop.mpl", ["one", "two"], folder / ".smile" / "shop") as brokers:
        yield brokers


@pytest.fixture
def in_project(local: LocalBrokers, monkeypatch: pytest.MonkeyPatch) -> LocalBrokers:
    """Commands are run in the folder of the run, and find it by themselves."""
    monkeypatch.chdir(local.data.parent.parent)
    monkeypatch.delenv("SMILE_ADDRESS", raising=False)
    return local


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=text)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def json_of(*arguments: str) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_publish_takes_good_lines_and_tells_of_bad_ones(in_project: LocalBrokers) -> None:
    rows = lines({"item": 1, "price": 12.5, "qty": 100}, {"item": 2, "price": "x", "qty": 1})
    rows += "nonsense\n\n" + lines({"item": 1, "price": 1, "qty": 5}, {"item": 3, "price": 0.25, "qty": 50})
    result = run("publish", "Items", text=rows)
    assert result.exit_code == Exit.PARTIAL
    assert result.stdout == "Items: 2 published, 3 lines refused\n"
    said = result.stderr.splitlines()
    assert [line.split(":")[0] for line in said] == ["line 2", "line 3", "line 5"]
    assert "line 2: column `price`: 'x' is not a number (decimal(10,2))" in said
    assert "line 5: column `item`: 1 was published before: the stream is `unique` by it" in said
    assert {"item": 3, "price": "0.25", "rest": 50} in json_of("query", "Left", "--json")["rows"]


def test_publish_csv_from_a_file(in_project: LocalBrokers, tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("item,price,qty\n101,1.50,10\n102,2.50,2000\n103,3.50,30\n")
    result = run("publish", "Items", str(file), "--json")
    assert result.exit_code == Exit.PARTIAL
    told = json.loads(result.stdout)
    assert (told["published"], told["refused"]) == (2, 1)
    assert told["complaints"][0]["line"] == 3
    assert "2000 is above 1000" in told["complaints"][0]["reason"]


def test_many_rows_with_one_bad_among_them(in_project: LocalBrokers) -> None:
    rows = [{"item": 7, "qty": 1 + n % 5} for n in range(5_000)]
    rows[3_210]["qty"] = 101
    result = run("publish", "Buys", "--quiet", text=lines(*rows))
    assert result.exit_code == Exit.PARTIAL
    assert result.stdout == ""
    assert result.stderr == "line 3211: column `qty`: 101 is above 100, the largest value declared\n"
    expected = sum(row["qty"] for row in rows) - 101
    assert {"item": 7, "total": expected} in json_of("query", "Sold", "--json")["rows"]


def test_publish_that_breaks_off_says_what_is_in_and_how_to_go_on(in_project: LocalBrokers) -> None:
    """Two batches: one is answered, then the broker is silent."""
    rows: list[dict[str, object]] = [{"item": 8, "qty": 1} for _ in range(1_500)]
    home = in_project.deployment.placement["Buys"]
    (other,) = set(in_project.names) - {home}
    with connect(in_project.addresses[other], timeout=PATIENCE_S) as system:
        publisher = Publisher(system, "Buys", _Shown("Buys", io.StringIO(), hidden=True))
        publisher.publish(iter([Line(n, row) for n, row in enumerate(rows[:1_000], 1)]))
        in_project.pause(home)
        try:
            publisher._send([Line(n, row) for n, row in enumerate(rows[1_000:], 1_001)])
            publisher._refuse(1_600, "a bad one")
            system._timeout = 0.1
            with pytest.raises(PublishUncertain):
                publisher._await_oldest()
            publisher.break_off()
        finally:
            in_project.resume(home)
    assert (publisher.published, publisher.first_open, publisher.last_uncertain) == (1_000, 1_001, 1_500)
    said = _how_to_go_on("Buys", publisher, "csv")
    assert "1000 rows are in, with all good lines before line 1001; lines 1001 to 1500 may be in or not" in said
    assert "keep the first line" in said
    assert publisher.complaints == [{"line": 1_600, "reason": "a bad one"}]


def test_publish_to_a_silent_broker(in_project: LocalBrokers) -> None:
    home = in_project.deployment.placement["Buys"]
    (other,) = set(in_project.names) - {home}
    in_project.pause(home)
    try:
        arguments = ("publish", "Buys", "--json", "--timeout", "1", "--address", in_project.addresses[other])
        result = run(*arguments, text=lines({"item": 9, "qty": 1}))
    finally:
        in_project.resume(home)
    assert result.exit_code == Exit.UNREACHABLE, result.output
    told = json.loads(result.stdout)
    assert (told["published"], told["first_open_line"]) == (0, 1)
    assert "0 rows are in, with all good lines before line 1; " in result.stderr


def test_nulls_and_floats(in_project: LocalBrokers) -> None:
    assert run("publish", "Notes", text=lines({"note": None, "x": 0.5}, {"x": 2})).exit_code == 0
    found = json_of("query", "Notes", "--json")["rows"]
    assert [(row["note"], row["x"]) for row in found] == [(None, 0.5), (None, 2.0)]


def test_query_in_every_format(in_project: LocalBrokers) -> None:
    assert run("publish", "Items", text=lines({"item": 201, "price": "7.00", "qty": 9})).exit_code == 0
    table = run("query", "Left")
    assert "rest" in table.stdout
    assert "7.00" in table.stdout
    rows = list(csv.DictReader(io.StringIO(run("query", "Left", "--format", "csv").stdout)))
    assert {"item": "201", "price": "7.00", "rest": "9"} in rows
    first = run("query", "Left", "--format", "jsonl", "--limit", "1").stdout.splitlines()
    assert len(first) == 1
    assert set(json.loads(first[0])) == {"item", "price", "rest"}
    assert run("query", "Left", "--format", "xml").exit_code == Exit.USAGE


def test_subscribe_prints_a_snapshot_and_changes(in_project: LocalBrokers) -> None:
    assert run("publish", "Items", text=lines({"item": 301, "price": 1, "qty": 90})).exit_code == 0
    result = run("subscribe", "Left", "--seconds", "0.3")
    assert result.exit_code == 0, result.output
    assert "= item=301  price=1.00  rest=90" in result.stdout.splitlines()
    told = [json.loads(line) for line in run("subscribe", "stock", "--json", "--changes", "1").stdout.splitlines()]
    assert len(told) == 1
    assert told[0]["kind"] == "snapshot"
    assert set(told[0]["bounds"]) == {"item", "price", "rest"}


def test_subscribe_continues_from_a_token(in_project: LocalBrokers, tmp_path: Path) -> None:
    token = tmp_path / "token"
    assert run("subscribe", "Sold", "--seconds", "0.2", "--token", str(token)).exit_code == 0
    assert token.stat().st_size > 0
    assert run("publish", "Buys", text=lines({"item": 999, "qty": 3})).exit_code == 0
    result = run("subscribe", "Sold", "--changes", "1", "--seconds", "10", "--token", str(token))
    assert result.stdout == "+ item=999  total=3\n", "only what is new"


def test_subscribe_as_a_table_without_a_terminal_still_ends(in_project: LocalBrokers) -> None:
    assert run("publish", "Items", text=lines({"item": 401, "price": 1, "qty": 77})).exit_code == 0
    result = run("subscribe", "Left", "--mode", "table", "--seconds", "0.3")
    assert result.exit_code == 0, result.output
    assert "77" in result.stdout
    assert run("subscribe", "Left", "--mode", "picture").exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("publish", "Buyz"), "did you mean `Buys`?"),
        (("query", "Lefd"), "did you mean `Left`?"),
        (("subscribe", "stonk"), "did you mean `stock`?"),
    ],
)
def test_unknown_names_get_a_hint(in_project: LocalBrokers, command: tuple[str, ...], hint: str) -> None:
    result = run(*command, text="")
    assert result.exit_code == Exit.USAGE
    assert hint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_status_names_brokers_and_components(in_project: LocalBrokers) -> None:
    told = json_of("status", "--json", "--timeout", "60")
    assert told["well"] is True
    assert {broker["name"] for broker in told["brokers"]} == {"one", "two"}
    homes = {component["name"]: component["broker"] for component in told["components"]}
    assert homes == in_project.deployment.placement
    shown = run("status", "--timeout", "60")
    assert "serves" in shown.stdout
    assert "Sold" in shown.stdout


def test_top_shows_brokers_and_components_as_they_are(
    in_project: LocalBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("publish", "Buys", text=lines({"item": 55, "qty": 1})).exit_code == 0
    sold = len(json_of("query", "Sold", "--json")["rows"])
    looked: list[str] = []

    async def watch(app: Dashboard) -> None:
        async with app.run_test(size=(160, 40)) as pilot:
            await until(pilot, lambda: app._shown and app._shown.brokers["one"].commits_per_s is not None)
            assert {row[0]: row[1:3] for row in cells(app, "brokers")} == {
                name: [address, "serves"] for name, address in in_project.addresses.items()
            }
            components = {row[0]: row for row in cells(app, "components")}
            assert {name: row[1] for name, row in components.items()} == in_project.deployment.placement
            assert (components["Sold"][3], components["Sold"][6]) == ("running", str(sold))
            looked.append(str(app.query_one("#told", Static).render()))
            await pilot.press("q")

    monkeypatch.setattr(output, "has_terminal", lambda: True)
    monkeypatch.setattr(Dashboard, "run", lambda app: asyncio.run(watch(app)))
    result = run("top", "--every", "0.1", "--timeout", "60")
    assert (result.exit_code, looked) == (0, ["all is well"]), result.output


def test_top_without_a_terminal_prints_plain_looks(in_project: LocalBrokers) -> None:
    shown = run("top", "--every", "0.1", "--count", "2", "--timeout", "60")
    assert shown.exit_code == 0, shown.output
    assert "\x1b" not in shown.stdout
    assert shown.stdout.count("behind") == 2
    assert "Sold" in shown.stdout
    first, second = run("top", "--json", "--every", "0.1", "--count", "2", "--timeout", "60").stdout.splitlines()
    assert json.loads(first)["well"] is True
    assert {one["commits_per_s"] is None for one in json.loads(first)["brokers"]} == {True}
    assert {one["commits_per_s"] is None for one in json.loads(second)["brokers"]} == {False}
    endless = smile("top", "--every", "0.1", "--timeout", "60", cwd=Path.cwd(), stdin=subprocess.DEVNULL)
    assert endless.stdout is not None
    assert "\x1b" not in endless.stdout.readline()
    endless.send_signal(signal.SIGINT)
    endless.communicate(timeout=PATIENCE_S)
    assert endless.returncode == 0


def test_faults_and_logs_of_a_local_run(in_project: LocalBrokers) -> None:
    starts = in_project.starts("two")
    result = run("fault", "kill", "two")
    assert (result.exit_code, result.stdout) == (0, "two was killed with -9; it is started again\n")
    eventually(lambda: in_project.starts("two") > starts and in_project.state("two") == "serving", "two to serve")
    assert run("status", "--timeout", "60").exit_code == 0
    logs = run("logs", "two", "--lines", "100")
    assert logs.exit_code == 0
    assert sum("serves at" in line for line in logs.stdout.splitlines()) == starts + 1
    assert all(line.startswith("two  ") for line in logs.stdout.splitlines())
    (last,) = run("logs", "two", "--lines", "1", "--json").stdout.splitlines()
    assert json.loads(last) == {"broker": "two", "text": logs.stdout.splitlines()[-1].removeprefix("two  ")}
    assert "did you mean `two`?" in run("fault", "kill", "twoo").stderr
    assert run("logs", "nobody").exit_code == Exit.USAGE


def test_query_names_brokers_that_are_silent(in_project: LocalBrokers) -> None:
    homes = in_project.deployment.placement
    (other,) = set(in_project.names) - {homes["Left"]}
    here = ("--address", in_project.addresses[homes["Left"]])
    assert json_of("query", "Left", "--json", *here)["silent"] == []
    in_project.pause(other)
    try:
        result = run("query", "Left", "--json", *here)
    finally:
        in_project.resume(other)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["view"], told["as_of"], told["silent"]) == ("Left", None, [other])
    assert f"warning: broker {other} does not answer" in result.stderr


def test_pause_and_resume(in_project: LocalBrokers) -> None:
    assert run("fault", "pause", "two").exit_code == 0
    try:
        result = run("status", "--timeout", "1", "--address", in_project.addresses["one"])
        assert result.exit_code == Exit.FAILED
        assert "its broker does not answer" in result.stdout
        told = json.loads(run("status", "--timeout", "1", "--json", "-a", in_project.addresses["one"]).stdout)
        assert [broker["is_up"] for broker in told["brokers"]] == [True, False]
    finally:
        assert run("fault", "resume", "two", "--json").exit_code == 0
    assert run("status", "--timeout", "20").exit_code == 0


def test_messages_may_be_lost_and_views_still_arrive(in_project: LocalBrokers) -> None:
    homes = in_project.deployment.placement
    assert run("fault", "drop", homes["Items"], "0.3").exit_code == 0
    try:
        assert run("publish", "Items", text=lines({"item": 501, "price": 1, "qty": 8})).exit_code == 0
        assert {"item": 501, "price": "1.00", "rest": 8} in json_of("query", "Left", "--json", "--timeout", "60")[
            "rows"
        ]
    finally:
        assert run("fault", "clear", homes["Items"]).exit_code == 0


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    for command in (["query", "V"], ["status"]):
        result = run(*command, "--address", address, "--timeout", "0.3")
        assert result.exit_code == Exit.UNREACHABLE
        assert f"no connection to {address} (given)" in result.stderr
        assert "start brokers with `smile run FILE`, or say where they are with --address" in result.stderr
    for command in (["logs"], ["fault", "kill", "x"]):
        result = run(*command)
        assert result.exit_code == Exit.UNREACHABLE
        assert "there is no local run here; start one with `smile run FILE`" in result.stderr


def smile(*arguments: str, cwd: Path, **named: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "smile", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True, env=environment, **named)


def test_run_tells_its_address_and_ends_in_order(tmp_path: Path) -> None:
    (tmp_path / "shop.mpl").write_text(PROGRAM)
    process = smile("run", "shop.mpl", "--json", cwd=tmp_path)
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert told["address"] == next(iter(told["brokers"].values()))["address"]
    assert set(told["placement"].values()) == {"b1"}
    result = run("publish", "Buys", "--address", told["address"], text=lines({"item": 1, "qty": 2}))
    assert result.exit_code == 0, result.stderr
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    record = json.loads((tmp_path / ".smile" / "shop" / "run.json").read_text())
    assert [broker["state"] for broker in record["brokers"].values()] == ["stopped"]


def test_run_refuses_what_cannot_run(tmp_path: Path) -> None:
    assert run("run", str(tmp_path / "missing.mpl")).exit_code == Exit.USAGE
    (tmp_path / "bad.mpl").write_text("view V = from Nothing;")
    result = run("run", str(tmp_path / "bad.mpl"))
    assert result.exit_code == Exit.FAILED
    assert "`Nothing`" in result.stderr


def serving(folder: Path) -> None:
    eventually((folder / "serving.json").exists, "the broker to serve")


def test_deploy_to_brokers_that_wait_and_deploy_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = free_ports(2)
    (tmp_path / "shop.mpl").write_text(PROGRAM)
    config = f'program = "shop.mpl"\n[brokers.one]\naddress = "tcp://127.0.0.1:{one}"\n'
    config += f'[brokers.two]\naddress = "tcp://127.0.0.1:{two}"\n[pins]\nSold = "two"\nNotes = "two"\n'
    (tmp_path / "smile.toml").write_text(config)
    dry = json_of("deploy", "--dry-run", "--json")
    assert (dry["sent"], dry["placement"]["Sold"], dry["reasons"]["Sold"]) == (False, "two", "pinned as Sold")
    unreachable = run("deploy", "--timeout", "0.3")
    assert unreachable.exit_code == Exit.UNREACHABLE
    assert "start it with `smile broker one`" in unreachable.stderr
    brokers = [smile("broker", name, cwd=tmp_path, stderr=subprocess.PIPE) for name in ("one", "two")]
    try:
        for name in ("one", "two"):
            serving(tmp_path / "data" / name)
        waiting = run("query", "Left")
        assert waiting.exit_code == Exit.UNREACHABLE
        assert "deploy a program first" in waiting.stderr
        deployed = run("deploy", "--timeout", "60")
        assert deployed.exit_code == 0, deployed.stderr
        assert run("publish", "Buys", text=lines({"item": 1, "qty": 2})).exit_code == 0
        (tmp_path / "shop.mpl").write_text(PROGRAM + "view Twice = from Sold |> extend twice := total + total;\n")
        deployed = run("deploy", "--timeout", "60")
        assert deployed.exit_code == 0, deployed.stderr
        assert json_of("query", "Twice", "--json", "--timeout", "60")["rows"] == [{"item": 1, "total": 2, "twice": 4}]
        _deploy_what_one_broker_refuses(tmp_path)
        with monkeypatch.context() as patched:
            _deploy_what_does_not_reach_all(tmp_path, patched, two)
        (tmp_path / "shop.mpl").write_text("view V = from Nothing;")
        assert run("deploy", "--timeout", "60").exit_code == Exit.FAILED
    finally:
        for broker in brokers:
            broker.terminate()
            broker.communicate(timeout=PATIENCE_S)
    assert [broker.returncode for broker in brokers] == [0, 0]


def _deploy_what_one_broker_refuses(folder: Path) -> None:
    """The first broker would take it; it must not switch before the second one has agreed."""
    before = digests()
    (folder / "shop.mpl").write_text(PROGRAM.replace("x float", "x int"))
    refused = run("deploy", "--timeout", "60")
    assert refused.exit_code == Exit.REFUSED
    assert "broker two refuses" in refused.stderr
    assert "nothing was changed anywhere" in refused.stderr
    assert digests() == before
    assert len(set(before.values())) == 1


def _deploy_what_does_not_reach_all(folder: Path, patched: pytest.MonkeyPatch, port: int) -> None:
    deploy = Connection.deploy

    def fails(self: Connection, *given: Any) -> None:
        if str(port) in self.address:
            raise TimeoutError("no answer")
        deploy(self, *given)

    patched.setattr(Connection, "deploy", fails)
    (folder / "shop.mpl").write_text(PROGRAM + "stream Late (a int);\n")
    split = run("deploy", "--timeout", "60")
    assert split.exit_code == Exit.UNREACHABLE
    said = [line.strip() for line in split.stderr.splitlines()]
    assert "the new program: one" in said
    assert "the old program or the new one: two" in said
    eventually(lambda: len(set(digests().values())) == 2, "the first broker to switch")
    shown = run("status", "--timeout", "60")
    assert shown.exit_code == Exit.FAILED
    assert "smile deploy" in " ".join(shown.stdout.split())
    patched.setattr(Connection, "deploy", deploy)
    assert run("deploy", "--timeout", "60").exit_code == Exit.OK
    eventually(lambda: len(set(digests().values())) == 1, "the second one to follow")


def digests() -> dict[str, str]:
    told = json.loads(run("status", "--json", "--timeout", "60").stdout)
    return {one["name"]: one["deployment"] for one in told["brokers"]}


def test_the_demonstration_of_the_tickets() -> None:
    """What `make demo` runs, with less traffic."""
    command = [sys.executable, "examples/tickets/demo.py", "--seconds", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert any("the first live row" in line for line in said)
    assert any("hub was killed with -9" in line for line in said)
    assert said[-1].startswith("verdict: ")
    assert said[-1].endswith("equal to the recomputed truth")
    assert "1 broker killed" in said[-1]


def test_ctrl_c_ends_what_follows_and_says_so_elsewhere(in_project: LocalBrokers) -> None:
    """Following a view ends by Ctrl-C as it should; a command that was interrupted at its work says 130."""
    assert run("publish", "Buys", text=lines({"item": 77, "qty": 1})).exit_code == 0
    folder = in_project.data.parent.parent
    following = smile("subscribe", "Sold", "--json", cwd=folder)
    tailing = smile("logs", "--follow", cwd=folder)
    for process in (following, tailing):
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert following.returncode == Exit.OK
    assert tailing.returncode == Exit.INTERRUPTED


def test_brokers_with_keys_run_what_was_signed_and_ask_who_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.mpl").write_text(PROGRAM)
    made = {name: json_of("keys", "new", name, "--json") for name in ("hub", "me", "till")}
    rights = {
        "hub": ("--role", "broker"),
        "me": ("--deploy", "*", "--publish", "*", "--subscribe", "*", "--role", "operator"),
        "till": ("--publish", "Buys"),
    }
    for name, words in rights.items():
        assert run("keys", "allow", "keys/allowed.toml", name, made[name]["public"], *words).exit_code == 0
    address = f"tcp://127.0.0.1:{free_ports(1)[0]}?key={made['hub']['key']}"
    security = '[security]\nsecret = "keys/{broker}.secret"\nallowed = "keys/allowed.toml"\nclient = "keys/me.secret"\n'
    (tmp_path / "smile.toml").write_text(f'program = "shop.mpl"\n[brokers.hub]\naddress = "{address}"\n{security}')
    broker = smile("broker", "hub", cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        serving(tmp_path / "data" / "hub")
        assert run("deploy", "--keys", "keys/till.secret", "--timeout", "60").exit_code == Exit.REFUSED
        deployed = run("deploy", "--timeout", "60")
        assert deployed.exit_code == 0, deployed.stderr
        bought = lines({"item": 1, "qty": 2})
        assert run("publish", "Buys", "--keys", "keys/till.secret", text=bought).exit_code == 0
        item = lines({"item": 1, "price": 1, "qty": 2})
        assert run("publish", "Items", "--keys", "keys/till.secret", text=item).exit_code == Exit.REFUSED
        assert run("query", "Sold", "--keys", "keys/till.secret").exit_code == Exit.REFUSED
        assert json_of("query", "Sold", "--json")["rows"] == [{"item": 1, "total": 2}]
        nobody = json_of("keys", "new", "nobody", "--json")
        stranger = run("query", "Sold", "--keys", nobody["secret"], "--timeout", "2")
        assert stranger.exit_code == Exit.UNREACHABLE
    finally:
        broker.terminate()
        _, said = broker.communicate(timeout=PATIENCE_S)
    assert broker.returncode == 0, said
