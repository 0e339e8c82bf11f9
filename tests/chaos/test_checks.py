"""The judge of the chaos test, tried on small histories: it must accept what is true and find every planted lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.checks import check_available, check_event, check_sold, replay
from tests.chaos.ledger import LedgerWriter, Publish, read_ledgers
from tests.chaos.records import Entry, RecordWriter, Shown, read_record
from tests.chaos.truth import Truth, compute_truth

# Item 1: ten offered at tick 3; buys 100..103 of 2, 3, 4, 1 at ticks 10, 11, 20, 30, begun at 1.0, 1.0, 2.0, 3.0.
PUBLISHES = [
    Publish("Sellers", [(1, 10)], 0.5, 0.6, [3]),
    Publish("BuyersWest", [(1, 100, 2), (1, 101, 3)], 1.0, 1.1, [10, 11]),
    Publish("BuyersEast", [(1, 102, 4)], 2.0, 2.1, [20]),
    Publish("BuyersWest", [(1, 103, 1)], 3.0, 3.1, [30]),
]
LOGGED = {10: 100, 11: 101, 20: 102, 30: 103}


def truth_of(publishes: list[Publish] = PUBLISHES, logged: dict[int, int] = LOGGED) -> Truth:
    truth, wrong = compute_truth(publishes, logged)
    assert wrong == []
    return truth


def test_views_are_recomputed_as_of_any_tick() -> None:
    truth = truth_of()
    assert truth.sold(11) == {1: (5, 2)}
    assert truth.sold() == {1: (10, 4)}
    assert truth.available(2) == {}
    assert truth.available(3) == {1: 10}
    assert truth.available(20) == {1: 1}
    assert truth.available() == {}


@pytest.mark.parametrize(
    ("logged", "said"),
    [
        ({10: 100, 11: 101, 20: 102}, "lost: buy 103"),
        (LOGGED | {40: 103}, "double: buy 103"),
        (LOGGED | {40: 999}, "invented: buy 999"),
        ({10: 100, 20: 102, 30: 103}, "torn"),
        ({10: 100, 12: 101, 20: 102, 30: 103}, "moved: buy 101"),
    ],
)
def test_what_the_log_must_not_do_is_found(logged: dict[int, int], said: str) -> None:
    assert any(text.startswith(said) for text in compute_truth(PUBLISHES, logged)[1])


def test_what_was_never_acknowledged_may_be_there_or_not() -> None:
    uncertain = [*PUBLISHES[:3], Publish("BuyersWest", [(1, 103, 1)], 3.0)]
    assert truth_of(uncertain, LOGGED).sold() == {1: (10, 4)}
    assert truth_of(uncertain, {10: 100, 11: 101, 20: 102}).sold() == {1: (9, 3)}


def sold(total: int, bought: int, as_of: int, *, visible: bool = True) -> Shown:
    return Shown((1,), {"item_id": 1, "total": total, "bought": bought}, visible, False, as_of)


def judged(*told: tuple[float, Shown]) -> list[str]:
    entries = [Entry("start", 0.0), *(Entry("changes", at, (shown,)) for at, shown in told)]
    return replay(entries, truth_of(), check_sold).wrong


def test_true_totals_pass() -> None:
    assert judged((1.0, sold(3, 1, 5)), (1.5, sold(5, 2, 11)), (2.5, sold(9, 3, 12)), (9.0, sold(10, 4, 40))) == []
    assert judged((2.0, sold(4, 1, 5)), (2.5, sold(7, 2, 5))) == []  # over a gap: buy 102 before 100 and 101


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([(0.9, sold(2, 1, 5))], "at most"),  # before its publish began
        ([(1.5, sold(2, 1, 11))], "at least"),  # says it includes tick 11
        ([(9.0, sold(11, 5, 5))], "at most"),  # something counted twice
        ([(1.5, sold(4, 2, 5))], "shown with"),  # between the limits, but no events have this sum
        ([(1.5, sold(3, 2, 5))], "shown with"),
        ([(2.5, sold(5, 2, 11)), (2.6, sold(3, 1, 5))], "fell"),
        ([(2.5, sold(5, 2, 11, visible=False))], "gone"),
    ],
)
def test_false_totals_are_found(told: list[tuple[float, Shown]], said: str) -> None:
    assert said in judged(*told)[0]


def avail(value: int, as_of: int, **bounds: int | None) -> Shown:
    shown = Shown((1,), {"item_id": 1, "avail": value}, value > 0, False, as_of)
    return replace(shown, low={"avail": bounds["low"]}, high={"avail": bounds["high"]}) if bounds else shown


def judged_rows(*told: tuple[float, Shown], is_cut: bool = False) -> list[str]:
    entries = [Entry("start", 0.0), *(Entry("changes", at, (shown,)) for at, shown in told)]
    return replay(entries, truth_of(), check_available, is_cut=is_cut).wrong


def test_true_rows_pass() -> None:
    assert judged_rows((0.6, avail(10, 3)), (1.2, avail(7, 9)), (2.2, avail(1, 20)), (4.0, avail(0, 30))) == []
    assert judged_rows((2.2, avail(1, 20)), (4.0, replace(avail(1, 30), visible=False))) == []  # forgotten elsewhere
    assert judged_rows((2.5, avail(1, 11, low=1, high=10)), (2.6, avail(1, 20, low=1, high=1))) == []


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([(0.4, avail(10, 3))], "before anybody offered it"),
        ([(4.0, avail(5, 3)), (4.1, avail(8, 3))], "rose"),
        ([(4.0, avail(0, 30)), (4.1, avail(1, 20))], "came back"),
        ([(4.0, replace(avail(0, 30), visible=True))], "shown with 0"),
        ([(2.5, avail(1, 20)), (2.6, replace(avail(1, 20), visible=False))], "at most 9 of 10 were sold"),
        ([(2.5, avail(1, 20)), (4.0, replace(avail(2, 20), visible=False))], "never had"),
        ([(2.5, avail(1, 20)), (4.0, avail(-1, 30))], "never had"),
        ([(1.2, avail(8, 10)), (4.0, replace(avail(1, 30), visible=False))], "never had"),  # nothing is held back
        ([(4.0, avail(0, 30)), (4.1, avail(0, 31))], "told again to be gone"),
        ([(2.5, avail(1, 20)), (2.6, avail(1, 20))], "nothing new"),
        ([(2.5, avail(1, 11, low=0, high=4))], "not in"),
        ([(2.5, avail(1, 11, low=6, high=9))], "not in"),
        ([(2.5, replace(avail(9, 3), key=(2,)))], "before anybody offered it"),
    ],
)
def test_false_rows_are_found(told: list[tuple[float, Shown]], said: str) -> None:
    assert any(said in text for text in judged_rows(*told))


def test_a_cut_is_the_whole_view_of_one_tick() -> None:
    assert judged_rows((1.2, avail(8, 10)), (2.5, avail(1, 25)), (4.0, avail(0, 30)), is_cut=True) == []
    assert "not the view" in judged_rows((2.2, avail(5, 20)), is_cut=True)[-1]
    held_back = (1.2, avail(8, 10)), (4.0, replace(avail(1, 30), visible=False))
    assert judged_rows(*held_back, is_cut=True) == []
    assert "never had" in judged_rows(held_back[0], (4.0, replace(avail(2, 30), visible=False)), is_cut=True)[0]
    assert "not the view" in judged_rows((2.2, avail(8, 9)), is_cut=True)[-1]


def test_events_are_told_once_and_as_published() -> None:
    def event(tick: int, buy_id: int, quantity: int) -> Shown:
        row = {"offer_id": tick, "item_id": 1, "buy_id": buy_id, "qty": quantity}
        return Shown((tick,), row, True, True, tick)

    def judged_events(*told: Shown, at: float = 9.0) -> list[str]:
        return replay([Entry("start", 0.0), Entry("changes", at, told)], truth_of(), check_event).wrong

    assert judged_events(event(10, 100, 2), event(20, 102, 4)) == []
    assert "told twice" in judged_events(event(10, 100, 2), event(10, 100, 2))[0]
    assert "not what was published" in judged_events(event(10, 100, 3))[0]
    assert "not what was published" in judged_events(event(12, 100, 2))[0]
    assert "before it was published" in judged_events(event(20, 102, 4), at=1.5)[0]
    assert "taken back" in judged_events(replace(event(10, 100, 2), visible=False))[0]


def test_a_resumed_record_goes_on_from_its_token() -> None:
    def changes(at: float, *rows: Shown) -> Entry:
        return Entry("changes", at, rows)

    begin = [Entry("start", 0.0), changes(1.5, sold(3, 1, 5)), Entry("token", 1.6, number=1)]
    lost = [changes(2.5, sold(5, 2, 11)), Entry("resume", 2.6, number=1)]
    assert replay([*begin, *lost, changes(2.7, sold(5, 2, 11))], truth_of(), check_sold).rows[(1,)]["total"] == 5
    assert replay([*begin, *lost], truth_of(), check_sold).rows[(1,)]["total"] == 3
    again = replay([*begin, *lost, Entry("snapshot", 2.7, (sold(5, 2, 11),))], truth_of(), check_sold)
    assert "snapshot in the middle" in again.wrong[0]
    fallen = replay([*begin, *lost, changes(2.7, sold(2, 1, 5))], truth_of(), check_sold)
    assert "fell" in fallen.wrong[0]
    unknown = replay([*begin, Entry("resume", 2.6, number=2)], truth_of(), check_sold)
    assert "never taken" in unknown.wrong[0]


def test_a_ledger_comes_back_without_its_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ledger = LedgerWriter(path)
    first = ledger.begin("BuyersWest", [(1, 100, 2), (1, 101, 3)])
    second = ledger.begin("BuyersEast", [(1, 102, 4)])
    third = ledger.begin("BuyersEast", [(1, 103, 4)])
    ledger.end(first, range(10, 12))
    ledger.fail(second, "uncertain")
    ledger.end(third, [20])
    ledger.close()
    path.write_bytes(path.read_bytes()[:-5])
    publishes = read_ledgers([path])
    assert [(publish.stream, publish.rows, publish.ticks, publish.failure) for publish in publishes] == [
        ("BuyersWest", [(1, 100, 2), (1, 101, 3)], [10, 11], ""),
        ("BuyersEast", [(1, 102, 4)], None, "uncertain"),
        ("BuyersEast", [(1, 103, 4)], None, ""),
    ]


def test_a_record_survives_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first = RecordWriter(path)
    first.mark("start")
    first.close()
    with path.open("ab") as file:
        file.write(b'{"what":"chan')
    second = RecordWriter(path)
    second.mark("resume", 3)
    second.close()
    assert [(entry.what, entry.number) for entry in read_record(path)] == [("start", 0), ("resume", 3)]
