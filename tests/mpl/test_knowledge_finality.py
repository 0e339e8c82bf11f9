"""Goal: a row that the analysis calls final once something has closed never changes afterwards.

Events become known in the order of the log. The test has its own idea of when a row has closed (written beside each
view, from the meaning of event time alone); from then on the row must stay as it is. The analysis must have seen that
the view closes at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpl.knowledge import FinalWhen, Growth, operators_of
from tests.mpl.naive_views import Row, rows_of_views
from tests.mpl.test_knowledge_histories import ALL_VIEWS, TABLE, compiled, growing, histories

SECOND = 1_000_000
Clocks = dict[str, int]
Closed = Callable[[dict[str, Any], Clocks], bool]


def at(column: str, stream: str, extra: int = 0) -> Closed:
    """Closed when no event of `stream` can have a time at or before the column's (plus `extra` seconds)."""

    def closed(row: dict[str, Any], clocks: Clocks) -> bool:
        value = row[column]
        assert isinstance(value, int)
        return value + extra * SECOND < clocks[stream]

    return closed


def end_of_slot(row: dict[str, Any], clocks: Clocks) -> bool:
    slot = row["slot"]
    assert isinstance(slot, int)
    return clocks["S"] >= slot + 5 * SECOND


CLOSING: dict[str, Closed] = {
    "tumbling": at("wend", "S"),
    "hopping": at("wend", "S"),
    "hot": at("wend", "S"),
    "sessions": at("wend", "S"),
    "session_filtered": at("wend", "S"),
    "session_join": at("wend", "S"),
    "oldest": at("ts", "S"),
    "as_of_left": at("ts", "R"),
    "as_of": at("ts", "R"),
    "semi_window": at("wend", "R"),
    "best": at("ts", "S", extra=4),
    "best_sum": at("ts", "S", extra=4),
    "days": end_of_slot,
}


def clocks_of(known: dict[str, list[Row]]) -> Clocks:
    """The earliest event time that each stream may still accept."""
    late = {"S": 2, "R": 2, "U": 0}
    times = {stream: [row[-2] for row in rows] for stream, rows in known.items()}
    return {
        stream: max((time for time in found if isinstance(time, int)), default=0) - late[stream] * SECOND
        for stream, found in times.items()
    }


def test_every_view_that_is_said_to_close_is_tested() -> None:
    assert ALL_VIEWS.knowledge is not None
    closing = {n for n, known in ALL_VIEWS.knowledge.views.items() if known.finality.when is FinalWhen.CLOSED}
    assert closing == set(CLOSING)


@pytest.mark.parametrize("name", CLOSING)
def test_the_analysis_sees_that_it_closes(name: str) -> None:
    assert ALL_VIEWS.knowledge is not None
    known = ALL_VIEWS.knowledge.views[name]
    assert known.finality.when is FinalWhen.CLOSED
    assert "has passed" in known.finality.words or "no earlier event" in known.finality.words


@given(events=histories())
def test_closed_rows_stay_as_they_are(events: dict[str, list[Row]]) -> None:
    order = sorted(
        ((stream, row) for stream, rows in events.items() for row in rows), key=lambda entry: str(entry[1][-1]).zfill(4)
    )
    settled: dict[str, dict[Row, Row]] = {name: {} for name in CLOSING}
    for known in growing(events, order):
        views = rows_of_views(ALL_VIEWS.program, known, {"D": TABLE})
        clocks = clocks_of(known)
        for name, closed in CLOSING.items():
            schema = ALL_VIEWS.program.views[name].schema
            rows = {tuple(row[c] for c in schema.key): row for row in views[name]}
            for key, row in settled[name].items():
                assert rows.get(key) == row, f"{name}: final row {row} became {rows.get(key)}"
            for key, row in rows.items():
                names = {column.name: value for column, value in zip(schema.columns, row, strict=True)}
                if closed(names, clocks):
                    settled[name][key] = row


@given(seed=st.integers(0, 1000))
def test_first_by_tick_is_final_in_log_order(seed: int) -> None:
    """`first per k` without a column takes the first tick: what comes later in the log cannot replace it."""
    checked = compiled("stream S (k int, v int); view F = from S |> first per k;")
    assert checked.knowledge is not None
    assert checked.knowledge.views["F"].finality.when is FinalWhen.CLOSED
    source = random.Random(seed)
    events: list[Row] = [(source.randint(0, 2), source.randint(0, 9), tick) for tick in range(8)]
    seen: dict[object, Row] = {}
    for end in range(len(events) + 1):
        for row in rows_of_views(checked.program, {"S": events[:end]}, {})["F"]:
            assert seen.setdefault(row[0], row) == row


