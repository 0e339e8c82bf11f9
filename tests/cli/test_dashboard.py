"""Goal: status and dashboard show what brokers say, what they do not say is told, and a bad look is no end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual.widgets import DataTable, Static

from runtime.broker.hosted import WAITING
from smile.cli.dashboard import Dashboard
from smile.cli.standing import Standing, standing
from smile.cli.status import duration
from tests.measures import PATIENCE_S

ADDRESSES = {"west": "tcp://127.0.0.1:1?key=smile1-x", "hub": "tcp://127.0.0.1:2"}
PLACEMENT = {"S": "west", "V": "hub", "W": "hub"}


def component(**said: Any) -> dict[str, Any]:
    return {
        "kind": "kernel",
        "state": "running",
        "failure": None,
        "reason": "",
        "lost_ticks": False,
        "counters": {"sent.Knowledge": 10, "sent.Heartbeat": 5, "attached": 7},
        "curiosity": {"sent": 2},
        "horizon_us": 9_000_000,
        "gaps": [1, 0, 2],
        "rows": 12,
        **said,
    }


def broker(components: dict[str, Any], commits: int = 100, **said: Any) -> dict[str, Any]:
    return {
        "deployment": "sha256:0123456789abcdef",
        "uplinks": {},
        "began_us": 1_000_000,
        "now_us": 11_000_000,
        "components": components,
        "edges": {"e": {"bytes_out": 5_000, "dropped": 3}},
        "peers": {"count": 4},
        "log": {"commits": {"count": commits}},
        "counters": {"drops.full": 1, "other": 50},
        **said,
    }


WELL = {"west": broker({"S": component(kind="stream")}), "hub": broker({"V": component(), "W": component()})}


def look(status: dict[str, Any], now_s: float = 0.0, earlier: Standing | None = None) -> Standing:
    return standing(status, ADDRESSES, PLACEMENT, now_s, earlier)


def test_what_brokers_say_becomes_rows() -> None:
    found = look(WELL)
    west, view = found.brokers["west"], found.components["V"]
    assert found.is_well
    assert (west.address, west.up_s, west.components, west.peers, west.drops) == ("tcp://127.0.0.1:1", 10.0, 1, 4, 4)
    assert (view.behind_s, view.gaps, view.rows, view.messages, view.curiosity) == (2.0, 3, 12, 15, 2)
    assert west.commits_per_s is None


def test_two_looks_give_rates_and_a_restart_does_not_make_them_negative() -> None:
    first = look(WELL)
    later = {**WELL, "west": broker({"S": component(counters={"sent.Events": 35})}, commits=140)}
    second = look(later, 2.0, first)
    assert second.brokers["west"].commits_per_s == 20.0
    assert second.components["S"].messages_per_s == 10.0
    restarted = look({**WELL, "west": broker({"S": component()}, commits=8)}, 4.0, second)
    assert restarted.brokers["west"].commits_per_s == 4.0


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"failure": {"code": "overflow", "reason": "too large"}}, "overflow: too large"),
        ({"state": "stopped", "reason": "log failed"}, "log failed"),
        (
            {"state": WAITING, "reason": "database or disk is full"},
            "waiting to start again: database or disk is full",
        ),
        ({"lost_ticks": True}, "have left the log"),
    ],
)
def test_problems_are_named(said: dict[str, Any], problem: str) -> None:
    found = look({**WELL, "hub": broker({"V": component(**said), "W": component()})})
    assert not found.is_well
    assert problem in found.components["V"].problem


def test_a_broker_that_does_not_answer_hides_nothing() -> None:
    found = look({"west": WELL["west"], "hub": {"error": "no answer within 2 s"}})
    assert not found.is_well
    assert found.brokers["hub"].error == "no answer within 2 s"
    assert found.components["V"].problem == "its broker does not answer"
    assert look({**WELL, "hub": broker({"V": component()})}).components["W"].problem == "its broker does not have it"


def test_brokers_with_different_deployments_are_not_well() -> None:
    west = broker({"S": component(kind="stream")}, deployment="sha256:fedcba9876543210")
    found = look({**WELL, "west": west})
    assert not found.is_well
    assert [one.problem.partition(",")[0] for one in found.brokers.values()] == [
        "runs sha256:fedcba987654",
        "runs sha256:0123456789ab",
    ]
    assert "smile deploy" in found.brokers["hub"].problem
    told: list[str] = []

    async def act(_: Any, app: Dashboard) -> None:
        told.append(str(app.query_one("#told", Static).render()))

    piloted(lambda: found, act)
    assert "west: runs" in told[0]


def test_a_broker_that_does_not_run_what_it_has_says_why() -> None:
    found = look({**WELL, "west": broker({}, deployment="", why_none="no longer allowed")})
    assert not found.is_well
    assert found.brokers["west"].problem == "no longer allowed"


@pytest.mark.parametrize(("for_us", "is_well"), [(1_000_000, True), (60_000_000, False)])
def test_a_component_that_another_broker_refuses_to_feed_is_not_well_if_that_lasts(for_us: int, is_well: bool) -> None:
    refused = {"S>V": {"receiver": "V", "reason": "other-deployment: `S` is another one here", "for_us": for_us}}
    hub = broker({"V": component(), "W": component()}, uplinks={"west": {"refused": refused}})
    found = look({**WELL, "hub": hub})
    assert found.is_well is is_well
    assert ("broker west refuses what it reads: other-deployment" in found.components["V"].problem) is not is_well
    assert not found.components["W"].problem


def test_durations() -> None:
    assert [duration(s) for s in (None, 0.0123, 3.21, 600, 9000)] == ["-", "12 ms", "3.2 s", "10 min", "2 h"]


def cells(app: Dashboard, table: str) -> list[list[str]]:
    found = app.query_one(f"#{table}", DataTable)
    return [[str(cell) for cell in found.get_row_at(at)] for at in range(found.row_count)]


async def until(pilot: Any, condition: Callable[[], object]) -> None:
    """Looks are taken in a thread of their own."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pilot.pause(0.02)


