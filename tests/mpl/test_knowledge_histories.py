"""Goal: whatever the analysis claims is true of every history.

Random events become known in any order. After each step all views are computed from scratch (`naive_views.py`), and the
claims are held against what was seen: a rising column never falls, a row that stays never vanishes, a fixed column
never changes, a final row is never different later. The views below use every operator; the second test draws random
expressions over columns of every kind.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mpl.check import Checked, check
from mpl.failures import EvaluationError
from mpl.knowledge import FinalWhen, Kind, Knowledge, Motion, Nulls, Path
from mpl.render import render_all
from mpl.source import Source
from tests.mpl.naive_views import Row, rows_of_views

STREAMS = """
stream S (k int[0..3], v int[0..5], w int[-3..3], f bool, n int[0..5] null, ts time) event time ts late 2 s;
stream R (k int[0..3], v int[0..5], w int[-3..3], f bool, n int[0..5] null, ts time) event time ts late 2 s;
stream U (k int[0..3], q int[0..9], x int[-4..4], ts time) unique k event time ts;
table D (k int[0..3], label text, lim int[0..9]) key k;
"""

TABLE = ((0, "zero", 3), (1, "one", 0), (2, "two", 9))

VIEWS = """
view both_ = merge S, R;
view sums = from S |> aggregate c := count(), cn := count(n), s := sum(v), b := sum(w), neg := sum(-v), lo := min(v),
    hi := max(w), d := count(distinct w), fi := first(w), la := last(w), an := any(f), al := all(f),
    mn := max(n), cf := count() where f, hv := max(v), ln := min(n) where w > 0, sd := sum(distinct v) group by k;
view avgs = from S |> aggregate a := avg(w), p := avg(v) group by k;
view over_avgs = from avgs |> where a > 0 |> aggregate n := count();
view grand = from S |> aggregate c := count(), lo := min(v), s := sum(w), al := all(f), h := max(v) where f;
view over_table = from D |> aggregate c := count(), s := sum(lim);
view joined = from U |> left join sums using k default s := 0, c := 0, b := 0 |> extend avail := q - s, gap := q - c;
view available = from joined |> where avail > 0 |> project k, q, avail;
view busy = from sums |> where s > 5;
view calm = from sums |> where s <= 5 and lo < 4;
view mid = from sums |> where s between 3 and 8;
view exact = from sums |> where c = 2;
view not_exact = from sums |> where c <> 2;
view wild = from sums |> where b > 0;
view flagged = from sums |> where an;
view unflagged = from sums |> where not an or hi > 2;
view known = from sums |> where mn is not null;
view unknown_ = from sums |> where mn is null;
view nullcmp = from sums |> where not (mn > 3);
view of_sums = from sums |> aggregate top_s := max(s), low_s := min(s), tot := sum(s), b2 := sum(b), lows := min(lo),
    n := count(), bigs := count() where s > 4, smalls := count() where s < 4, av := avg(s), an := any(s > 3);
