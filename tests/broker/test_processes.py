"""Brokers as real processes: what survives their death, and what a subscriber sees of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import smile
from smile.remote.system import RemoteSystem
from tests.broker.processes import WAIT_S, Zygote, running, wait_for

PROGRAM = """
stream Buys (item int, qty int[0..1000]);
stream Items (item int, name text) unique item;
view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;
view Shown = from Items |> left join Sold using item default total := 0, number := 0;
view Large = from Buys |> where qty > 500;
"""

ONE = {"Buys": "a", "Items": "a", "Sold": "a", "Shown": "a", "Large": "a"}
THREE = {"Buys": "a", "Items": "b", "Sold": "b", "Shown": "c", "Large": "a"}


def totals(system: RemoteSystem) -> dict[int, int]:
    return {row["item"]: row["total"] for row in system.rows("Sold")}  # type: ignore[misc]


def test_one_broker_publishes_reads_subscribes_and_goes_on_after_kill_9(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        system.publish("Buys", {"item": 1, "qty": 5})
        assert totals(system) == {1: 5}
        subscription = system.subscribe("Sold", timeout=WAIT_S)
        changes = iter(subscription)
        assert next(changes).row == {"item": 1, "total": 5, "number": 1}
        brokers.kill("a")
        future = system.publish_nowait("Buys", {"item": 1, "qty": 6})
        brokers.start("a")
        future.result(WAIT_S)
        assert next(changes).row == {"item": 1, "total": 11, "number": 2}
        assert totals(system) == {1: 11}


def test_three_brokers_each_killed_while_somebody_publishes_lose_and_repeat_nothing(
    zygote: Zygote, tmp_path: Path
) -> None:
    with running(zygote, tmp_path, PROGRAM, THREE) as brokers, smile.connect(brokers.address) as system:
        system.publish_many("Items", {"item": list(range(20)), "name": [f"n{i}" for i in range(20)]})
        seen: list[dict[str, object]] = []
        subscription = system.subscribe("Shown", lambda change: seen.append(change.row))
        done = threading.Event()
        sent = 0

        def publish() -> None:
            nonlocal sent
            while not done.is_set():
                system.publish_many("Buys", {"item": [i % 20 for i in range(50)], "qty": [1] * 50})
                sent += 50

        publisher = threading.Thread(target=publish)
        publisher.start()

        def wait_for_more() -> None:
            before = sent
            wait_for(lambda: sent > before + 500, "publishes")

        for name in ("a", "b", "c"):
            wait_for_more()
            brokers.restart(name)
        wait_for_more()
        done.set()
        publisher.join()
        assert sum(totals(system).values()) == sent
        rows = system.rows("Shown")
        assert sum(row["total"] for row in rows) == sent  # type: ignore[misc]
        wait_for(
            lambda: {row["item"]: row["total"] for row in seen} == {r["item"]: r["total"] for r in rows}, "changes"
        )
        for item in range(20):  # totals only rise, through all restarts
            shown = [row["total"] for row in seen if row["item"] == item]
            assert shown == sorted(shown)  # type: ignore[type-var]
        subscription.close()


def test_a_joiner_misses_nothing_while_others_publish(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, THREE) as brokers, smile.connect(brokers.address) as system:
        futures = [system.publish_nowait("Buys", {"item": 1, "qty": 1}) for _ in range(300)]
        numbers: list[int] = []
        late = smile.connect(brokers.addresses["b"])
        late.subscribe("Sold", lambda change: numbers.append(change.row["number"]))  # type: ignore[arg-type]
        futures += [system.publish_nowait("Buys", {"item": 1, "qty": 1}) for _ in range(300)]
        for future in futures:
            future.result(WAIT_S)
        wait_for(lambda: numbers and numbers[-1] == 600, "the last change")
        assert numbers == list(range(numbers[0], 601))  # every change after the first
        late.close()


def test_streams_and_filtered_streams_on_another_broker_can_be_subscribed_to(zygote: Zygote, tmp_path: Path) -> None:
    split = {**THREE, "Large": "b"}
    with running(zygote, tmp_path, PROGRAM, split) as brokers, smile.connect(brokers.address) as system:
        system.publish_many("Buys", {"item": [1, 2, 3], "qty": [1, 600, 700]})
        seen: list[object] = []
        system.subscribe("Large", lambda change: seen.append(change.row["qty"]))
        wait_for(lambda: len(seen) == 2, "what was there before")
        system.publish("Buys", {"item": 1, "qty": 800})
        wait_for(lambda: len(seen) == 3, "what came later")
        assert sorted(seen) == [600, 700, 800]  # type: ignore[type-var]
        assert [row["qty"] for row in system.rows("Buys")] == [1, 600, 700, 800]
        edges = brokers.status(system, "a")["edges"]
        quenched = {edge.partition("?")[0] for edge, count in edges.items() if count["quenched"]}
        assert quenched == {"Buys->Large#0"}, "what is not large stays on its broker"


def test_a_checkpoint_is_where_a_restart_begins_and_the_log_is_not_read_again(zygote: Zygote, tmp_path: Path) -> None:
    with (
        running(zygote, tmp_path, PROGRAM, THREE, checkpoint_every_us=200_000) as brokers,
        smile.connect(brokers.address) as system,
    ):
        system.publish_many("Items", {"item": list(range(100)), "name": [f"n{i}" for i in range(100)]})
        for _ in range(20):
            system.publish_many("Buys", {"item": [i % 100 for i in range(1000)], "qty": [1] * 1000})
        assert sum(totals(system).values()) == 20_000

        def is_written() -> bool:
            component = brokers.status(system, "b")["components"]["Sold"]
            return component["checkpoint_us"] is not None and not component["rows_since_checkpoint"]

        wait_for(is_written, "a checkpoint")
        for name in ("b", "c"):
            brokers.restart(name)
        assert sum(totals(system).values()) == 20_000
        said = brokers.status(system, "b")["components"]["Sold"]
        assert said["began_with"] == "a checkpoint"
        assert said["rows_since_checkpoint"] == 0  # no event came again
        assert len(system.rows("Shown")) == 100


def test_a_stop_in_order_writes_a_checkpoint(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        system.publish("Buys", {"item": 1, "qty": 5})
        assert totals(system) == {1: 5}
        brokers.stop("a")
        assert not (tmp_path / "a" / "serving.json").exists()
        brokers.start("a")
        assert totals(system) == {1: 5}
        assert brokers.status(system, "a")["components"]["Sold"]["began_with"] == "a checkpoint"


def test_logs_are_trimmed_below_checkpoints_if_that_is_wanted_except_unique_ones(
    zygote: Zygote, tmp_path: Path
) -> None:
    settings = {"checkpoint_every_us": 200_000, "keep": "checkpoint"}
    with (
        running(zygote, tmp_path, PROGRAM, THREE, **settings) as brokers,
        smile.connect(brokers.address) as system,
    ):
        system.publish_many("Items", {"item": [1, 2], "name": ["one", "two"]})
        system.publish_many("Buys", {"item": [1] * 1000, "qty": [1] * 1000})
        assert totals(system) == {1: 1000}
        wait_for(lambda: brokers.log_rows("a", "Buys") == 0, "trimming")
        assert brokers.log_rows("b", "Items") == 2
        for name in ("a", "b", "c"):
            brokers.restart(name)
        system.publish("Buys", {"item": 2, "qty": 7})
        assert totals(system) == {1: 1000, 2: 7}
        assert {row["item"]: row["total"] for row in system.rows("Shown")} == {1: 1000, 2: 7}
        assert not any(one["lost_ticks"] for one in brokers.status(system, "b")["components"].values())


@pytest.mark.parametrize(("count", "length"), [(40, 2_000_000), (9_000, 9_000)])
def test_views_of_long_texts_can_be_read(zygote: Zygote, tmp_path: Path, count: int, length: int) -> None:
    """80 MB: few rows that fit into no frame together, and rows so many that they travel in parts anyway."""
    text = "stream Docs (id int, body text); view Latest = from Docs |> aggregate n := count() group by id, body;"
    placement = {"Docs": "a", "Latest": "a"}
    bodies = [f"{number:08}".ljust(length, chr(97 + number % 26)) for number in range(count)]
    at_once = 20_000_000 // length
    with running(zygote, tmp_path, text, placement) as brokers, smile.connect(brokers.address) as system:
        for first in range(0, count, at_once):
            some = range(first, min(first + at_once, count))
            system.publish_many("Docs", {"id": list(some), "body": [bodies[number] for number in some]})
        assert sorted(str(row["body"]) for row in system.rows("Latest")) == bodies
