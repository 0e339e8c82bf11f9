"""Goal: HTTP tells what the views say and takes what the streams take, from real brokers, to anybody who may."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as websocket
from websockets.typing import Origin

import smile
from smile.deploy.bundles import compile_file, make_deployment
from smile.deploy.placement import hosted_components
from smile.gateway import app, feed, site
from smile.gateway.rights import BadTokens, HttpUsers, NoToken
from smile.gateway.server import Gateway, GatewayFailed, start_gateway
from smile.local import LocalBrokers
from tests.measures import PATIENCE_S, eventually

PROGRAM = """
stream Sales (item int, qty int[0..100], price decimal(8,2), at time null, took duration null, f float null);
stream Users (id int, name text) unique id;
stream Notes (k int, at time, body text);
view Last = from Notes |> latest per k by at;
view Sold = from Sales |> aggregate total := sum(qty) group by item;
view Paid = from Sales |> aggregate money := sum(price) group by item;
view Secret = from Users |> aggregate n := count();
view Ratio = from Users |> extend r := 100 / id;
subscribe limits to Sold emit bounds;
subscribe late to Sold snapshot off;
"""
items = count(1)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBrokers]:
    path = tmp_path_factory.mktemp("program") / "shop.mpl"
    path.write_text(PROGRAM, encoding="utf-8")
    with LocalBrokers(path, 1, http=True) as running:
        yield running


@pytest.fixture(scope="module")
def url(brokers: LocalBrokers) -> str:
    """Of the gateway in the broker itself."""
    (process,) = brokers.record.brokers.values()
    return f"http://{process.http}"


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture
def item() -> int:
    """A number that no other test uses."""
    return next(items)


def sale(item: int, qty: int = 1, **more: object) -> dict[str, object]:
    return {"item": item, "qty": qty, "price": "1.50", **more}


def rows(http: httpx.Client, view: str, item: int) -> list[dict[str, Any]]:
    answer = http.get(f"/views/{view}", params={"item": str(item)})
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["rows"]
    return found


@contextmanager
def told(http: httpx.Client, path: str, last_id: str | None = None) -> Iterator[Iterator[tuple[str, str | None, Any]]]:
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    with http.stream("GET", path, headers=headers) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        yield _events(stream.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Any]]:
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "event" in event:
            yield event["event"], event.get("id"), json.loads(event["data"])
            event = {}


def first_event(http: httpx.Client, path: str) -> str:
    with told(http, path) as events:
        return next(events)[0]


def test_values_go_in_and_out(http: httpx.Client, item: int) -> None:
    row = {"item": item, "qty": 7, "price": 12.30, "at": "2026-05-01T14:00:00+02:00", "took": 1500, "f": 0.1}
    answer = http.post("/streams/Sales", json=row)
    assert answer.status_code == 200
    assert answer.json()["published"] == 1
    assert answer.json()["first_tick"] == answer.json()["last_tick"]
    assert int(answer.json()["first_tick"]) > 2**53
    assert rows(http, "Sales", item) == [{**row, "price": "12.30", "at": "2026-05-01T12:00:00Z"}]
    assert rows(http, "Paid", item) == [{"item": item, "money": "12.30"}]
    exact = http.post("/streams/Sales", content=f'{{"item": {item}, "qty": 0, "price": 100000.01}}')
    assert exact.status_code == 200
    assert rows(http, "Paid", item)[0]["money"] == "100012.31", "never a float on the way"


def test_arrays_and_lines_are_all_in_or_all_out(http: httpx.Client, item: int) -> None:
    assert http.post("/streams/Sales", json=[sale(item), sale(item, 2)]).json()["published"] == 2
    lines = "\n".join(json.dumps(sale(item, qty)) for qty in (3, 4)) + "\n"
    assert http.post("/streams/Sales", content=lines).json()["published"] == 2
    bad = http.post("/streams/Sales", json=[sale(item), sale(item, 101), {"item": item}])
    assert bad.status_code == 422
    assert bad.json()["problems"][0] == {
        "row": 1,
        "column": "qty",
        "value": 101,
        "rule": "is above 100, the largest value declared",
    }
    assert rows(http, "Sold", item) == [{"item": item, "total": 10}]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[1]", "row 0 is not an object"),
        (b"[]", "no rows"),
        (b'{"item": NaN}', "NaN"),
        (b"\xff", "not UTF-8"),
        (b'{"item": 1}\n{"item": ', "row 1 is not JSON"),
        (b'{"itme": 1}', "did you mean"),
        (b'{"item": 1, "qty": 1, "item": 2}', "`item` is in one object twice"),
        (b"[" * 100_000, "nested|not JSON"),
        (b'{"item": ' + b"9" * 5_000 + b"}", "too long"),
        (b'{"f": 1e99999999999999999999}', "too long|not a finite"),
        (b'{"item": 1, "qty": 1, "price": 1, "f": 1e999}', "not a finite"),
    ],
)
def test_bodies_that_are_no_rows(http: httpx.Client, body: bytes, said: str) -> None:
    answer = http.post("/streams/Sales", content=body)
    assert answer.status_code == 422
    assert any(one in answer.json()["error"] for one in said.split("|"))


def test_half_a_character_is_refused_and_shown(http: httpx.Client, item: int) -> None:
    answer = http.post("/streams/Users", content=f'{{"id": {item}, "name": "\\ud800"}}')
    assert answer.status_code == 422
    assert b'"value":"\\ud800"' in answer.content


def test_rules_of_the_broker_come_back_with_values(http: httpx.Client, item: int) -> None:
    assert http.post("/streams/Users", json={"id": item, "name": "ann"}).status_code == 200
    again = http.post("/streams/Users", json=[{"id": item + 1000, "name": "x"}, {"id": item, "name": "bob"}])
    assert again.status_code == 422
    (problem,) = again.json()["problems"]
    assert (problem["row"], problem["column"], problem["value"]) == (1, "id", item)


def test_what_is_not_there(http: httpx.Client) -> None:
    assert http.get("/views/Nothing").status_code == 404
    assert http.get("/views/Nothing/changes").status_code == 404
    assert http.post("/streams/Sold", json={}).status_code == 404
    assert http.get("/views/Sold", params={"itme": "1"}).status_code == 400
    assert http.get("/views/Sold", params={"item": "one"}).status_code == 400
    assert "twice" in http.get("/views/Sold", params=[("item", "1"), ("item", "2")]).json()["error"]
    assert http.get("/views/Sold/changes", params={"emit": "all"}).status_code == 400
    assert "snapshot off" in http.get("/views/late/changes").json()["error"]
    assert http.get("/streams/Sales").status_code == 405


def test_too_much_is_refused(http: httpx.Client) -> None:
    assert http.post("/streams/Sales", content=b" " * (8 * 1024 * 1024 + 1)).status_code == 413
    many = "\n".join('{"item": 0, "qty": 0, "price": 0}' for _ in range(65_537))
    assert http.post("/streams/Sales", content=many).status_code == 413


def test_snapshots_that_are_too_large(brokers: LocalBrokers, item: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "SNAPSHOT_ROWS_MAX", 3)
    monkeypatch.setattr(app, "FILTERED_ROWS_MAX", 10_000)
    gateway = start_gateway(brokers.address, "127.0.0.1", 0)
    try:
        with httpx.Client(base_url=gateway.url, timeout=PATIENCE_S) as http:
            assert http.post("/streams/Sales", json=[sale(item)] * 3).status_code == 200
            assert len(rows(http, "Sales", item)) == 3
            assert http.post("/streams/Sales", json=sale(item)).status_code == 200
            for path, said in (("Sales", "filter it"), (f"Sales?item={item}", "have these values")):
                answer = http.get(f"/views/{path}")
                assert answer.status_code == 413
                assert said in answer.json()["error"]
                assert "/views/Sales/changes" in answer.json()["error"]
            monkeypatch.setattr(app, "FILTERED_ROWS_MAX", 3)
            assert http.get("/views/Sales?qty=99").status_code == 413
    finally:
        gateway.close()


@pytest.mark.parametrize("key", ["till/{}", "some-key-{}"])
def test_the_same_request_twice_is_one_publish(http: httpx.Client, item: int, key: str) -> None:
    headers = {"Idempotency-Key": key.format(item)}
    first = http.post("/streams/Sales", json=sale(item), headers=headers)
    second = http.post("/streams/Sales", json=sale(item), headers=headers)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert rows(http, "Sold", item) == [{"item": item, "total": 1}]
    same = json.dumps(dict(reversed(sale(item).items())), indent=1)
    assert http.post("/streams/Sales", content=same, headers=headers).json() == first.json(), "written differently"
    for other in (sale(item, 2), [sale(item), sale(item)]):
        assert http.post("/streams/Sales", json=other, headers=headers).status_code == 409
    refused = http.post("/streams/Sales", json=sale(item, 500), headers={"Idempotency-Key": key.format(f"{item}9")})
    assert refused.status_code == 422, "and the key can be used again"
    repaired = http.post("/streams/Sales", json=sale(item, 5), headers={"Idempotency-Key": key.format(f"{item}9")})
    assert repaired.status_code == 200


def test_a_numbered_key_holds_at_another_gateway(brokers: LocalBrokers, http: httpx.Client, item: int) -> None:
    headers = {"Idempotency-Key": f"num/{item}"}
    first = http.post("/streams/Sales", json=sale(item), headers=headers)
    gateway = start_gateway(brokers.address, "127.0.0.1", 0)
    try:
        with httpx.Client(base_url=gateway.url, timeout=PATIENCE_S) as other:
            two = other.post("/streams/Sales", json=[sale(item), sale(item)], headers=headers)
            assert two.status_code == 409
            assert other.post("/streams/Sales", json=sale(item), headers=headers).json() == first.json()
    finally:
        gateway.close()
    assert rows(http, "Sold", item) == [{"item": item, "total": 1}]


@pytest.mark.parametrize("key", ["till/{}", "some-key-{}"])
def test_repeated_after_504_it_is_still_one_publish(
    brokers: LocalBrokers, item: int, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "CONNECT_SECONDS", 1.0)
    gateway = start_gateway(brokers.address, "127.0.0.1", 0)
    try:
        with httpx.Client(base_url=gateway.url, timeout=PATIENCE_S) as http:
            eventually(lambda: http.get("/views").status_code == 200, "the connection")
            headers = {"Idempotency-Key": key.format(item)}
            brokers.pause("b1")
            try:
                uncertain = http.post("/streams/Sales", json=sale(item), headers=headers)
            finally:
                brokers.resume("b1")
            assert uncertain.status_code == 504
            eventually(
                lambda: http.post("/streams/Sales", json=sale(item), headers=headers).status_code == 200, "the repeat"
            )
            assert http.post("/streams/Sales", json=sale(item, 2), headers=headers).status_code == 409
    finally:
        gateway.close()
    with smile.connect(brokers.address, timeout=PATIENCE_S) as system:
        assert [row["total"] for row in system.rows("Sold") if row["item"] == item] == [1]


def test_server_sent_events_and_resumption(http: httpx.Client, item: int) -> None:
    http.post("/streams/Sales", json=sale(item, 3))
    with told(http, "/views/Sold/changes") as events:
        name, last_id, data = next(events)
        assert (name, data["first"], data["more"]) == ("snapshot", True, False)
        assert {"item": item, "total": 3} in [change["row"] for change in data["changes"]]
        http.post("/streams/Sales", json=sale(item, 4))
        name, last_id, data = next(events)
        (change,) = data["changes"]
        assert (name, change["kind"], change["key"], change["row"]["total"]) == ("changes", "changed", [item], 7)
        assert change["final"] is False
        assert int(change["as_of"]) > 0
    http.post("/streams/Sales", json=sale(item, 1))
    http.post("/streams/Sales", json=sale(item, 1))
    with told(http, "/views/Sold/changes", last_id) as events:
        found = [next(events), next(events)]
        assert [(name, data["changes"][0]["row"]["total"]) for name, _, data in found] == [
            ("changes", 8),
            ("changes", 9),
        ]
    with told(http, "/views/Sold/changes", "elsewhere-7") as events:
        assert next(events)[0] == "snapshot"


def test_bounds_of_a_declared_subscription(http: httpx.Client, item: int) -> None:
    with told(http, "/views/limits/changes") as events:
        next(events)
        http.post("/streams/Sales", json=sale(item, 3))
        while True:
            _, _, data = next(events)
            (change,) = [one for one in data["changes"] if one["key"] == [item]]
            if change["bounds"]["total"] == [3, 3]:
                return


def test_websockets_and_resumption(url: str, http: httpx.Client, item: int) -> None:
    address = f"{url.replace('http', 'ws')}/views/Sold/ws"
    with websocket(address) as socket:
        first = json.loads(socket.recv(10))
        assert (first["kind"], first["first"]) == ("snapshot", True)
        http.post("/streams/Sales", json=sale(item, 3))
        second = json.loads(socket.recv(10))
        assert [change["row"] for change in second["changes"]] == [{"item": item, "total": 3}]
        socket.send("readers have nothing to say, and may say it")
    http.post("/streams/Sales", json=sale(item, 1))
    with websocket(f"{address}?resume={second['id']}") as socket:
        third = json.loads(socket.recv(10))
        assert (third["kind"], third["changes"][0]["row"]["total"]) == ("changes", 4)
    with pytest.raises(InvalidStatus, match="404"), websocket(f"{url.replace('http', 'ws')}/views/Nothing/ws"):
        pass


def test_a_reader_that_stalls_harms_nobody_and_reads_on(
    brokers: LocalBrokers, item: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not read while 20 MB are told, more than sockets and ring can hold; then it gets the latest state."""
    monkeypatch.setattr(feed, "RING_ROWS_MAX", 20)
    gateway = start_gateway(brokers.address, "127.0.0.1", 0)
    try:
        with (
            httpx.Client(base_url=gateway.url, timeout=PATIENCE_S) as http,
            told(http, "/views/Last/changes") as stalled,
            told(http, "/views/Last/changes") as reading,
        ):
            next(stalled)
            next(reading)
            for number in range(100):
                body = {"k": item, "at": f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z", "body": "x" * 200_000}
                assert http.post("/streams/Notes", json=body).status_code == 200
                name, _, data = next(reading)
                assert name == "changes", "whoever reads is told everything"
            end = {"k": item, "at": "2026-01-02T00:00:00Z", "body": "the end"}
            assert http.post("/streams/Notes", json=end).status_code == 200
            names = []
            while not data["changes"] or data["changes"][-1]["row"]["body"] != "the end":
                name, _, data = next(stalled)
                names.append(name)
            assert "snapshot" in names
            assert len(names) < 100
    finally:
        gateway.close()


def test_a_view_that_stops_is_an_event_and_an_error(http: httpx.Client) -> None:
    with told(http, "/views/Ratio/changes") as events:
        next(events)
        assert http.post("/streams/Users", json={"id": 0, "name": "nobody"}).status_code == 200
        _, _, data = next(event for event in events if event[0] == "failed")
        assert "division-by-zero" in data["reason"]
    answer = http.get("/views/Ratio")
    assert answer.status_code == 500
    assert "division-by-zero" in answer.json()["error"]


def test_descriptions_metrics_health_and_the_page(http: httpx.Client) -> None:
    described = http.get("/views").json()
    assert described["program"] == "shop.mpl"
    kinds = {one["name"]: one["kind"] for one in described["views"]}
    assert kinds == dict.fromkeys(("Last", "Sold", "Paid", "Secret", "Ratio"), "view") | {
        "Sales": "stream",
        "Notes": "stream",
        "Users": "stream",
    }
    sold = next(one for one in described["views"] if one["name"] == "Sold")
    assert [(one["name"], one["key"]) for one in sold["columns"]] == [("item", True), ("total", False)]
    assert {"name": "limits", "view": "Sold", "emit": "bounds"} in described["subscriptions"]
    assert http.get("/healthz").json() == {"status": "ok", "brokers": 1}
    assert http.get("/views/Sold").status_code == 200  # so that its broker has told us something
    text = http.get("/metrics").text
    for name in ("smile_horizon_seconds", "smile_gaps", "smile_rows", "smile_component_running"):
        assert f'{name}{{broker="b1",component="Sold"}}' in text
    samples = {family.name: family.samples for family in text_string_to_metric_families(text)}
    assert max(sample.value for sample in samples["smile_curiosity"]) > 0
    work = {sample.labels["what"]: sample.value for sample in samples["smile_work"]}
    assert work["log commit"] > 0
    assert work["loop"] > 0
    (sent,) = [
        sample.value
        for sample in samples["smile_edge_bytes"]
        if sample.labels == {"broker": "b1", "edge": "guests:Sold", "direction": "out"}
    ]
    assert sent > 0
    assert "smile_edge_drops" in samples
    page = http.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for file in ("page/page.js", "page/page.css"):
        assert file in page.text
        assert http.get(f"/{file}").status_code == 200
    assert http.get("/page/app.py").status_code == 404


def test_pages_of_other_sites_may_not_use_it(http: httpx.Client, url: str, item: int) -> None:
    evil = {"Origin": "http://evil.example"}
    assert http.post("/streams/Sales", json=sale(item), headers=evil).status_code == 403
    assert http.get("/views/Sold", headers={"Host": "evil.example"}).status_code == 400
    for nonsense in ("http://[", "null", ""):
        assert http.get("/views/Sold", headers={"Origin": nonsense}).status_code == 403
    with (
        pytest.raises(InvalidStatus, match="403"),
        websocket(f"{url.replace('http', 'ws')}/views/Sold/ws", origin=Origin("http://evil.example")),
    ):
        pass
    assert http.post("/streams/Sales", json=sale(item), headers={"Origin": url}).status_code == 200
    assert rows(http, "Sold", item) == [{"item": item, "total": 1}]


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(
        """
[[token]]
name = "reader"
token = "reader-0123456789"
subscribe = ["Sales"]

[[token]]
name = "till"
token = "till-0123456789abc"
publish = ["Sal*"]
""",
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path


@pytest.fixture
def guarded(brokers: LocalBrokers, tokens: Path) -> Iterator[Gateway]:
    gateway = start_gateway(brokers.address, "127.0.0.1", 0, tokens=tokens)
    yield gateway
    gateway.close()


def test_tokens_say_who_may_what(guarded: Gateway, item: int) -> None:
    reader, till = ({"Authorization": f"Bearer {token}"} for token in ("reader-0123456789", "till-0123456789abc"))
    with httpx.Client(base_url=guarded.url, timeout=PATIENCE_S) as http:
        anonymous = http.get("/views")
        assert (anonymous.status_code, anonymous.headers["www-authenticate"]) == (401, "Bearer")
        assert http.get("/views", headers={"Authorization": "Bearer wrong-0123456789"}).status_code == 401
        assert http.get("/metrics").status_code == 401
        assert http.get("/healthz").status_code == 200
        assert http.post("/streams/Sales", json=sale(item), headers=till).status_code == 200
        assert http.post("/streams/Users", json={"id": 1, "name": ""}, headers=till).status_code == 403
        assert http.post("/streams/Sales", json=sale(item), headers=reader).status_code == 403
        assert http.get("/views/Sold", headers=till).status_code == 403
        assert http.get("/views/Sold", params={"item": str(item)}, headers=reader).json()["rows"] == [
            {"item": item, "total": 1}
        ], "who may read all streams below a view may read the view"
        assert http.get("/views/Secret", headers=reader).status_code == 403
        assert http.get("/views/Secret/changes", headers=reader).status_code == 403
        assert http.get("/views/Sold", params={"token": "reader-0123456789"}).status_code == 200
        shown = {one["name"] for one in http.get("/views", headers=reader).json()["views"]}
        assert shown == {"Sales", "Sold", "Paid"}
        assert [one["name"] for one in http.get("/views", headers=till).json()["views"]] == ["Sales"]


def test_tokens_are_read_again(guarded: Gateway, tokens: Path) -> None:
    reader = {"Authorization": "Bearer reader-0123456789"}
    text = tokens.read_text(encoding="utf-8")
    with httpx.Client(base_url=guarded.url, timeout=PATIENCE_S, headers=reader) as http:
        with told(http, "/views/Sold/changes") as events:
            next(events)
            tokens.write_text("nonsense", encoding="utf-8")
            tokens.write_text(text.replace("reader-0123456789", "newone-0123456789"), encoding="utf-8")
            list(events)  # ends
        assert http.get("/views/Sold").status_code == 401
        tokens.write_text("nonsense", encoding="utf-8")
        tokens.write_text(text, encoding="utf-8")
        eventually(lambda: http.get("/views/Sold").status_code == 200)


def test_a_token_file_that_breaks_leaves_the_tokens_before_in_force(tokens: Path) -> None:
    users, text = HttpUsers(tokens), tokens.read_text(encoding="utf-8")
    for change in (lambda: tokens.write_text("nonsense"), tokens.unlink):
        change()
        assert users.reload_if_changed() is False
        assert users.user("Bearer reader-0123456789").name == "reader"
    tokens.touch(0o600)
    tokens.write_text(text.replace("reader", "other"), encoding="utf-8")
    assert users.reload_if_changed() is True
    assert users.user("Bearer other-0123456789").name == "other"
    tokens.write_text(f"a = {'1' * 5_000}", encoding="utf-8")  # more digits than Python takes
    assert users.reload_if_changed() is False


def test_a_token_file_is_read_again_when_its_mode_is_mended(tokens: Path, tmp_path: Path) -> None:
    users, text = HttpUsers(tokens), tokens.read_text(encoding="utf-8")
    newer = tmp_path / "newer.toml"
    newer.write_text(text.replace("reader", "other"), encoding="utf-8")
    newer.chmod(0o644)
    newer.replace(tokens)
    assert users.reload_if_changed() is False
    tokens.chmod(0o600)
    assert users.reload_if_changed() is True
    with pytest.raises(NoToken):
        users.user("Bearer reader-0123456789")


def test_token_files_and_addresses_that_are_refused(tokens: Path, tmp_path: Path) -> None:
    with pytest.raises(GatewayFailed, match="tokens"):
        start_gateway("tcp://127.0.0.1:9", "0.0.0.0", 0)
    with pytest.raises(GatewayFailed, match="everybody on this machine would have their rights"):
        start_gateway("tcp://127.0.0.1:9", "127.0.0.1", 0, keys=tmp_path / "hub.secret")
    tokens.chmod(0o644)
    with pytest.raises(BadTokens, match="chmod"):
        HttpUsers(tokens)
    for text in ("", "x = 1", "[[token]]", "[[token]]\nname = 'a'\ntoken = 'short'", "[[token]]\nnam = 'a'", "=",
                 "[[token]]\nname = 'a'\ntoken = '0123456789abcdef'\npublish = ['a b']"):  # fmt: skip
        tokens.chmod(0o600)
        tokens.write_text(text, encoding="utf-8")
        with pytest.raises(BadTokens):
            HttpUsers(tokens)
    with pytest.raises(BadTokens, match="cannot read"):
        HttpUsers(tmp_path / "nowhere")


def test_the_gateway_survives_its_broker(brokers: LocalBrokers, item: int) -> None:
    """One that runs elsewhere: events go on after a kill, and the reader's connection never broke."""
    gateway = start_gateway(brokers.address, "127.0.0.1", 0)
    try:
        with (
            httpx.Client(base_url=gateway.url, timeout=PATIENCE_S) as http,
            told(http, "/views/Sold/changes") as events,
        ):
            next(events)
            assert http.post("/streams/Sales", json=sale(item, 1)).status_code == 200
            next(events)
            starts = brokers.starts(brokers.names[0])
            brokers.kill(brokers.names[0])
            while brokers.starts(brokers.names[0]) == starts:
                sleep(0.01)
            brokers.wait_serving(brokers.names[0])
            answered = threading.Event()
            while not answered.is_set():
                if http.post("/streams/Sales", json=sale(item, 2)).status_code == 200:
                    answered.set()
            totals = [change["row"]["total"] for change in next(events)[2]["changes"] if change["key"] == [item]]
            assert totals == [3]
            assert rows(http, "Sold", item) == [{"item": item, "total": 3}]
    finally:
        gateway.close()
    with smile.connect(brokers.address) as system:
        assert {"item": item, "total": 3} in system.rows("Sold")


def test_one_silent_broker_keeps_nobody_from_the_others(
    brokers: LocalBrokers, item: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks all brokers waits here for ever; so does whoever begins to read `Paid`."""
    answers = threading.Event()
    monkeypatch.setattr(smile.RemoteSystem, "status", lambda _: answers.wait() and {})
    subscribe = smile.RemoteSystem.subscribe

    def stalled(system: smile.RemoteSystem, name: str, *arguments: Any, **named: Any) -> Any:
        if name == "Paid":
            answers.wait()
        return subscribe(system, name, *arguments, **named)

    monkeypatch.setattr(smile.RemoteSystem, "subscribe", stalled)
    monkeypatch.setattr(site, "LOOK_SECONDS", 0.01)
    gateway = start_gateway(brokers.address, "127.0.0.1", 0)
    try:
        with httpx.Client(base_url=gateway.url, timeout=PATIENCE_S) as http, ThreadPoolExecutor() as pool:
            assert http.get("/healthz").status_code == 200
            waiting = [pool.submit(http.get, "/metrics") for _ in range(8)]
            reading = pool.submit(first_event, http, "/views/Paid/changes")
            try:
                for _ in range(10):
                    assert http.get("/healthz").json() == {"status": "ok", "brokers": 1}
                    assert http.post("/streams/Sales", json=sale(item)).status_code == 200
                    assert first_event(http, "/views/Sold/changes") == "snapshot"
                assert rows(http, "Sold", item) == [{"item": item, "total": 10}]
                assert not reading.done()
                assert not any(one.done() for one in waiting)
            finally:
                answers.set()
            assert {one.result(PATIENCE_S).status_code for one in waiting} == {200}
            assert reading.result(PATIENCE_S) == "snapshot"
    finally:
        answers.set()
        gateway.close()


def test_after_a_new_deployment_the_gateway_goes_on_with_it(
    brokers: LocalBrokers, http: httpx.Client, item: int, tmp_path: Path
) -> None:
    http.post("/streams/Sales", json=sale(item, 4))
    path = tmp_path / "shop.mpl"
    path.write_text(f"{PROGRAM}view Doubled = from Sold |> extend twice := total * 2;", encoding="utf-8")
    program = compile_file(path)
    placement = {component.name: "b1" for component in hosted_components(program.plan)}
    made = make_deployment(program, brokers.addresses, placement, previous=brokers.deployment)
    with told(http, "/views/Sold/changes") as events:
        next(events)
        with smile.connect(brokers.address) as system:
            system.connection.deploy(made.to_wire())
        eventually(lambda: http.get("/views/Doubled").status_code == 200, "the new view")
        assert rows(http, "Doubled", item) == [{"item": item, "total": 4, "twice": 8}]
        assert [name for name, _, _ in events if name == "failed"] == [], "readers come back by themselves"