view by_sum = from sums |> aggregate n := count(), t := sum(c) group by s;
view over_busy = from busy |> aggregate n := count(), m := max(s);
view over_calm = from calm |> aggregate n := count(), s := sum(c) group by lo;
view over_anti = from anti |> aggregate n := count(), s := sum(v) group by k;
view over_available = from available |> aggregate n := count() group by q;
view twice_ = from sums |> where c = 1 or c = 3;
view pairs = from S |> join R as Q on k = Q.k and v < Q.v;
view with_unique = from S |> join U as V on k = V.k;
view with_table = from S |> join D using k |> where v < lim;
view left_table = from S |> left join D using k;
view left_pairs = from U |> left join S as T on k = T.k;
view left_unique = from S |> left join U as V using k;
view left_default = from S |> left join U as V using k default q := 5;
view left_low = from S |> left join U as V using k default q := 0;
view sum_join = from sums |> join (from R |> aggregate rs := sum(v) group by k) using k |> extend dd := s - rs;
view state_join = from sums |> join (from R |> aggregate c2 := count() group by k) as Z on c = Z.c2;
view full_ = from sums |> full join (from R |> aggregate rs := sum(v), rl := min(v) group by k) using k;
view full_pairs = from S |> full join R as Q on v = Q.v and w = Q.w;
view semi = from S |> matching R on v = R.v;
view anti = from S |> not matching R on v = R.v;
view semi_state = from U |> matching busy on k = busy.k;
view anti_state = from U |> not matching busy on k = busy.k;
view semi_pulse = from U |> matching calm on k = calm.k;
view anti_pulse = from U |> not matching calm on k = calm.k;
view semi_many = from U |> matching mid on q = mid.c;
view semi_moving = from S |> matching U as V on k = V.k and v < V.q;
view top_final = from S |> top 2 per k by v desc, w with rank place;
view top_ties = from S |> top 1 by w desc with ties;
view top_state = from sums |> top 2 by s desc;
view top_one = from S |> top 1 per k by v desc;
view over_top = from top_final |> aggregate n := count(), m := max(v) group by k;
view join_top = from U |> join top_one as T on k = T.k |> project k, q, v;
view left_top = from U |> left join top_one as T on k = T.k |> project k, q, v;
view newest = from S |> latest per k;
view newest_ts = from S |> latest per k by ts |> extend twice := v * 2, sum_ := v + w;
view oldest = from S |> first per k by ts;
view latest_state = from sums |> latest per an by s;
view where_latest = from newest |> where v > 2;
view set_ = from S |> project k, v |> distinct;
view set_state = from sums |> project s, an |> distinct;
view set_calm = from calm |> project k |> distinct;
view union_ = from (from S |> project k, v) |> union (from R |> project k, v);
view union_calm = from (from calm |> project k, c) |> union (from sums |> project k, c);
view union_keys = from (from sums |> project k) |> union (from R |> project k |> distinct);
view minus_ = from (from S |> project k, v) |> minus (from R |> project k, v);
view minus_state = from (from sums |> project k, c) |> minus (from R |> aggregate c := count() group by k);
view tumbling = from S |> window tumble(ts, 4 s) |> aggregate c := count(), s := sum(w) group by k, wstart, wend;
view hopping = from S |> window hop(ts, 4 s every 2 s) |> aggregate m := max(v) group by wstart, wend;
view hot = from tumbling |> top 1 per wstart, wend by c desc;
view sessions = from S |> window session(ts, gap 3 s per k) |> aggregate c := count(), s := sum(v), b := sum(w)
    group by k, wstart, wend;
view session_starts = from S |> window session(ts, gap 3 s per k) |> aggregate c := count(), e := max(ts)
    group by k, wstart;
view session_rows = from S |> window session(ts, gap 3 s per k) |> where v > 1;
view session_loose = from S |> window session(ts, gap 3 s per k) |> aggregate c := count() group by wstart;
view as_of = from S |> asof join R as Q on k = Q.k and Q.ts <= ts;
view as_of_left = from S |> asof left join R as Q on k = Q.k and Q.ts <= ts;
view semi_window = from S |> window tumble(ts, 4 s)
    |> not matching (from R |> window tumble(ts, 4 s)) as Q on k = Q.k and wstart = Q.wstart;
view band = from U as A |> join S as B on A.k = B.k and B.ts between A.ts and A.ts + 4 s;
view best = from band |> top 1 per k by v desc;
view best_sum = from band |> aggregate m := max(v), s := sum(w) group by k, ts;
view days = from S |> extend slot := truncate(ts, 5 s) |> aggregate n := count() group by slot;
view unfold = from sums |> extend m := s % 3, p := s * 2, z := 100 - s, y := s - c, half := s / 2, neg_ := -s,
    step := case when s > 8 then 2 when s > 3 then 1 else 0 end, odd := case when s > 3 then 0 else 9 end,
    co := coalesce(mn, 0), co2 := coalesce(mn, 3), g := greatest(s, lo), le := least(mn, 3), pr := lo * s,
    late := case when s > 3 then s end, bb := b * 2, bd := b - s, iv := lo * hv, isn := mn is null, mx := s + lo;
view window_moving = from newest_ts |> window tumble(ts, 4 s) |> aggregate n := count() group by wstart;
view hop_moving = from newest_ts |> window hop(ts, 4 s every 2 s);
view session_filtered = from S |> where f |> window session(ts, gap 3 s per k) |> where v > 1
    |> aggregate c := count(), m := min(w) group by k, wstart, wend, v;