def piloted(looks: Callable[[], Standing], act: Callable[[Any, Dashboard], Any]) -> None:
    async def go() -> None:
        app = Dashboard("test", looks, every_s=0.05)
        async with app.run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: app._shown is not None)
            await act(pilot, app)

    asyncio.run(go())


def test_the_dashboard_shows_a_look() -> None:
    async def act(pilot: Any, app: Dashboard) -> None:
        assert [row[:4] for row in cells(app, "brokers")] == [
            ["west", "tcp://127.0.0.1:1", "serves", "10.0 s"],
            ["hub", "tcp://127.0.0.1:2", "serves", "10.0 s"],
        ]
        assert [row[:7] for row in cells(app, "components")][1] == ["V", "hub", "kernel", "running", "2.0 s", "3", "12"]
        assert str(app.query_one("#told", Static).render()) == "all is well"

    piloted(lambda: look(WELL), act)


def test_keys_sort_pause_and_quit() -> None:
    looks: list[int] = []

    def seen() -> Standing:
        looks.append(1)
        return look({**WELL, "hub": broker({"V": component(), "W": component(state="stopped", reason="why")})})

    async def act(pilot: Any, app: Dashboard) -> None:
        assert [row[0] for row in cells(app, "components")] == ["S", "V", "W"]
        await pilot.press("s")
        assert cells(app, "components")[0][0] == "W"
        assert "W: why" in str(app.query_one("#told", Static).render())
        await pilot.press("p")
        await pilot.pause(0.1)
        count = len(looks)
        await pilot.pause(0.3)
        assert len(looks) == count
        await pilot.press("p")
        await until(pilot, lambda: len(looks) > count)
        await pilot.press("q")

    piloted(seen, act)


def test_a_look_that_fails_is_told_and_the_next_one_counts() -> None:
    looks: list[int] = []

    def seen() -> Standing:
        looks.append(1)
        if len(looks) < 3:
            raise OSError("nobody answers")
        return look(WELL)

    async def act(pilot: Any, app: Dashboard) -> None:
        await until(pilot, lambda: len(looks) > 4)
        assert len(cells(app, "brokers")) == 2

    piloted(seen, act)