FINALITY = {
    "from S |> aggregate n := count() group by k": "never",
    "from S |> aggregate n := count()": "never",
    "from E |> aggregate n := count() group by k": "once `E` has ended",
    "from E |> aggregate n := count()": "once `E` has ended",
    "from U |> aggregate n := count() group by k": "the one event with that `k` is known",
    "from C |> aggregate n := sum(v) group by id": "event time of `C` has passed `stop`, which closes `id`",
    "from C |> aggregate n := sum(v) group by v": "never",
    "from S |> aggregate m := max(r)": "only if `m` reaches the end of its range",
    "from S |> aggregate m := any(v > 2) group by k": "only if `m` reaches the end of its range",
    "from S |> left join U using k |> project k, v, q": "once `q` has been filled in",
    "from S |> where v > 2": "as soon as they are shown",
    "from S |> not matching U on k = U.k": "never",
    "from S |> not matching E on k = E.k": "once `E` has ended",
    "from S |> minus (from E |> project k, v, r, ts)": "once `E` has ended",
    "merge S2, E |> aggregate n := count()": "never",
    "from S |> latest per k": "never",
    "from E |> latest per k": "once `E` has ended",
    "from S |> top 3 by v desc": "never",
    "from D |> aggregate n := count()": "as soon as they are shown",
}


@pytest.mark.parametrize(("relation", "words"), FINALITY.items())
def test_when_rows_are_final(relation: str, words: str) -> None:
    checked = compiled(
        f"""stream S (k int, v int, r int[0..9], ts time) event time ts;
        stream S2 (k int, v int, r int[0..9], ts time) event time ts;
        stream E (k int, v int, r int[0..9], ts time) event time ts until time '2026-01-01';
        stream U (k int, q int) unique k;
        stream C (id int, v int, ts time, stop time) event time ts closes id at stop;
        table D (k int, label text) key k;
        view V = {relation};"""
    )
    assert checked.knowledge is not None
    assert words in checked.knowledge.views["V"].finality.words


STATE = {
    "from S |> where v > 2": (Growth.NONE, None),
    "from S |> aggregate n := count()": (Growth.BOUNDED, 1),
    "from S |> aggregate n := count() group by k": (Growth.UNBOUNDED, None),
    "from S |> aggregate n := count() group by r, f, e": (Growth.BOUNDED, 10 * 2 * 3),
    "from S |> aggregate n := count(distinct r) group by f": (Growth.BOUNDED, 2 + 2 * 10),
    "from S |> aggregate n := count(distinct k) group by f": (Growth.UNBOUNDED, None),
    "from S |> window tumble(ts, 1 s) |> aggregate n := count() group by k, wstart": (Growth.BOUNDED, None),
    "from K |> aggregate n := count() group by k": (Growth.BOUNDED, None),
    "from U |> aggregate n := count() group by k": (Growth.BOUNDED, None),
    "from S |> latest per k": (Growth.UNBOUNDED, None),
    "from S |> latest per f": (Growth.BOUNDED, 2),
    "from S |> top 3 per f by v": (Growth.BOUNDED, 2),
    "from S |> distinct": (Growth.BOUNDED, None),
    "from S |> project k |> distinct": (Growth.UNBOUNDED, None),
    "from S |> project r |> distinct": (Growth.BOUNDED, 10),
    "from S |> join U using k": (Growth.UNBOUNDED, None),
    "from S |> join T as B on k = B.k": (Growth.UNBOUNDED, None),
    "from K |> join K2 as B on k = B.k": (Growth.BOUNDED, None),
    "from S |> join S3 as B on k = B.k": (Growth.UNBOUNDED, None),
    "from S |> join S3 as B on k = B.k and B.ts between ts - 4 s and ts + 4 s": (Growth.BOUNDED, None),
    "from S |> join S3 as B on k = B.k and B.ts <= ts + 4 s and ts <= B.ts + 4 s": (Growth.BOUNDED, None),
    "from S |> join S3 as B on k = B.k and B.ts >= ts - 4 s": (Growth.UNBOUNDED, None),
    "from S |> join D using k": (Growth.NONE, None),
    "from S |> matching S3 as B on k = B.k": (Growth.UNBOUNDED, None),
    "from S |> window session(ts, gap 1 s per k)": (Growth.BOUNDED, None),
    "from D |> aggregate n := count()": (Growth.NONE, None),
}


@pytest.mark.parametrize(("relation", "expected"), STATE.items())
def test_what_bounds_the_state(relation: str, expected: tuple[Growth, int | None]) -> None:
    columns = "(k int, v int, r int[0..9], f bool, e enum('a', 'b', 'c'), ts time) event time ts late 1 s"
    checked = compiled(
        f"""stream S {columns}; stream S3 {columns};
        stream K {columns} retain 1 h; stream K2 {columns} retain 2 h;
        stream U (k int, q int) unique k;
        stream T (k int, q int, at time) unique k event time at;
        table D (k int, label text) key k;
        view V = {relation};"""
    )
    assert checked.knowledge is not None
    root = checked.program.views["V"].relation
    last = list(operators_of(root))[-1]
    state = checked.knowledge.of(last).state
    assert (state.growth, state.rows_max) == expected, state
