"""Which components of a changed program have no past yet, and how each of them gets it."""

from __future__ import annotations

from pathlib import Path

import pytest

import smile
from smile.bulk.sources import Sources
from smile.deploy.backfill import Choice, History, choose, histories, new_components, streams_of
from smile.deploy.bundles import make_deployment
from smile.deploy.deployment import Deployment
from smile.program import Program

BEFORE = """
stream Buys (item int, qty int[0..1000]);
stream Items (item int, name text) unique item;
view Sold = from Buys |> aggregate total := sum(qty) group by item;
"""
AFTER = """
view Leaders = from Sold |> top 2 by total desc;
view Sizes = from Buys |> aggregate number := count() group by qty;
view Named = from Items |> join Buys using item;
"""
ADDRESS = {"a": "tcp://127.0.0.1:7070"}


def deployed(text: str, previous: Deployment | None = None) -> tuple[Deployment, Program]:
    program = smile.compile(text)
    placement = dict.fromkeys(program.plan.components, "a")
    return make_deployment(program, ADDRESS, placement, previous=previous), program


def test_only_what_reads_events_and_was_not_there_has_no_past() -> None:
    before, old = deployed(BEFORE)
    after, new = deployed(BEFORE + AFTER, before)
    found = new_components(before, old, after, new)
    assert found == ["Sizes", "Named"]  # Leaders asks Sold, which goes on
    assert streams_of(after, new, found) == {"Sizes": ("Buys",), "Named": ("Items", "Buys")}
    assert new_components(after, new, after, new) == []
    assert "Sold" in new_components(before, None, after, new)  # of another version: nobody knows what it was


READ = {"V": ("A", "B")}
FULL = History("A", is_trimmed=False, events=100)
SMALL = History("B", is_trimmed=False, events=20)
TRIMMED = History("B", is_trimmed=True, events=20)


@pytest.mark.parametrize(
    ("b", "not_in_bulk", "limit", "how", "reason"),
    [
        (SMALL, {}, 120, "replay", "the logs have all 120 events"),
        (SMALL, {}, 119, "bulk", "120 events are more than 119 (`[spark] backfill_events`)"),
        (SMALL, {"V": "calls Python"}, 119, "replay", "but a bulk computation cannot be: calls Python"),
        (TRIMMED, {}, 1_000, "bulk", "the log of B no longer has everything"),
        (TRIMMED, {"V": "calls Python"}, 1_000, "bulk", "they are replayed here: calls Python"),
        (History("B", True, None, "no archive"), {}, 1_000, "impossible", "cannot be: no archive"),
        (History("B", False, None, "not here"), {}, 1_000, "replay", "the logs have everything"),
        (History("B", False, None, "not here"), {}, 10, "replay", "cannot be: not here"),
    ],
)
def test_logs_are_replayed_as_long_as_they_have_everything_and_it_is_not_long(
    b: History, not_in_bulk: dict[str, str], limit: int, how: str, reason: str
) -> None:
    (choice,) = choose(READ, {"A": FULL, "B": b}, not_in_bulk, limit)
    assert isinstance(choice, Choice)
    assert (choice.component, choice.how) == ("V", how)
    assert choice.reason.endswith(reason)


def test_histories_are_read_where_they_are(tmp_path: Path) -> None:
    with smile.run(smile.compile(BEFORE), data=tmp_path) as system:
        system.publish_many("Buys", {"item": [1, 2, 3], "qty": [1, 1, 1]})
    status = {"a": {"components": {"Buys": {"trimmed_tick": -1, "horizon_tick": 2**62}}}}
    found = histories(["Buys"], status, Sources(None, (tmp_path,)))
    assert found["Buys"] == History("Buys", is_trimmed=False, events=3)
    elsewhere = histories(["Buys"], status, None)["Buys"]
    assert (elsewhere.is_trimmed, elsewhere.events) == (False, None)
    assert "data folders" in elsewhere.missing
    trimmed = {"a": {"components": {"Buys": {"trimmed_tick": 17, "horizon_tick": 99}}}}
    assert histories(["Buys"], trimmed, None)["Buys"].is_trimmed
    assert "no events of stream `Other`" in histories(["Other"], status, Sources(None, (tmp_path,)))["Other"].missing