view session_top = from sessions |> top 1 per k by c desc;
view session_join = from sessions |> join U as V on k = V.k;
view session_semi = from U |> matching sessions as Z on k = Z.k and Z.c > 1;
view pulse_join = from U |> join sums as Z on q = Z.c;
view pulse_left = from U |> left join sums as Z on q = Z.c;
view rest_rising = from U |> left join sums as Z on k = Z.k and Z.s > 3;
view rest_falling = from U |> left join sums as Z on k = Z.k and Z.s < 3;
view inner_rest = from U |> join sums as Z on k = Z.k and Z.s < 3 |> aggregate n := count(), m := max(q) group by q;
view keyed_distinct = from sums |> project k, s, lo |> distinct;
view by_late = from left_unique |> aggregate n := count(), m := max(v) group by q;
view where_late = from left_unique |> where q > 3 or v > 3;
view late_key_join = from left_unique as A |> join D as E on A.q = E.k;
view semi_rest = from U |> matching sums as Z on k = Z.k and Z.s < q;
view anti_rest = from U |> not matching sums as Z on k = Z.k and Z.s > q;
view minus_moving = from (from sums |> project k, s) |> minus (from (from R |> aggregate s := sum(v) group by k));
view asof_state = from S |> asof join newest_ts as Q on k = Q.k and Q.ts <= ts;
view over_asof = from as_of_left |> aggregate n := count(), m := max(Q.v), h := max(Q.ts) group by k;
view over_left = from left_unique |> aggregate n := count(q), m := max(q), s := sum(q), x := sum(x) group by k;
view over_pairs = from left_pairs |> aggregate n := count(), s := sum(v) group by k;
view over_full = from full_ |> aggregate n := count(), s := sum(s), r := sum(rs);
view top_left = from left_low |> top 2 per k by q desc;
view latest_pairs = from pairs |> latest per k by Q.ts;
view first_pairs = from with_unique |> first per v by ts;
view table_top = from D |> top 1 by lim desc with rank place;
view table_anti = from D |> not matching busy on k = busy.k |> aggregate n := count(), s := sum(lim), m := max(lim);
view table_left = from D |> left join sums using k default s := 0 |> where s <= lim |> aggregate n := count();
view grand_not = from grand |> where not (h > 3);
view grand_less = from grand |> where h < 3 |> extend c3 := case when not (h > 1) then 1 else 0 end;
view one_row = from grand |> extend z := c - 3, h2 := coalesce(h, 0) |> where lo < 3 or c > 4;
view rekeyed key k, place = from S |> top 2 per k by v desc, w with rank place;
view place_only = from (from sums |> top 2 per an by s desc with rank place) |> project an, place, s;
"""


EXAMPLES = settings().max_examples  # grows with --cases


def compiled(text: str) -> Checked:
    checked = check(Source("t.mpl", text))
    assert checked.ok, render_all(checked.diagnostics)
    return checked


ALL_VIEWS = compiled(STREAMS + VIEWS)


@st.composite
def histories(draw: st.DrawFn) -> dict[str, list[Row]]:
    """Events per stream as the log would accept them: ticks rise, event time is never later than declared."""
    seed = draw(st.integers(0, 2**32))
    source = random.Random(seed)
    events: dict[str, list[Row]] = {"S": [], "R": [], "U": []}
    newest = dict.fromkeys(events, 0)
    for tick in range(draw(st.integers(0, 18))):
        stream = source.choice("SSSRRU" if tick > 3 else "UUS")
        late = 0 if stream == "U" else 2
        ts = source.randint(max(0, newest[stream] - late), newest[stream] + 3)
        newest[stream] = max(newest[stream], ts)
        key = source.choice((0, 0, 0, 1, 1, 2, 3))
        if stream != "U":
            null = source.choice([None, source.randint(0, 5)])
            row: Row = (key, source.randint(0, 5), source.randint(-3, 3), source.random() < 0.5, null)
        elif any(event[0] == key for event in events["U"]):
            continue
        else:
            row = (key, source.randint(0, 9), source.randint(-4, 4))
        events[stream].append((*row, ts * 1_000_000, tick))
    return events


def growing(events: dict[str, list[Row]], order: Sequence[tuple[str, Row]]) -> list[dict[str, list[Row]]]:
    """What is known after each step, when events become known in `order`."""
    known: dict[str, list[Row]] = {stream: [] for stream in events}
    steps = [dict(known)]
    for stream, row in order:
        known = {**known, stream: [*known[stream], row]}
        steps.append(known)
    return steps


class Witness:
    """Holds what was seen of one view against what is claimed about it."""

    def __init__(self, name: str, checked: Checked) -> None:
        assert checked.knowledge is not None
        self.name = name
        self.schema = checked.program.views[name].schema
        self.known: Knowledge = checked.knowledge.views[name]
        self.visible: dict[Row, list[bool]] = {}
        self.last: dict[Row, Row] = {}
        self.settled: dict[Row, Row] = {}
        self.steps = 0

    def see(self, rows: list[Row]) -> None:
        keyed = {tuple(row[c] for c in self.schema.key): row for row in rows}
        assert len(keyed) == len(rows), f"{self.name}: key {self.schema.key} is not unique in {rows}"
        for key in keyed:
            self.visible.setdefault(key, [False] * self.steps)
        for key, story in self.visible.items():
            story.append(key in keyed)
            self._check_path(key, story)
        for key, row in keyed.items():
            if key in self.last:
                self._check_columns(self.last[key], row)
            self._check_nulls(row)
            self.last[key] = row
        for key, row in self.settled.items():
            assert keyed.get(key) == row, f"{self.name}: final row {row} became {keyed.get(key)}"
        for key, row in keyed.items():
            if self._is_final(row):
                self.settled[key] = row
        self.steps += 1

    def _check_path(self, key: Row, story: list[bool]) -> None:
        changes = [now for before, now in pairwise(story) if before != now]
        allowed: dict[Path, list[list[bool]]] = {
            Path.FIXED: [[]],
            Path.RISING: [[], [True]],
            Path.FALLING: [[], [False]],
            Path.PULSE: [[], [True], [False], [True, False]],
        }
        path = self.known.path
        if path is not Path.VERSIONED:
            assert changes in allowed[path], f"{self.name}: row {key} is claimed {path.value}, seen {story}"

    def _check_columns(self, before: Row, now: Row) -> None:
        for position, column in enumerate(self.known.columns):
            old, new = before[position], now[position]
            place = f"{self.name}.{self.schema.columns[position].name}, claimed {column.kind.value} ({column.reason})"
            if column.nulls is Nulls.UNTIL_KNOWN and new is None:
                assert old is None, f"{place}: {old} became null"
            if column.nulls is Nulls.FIXED and column.kind is Kind.FINAL:
                assert (old is None) == (new is None), f"{place}: {old} -> {new}"
            if old is None or new is None:
                continue
            ordered: tuple[Any, Any] = (old, new)
            match column.motion:
                case Motion.FIXED:
                    assert old == new, f"{place}: {old} -> {new}"
                case Motion.RISES:
                    assert ordered[0] <= ordered[1], f"{place}: {old} -> {new}"
                case Motion.FALLS:
                    assert ordered[0] >= ordered[1], f"{place}: {old} -> {new}"
                case Motion.MIXED:
                    assert column.kind in (Kind.PN, Kind.DOM, Kind.INTERVAL, Kind.VERSIONED), place

    def _check_nulls(self, row: Row) -> None:
        for position, column in enumerate(self.known.columns):
            if column.nulls is Nulls.NEVER:
                assert row[position] is not None, f"{self.name}.{self.schema.columns[position].name} is null"

    def _is_final(self, row: Row) -> bool:
        """Is the row final by what can be seen in it alone? (Closings need a clock: see test_knowledge_finality.py.)"""
        match self.known.finality.when:
            case FinalWhen.AT_ONCE:
                return True
            case FinalWhen.MATCHED:
                return all(
                    row[c] is not None
                    for c, column in enumerate(self.known.columns)
                    if column.nulls is Nulls.UNTIL_KNOWN
                )
            case FinalWhen.SATURATED:
                return all(self._is_saturated(c, row[c]) for c in range(len(row)))
            case _:
                return False

    def _is_saturated(self, position: int, value: Any) -> bool:
        column, declared = self.known.columns[position], self.schema.columns[position]
        if column.is_stable:
            return True
        if str(declared.type) == "bool":
            return bool(value) == (column.motion is Motion.RISES)
        end = declared.bounds.high if column.motion is Motion.RISES else declared.bounds.low
        return bool(value == end)


def hold_against(checked: Checked, steps: list[dict[str, list[Row]]]) -> None:
    witnesses = [Witness(name, checked) for name in checked.program.views]
    for known in steps:
        views = rows_of_views(checked.program, known, {"D": TABLE})
        for witness in witnesses:
            witness.see(views[witness.name])


@settings(max_examples=EXAMPLES // 2)
@given(events=histories(), shuffle=st.randoms())
def test_claims_hold_for_events_in_any_order(events: dict[str, list[Row]], shuffle: random.Random) -> None:
    order = [(stream, row) for stream, rows in events.items() for row in rows]
    shuffle.shuffle(order)
    hold_against(ALL_VIEWS, growing(events, order))


# --- random expressions ---------------------------------------------------------------------------------------------

MOVING = ("s", "c", "d", "lo", "hi", "neg", "b", "mn", "avail")
CONSTANT = ("2", "3", "5", "1", "-1", "-2", "0")
CONDITIONS = ("an", "al", "f2", "true")


def numbers(inner: st.SearchStrategy[str], conditions: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    constant = st.sampled_from(CONSTANT)
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-"), st.one_of(inner, constant)).map(lambda p: f"({' '.join(p)})"),
        st.tuples(constant, st.sampled_from("+-*"), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(inner, st.sampled_from(["*", "/"]), st.sampled_from(["2", "3", "-2"])).map(
            lambda p: f"({' '.join(p)})"
        ),
        st.tuples(st.sampled_from(["greatest", "least", "coalesce"]), inner, st.one_of(inner, constant)).map(
            lambda p: f"{p[0]}({p[1]}, {p[2]})"
        ),
        st.tuples(conditions, constant, constant).map(lambda p: f"case when {p[0]} then {p[1]} else {p[2]} end"),
        st.tuples(conditions, conditions).map(lambda p: f"case when {p[0]} then 3 when {p[1]} then 2 else 1 end"),
        st.tuples(conditions, inner).map(lambda p: f"case when {p[0]} then {p[1]} end"),
        st.tuples(conditions, inner, inner).map(lambda p: f"case when {p[0]} then {p[1]} else {p[2]} end"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]} * {p[1]})"),
        st.tuples(st.sampled_from(["abs({})", "sign({})", "({} % 3)", "(-{})"]), inner).map(
            lambda p: p[0].replace("{}", p[1] if not p[1].startswith("-") else f"({p[1]})")
        ),
    )


def conditions_over(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    constant = st.sampled_from(CONSTANT)
    other = st.one_of(constant, constant, constant, values)
    return st.one_of(
        st.sampled_from(CONDITIONS),
        st.tuples(values, st.sampled_from(["<", "<=", ">=", ">"]), other).map(lambda p: f"{' '.join(p)}"),
        st.tuples(values, st.sampled_from(["=", "<>"]), other).map(lambda p: f"{' '.join(p)}"),
        st.tuples(values, constant).map(lambda p: f"{p[0]} between {p[1]} and 6"),
        st.tuples(values, constant).map(lambda p: f"{p[0]} in ({p[1]}, 4)"),
        values.map(lambda a: f"{a} is null"),
    )


BASE_NUMBERS = st.one_of(st.sampled_from(MOVING), st.sampled_from(MOVING), st.sampled_from(["q", "x"]))
SIMPLE_CONDITIONS = conditions_over(BASE_NUMBERS)
SMALL_NUMBERS = st.one_of(BASE_NUMBERS, numbers(BASE_NUMBERS, SIMPLE_CONDITIONS))
NUMBER_TEXTS = st.one_of(SMALL_NUMBERS, numbers(SMALL_NUMBERS, SIMPLE_CONDITIONS))
SMALL_CONDITIONS = st.one_of(SIMPLE_CONDITIONS, conditions_over(SMALL_NUMBERS))
CONDITION_TEXTS = st.one_of(
    SMALL_CONDITIONS,
    SMALL_CONDITIONS.map(lambda a: f"not ({a})"),
    st.tuples(SMALL_CONDITIONS, st.sampled_from(["and", "or"]), SMALL_CONDITIONS).map(
        lambda p: f"({p[0]}) {p[1]} ({p[2]})"
    ),
    st.tuples(SMALL_CONDITIONS, SMALL_CONDITIONS).map(lambda p: f"not ({p[0]} and not ({p[1]}))"),
)


@settings(max_examples=EXAMPLES * 2)
@given(
    value=NUMBER_TEXTS,
    condition=CONDITION_TEXTS,
    events=histories(),
    shuffle=st.randoms(),
    function=st.sampled_from(["sum", "min", "max", "count"]),
)
def test_claims_hold_for_random_expressions(
    value: str, condition: str, events: dict[str, list[Row]], shuffle: random.Random, function: str
) -> None:
    text = f"""{STREAMS}
    view sums = from S |> aggregate c := count(), s := sum(v), b := sum(w), lo := min(v), hi := max(w), mn := max(n),
        neg := sum(-v), d := count(distinct w), an := any(f), al := all(f) group by k;
    view base = from U |> join sums using k |> extend avail := q - s, f2 := x > 0;
    view loose = from U |> left join sums using k |> extend avail := q - s, f2 := x > 0;
    view computed = from base |> extend y := {value}, z := {condition};
    view chosen = from base |> where {condition};
    view loosely = from loose |> extend y := {value}, z := {condition};
    view loosely_chosen = from loose |> where {condition};
    view again = from computed |> aggregate r := {function}(y), cnt := count() where z, a := any(z);
    view followed = from computed |> where y > 2 |> extend t := y + c;
    """
    checked = check(Source("t.mpl", text))
    if not checked.ok:
        return  # types that do not fit are the checker's business
    order = [(stream, row) for stream, rows in events.items() for row in rows]
    shuffle.shuffle(order)
    try:
        hold_against(checked, growing(events, order))
    except EvaluationError:
        return
