"""Goal: every operator gives the columns, types, nulls and keys of the reference, and names mean what it says."""

import pytest

from mpl.typed import JoinNode
from tests.mpl.shown import checked, codes, errors, view

DECLARED = """
stream Trades (symbol text, price decimal(12,4) [0..], qty int[1..], at time) event time at late 2 s;
stream Quotes (symbol text, bid decimal(12,4), at time) event time at;
stream Orders (id int, symbol text, note text null) unique id;
stream Named (symbol text, qty int) tick n;
table Listing (symbol text, name text, venue enum('XA','XB')) key symbol;
view Totals = from Trades |> aggregate bought := sum(qty) group by symbol;
"""

TRADES = "symbol text, price decimal(12,4), qty int, at time, ~tick"

# What is read, the operators, and what comes out.
OPERATORS = {
    "scan of a stream": ("from Trades", f"{TRADES}; key ~tick"),
    "scan of a stream with a unique column": (
        "from Orders",
        "id int, symbol text, note text null, ~tick; key id or ~tick",
    ),
    "scan of a stream with a named tick": ("from Named", "symbol text, qty int, n int; key n"),
    "scan of a table": ("from Listing", "symbol text, name text, venue enum('XA', 'XB'); key symbol"),
    "scan of a view": ("from Totals", "symbol text, bought int; key symbol"),
    "where": ("from Totals |> where bought > 5", "symbol text, bought int; key symbol"),
    "extend": (
        "from Totals |> extend twice := bought * 2, short := nullif(symbol, '')",
        "symbol text, bought int, twice int, short text null; key symbol",
    ),
    "project keeping the key": ("from Orders |> project note, id", "note text null, id int, ~tick; key id or ~tick"),
    "project dropping the key of events": ("from Orders |> project note", "note text null, ~tick; key ~tick"),
    "project dropping the key of computed rows": ("from Totals |> project bought", "bought int; key bought"),
    "project hiding a named tick": ("from Named |> project qty", "qty int, ~tick; key ~tick"),
    "project all but": ("from Listing |> project all but name", "symbol text, venue enum('XA', 'XB'); key symbol"),
    "rename the key": ("from Totals |> rename symbol as s", "s text, bought int; key s"),
    "rename into what is free": (
        "from Totals |> rename symbol as bought, bought as symbol",
        "bought text, symbol int; key bought",
    ),
    "rename to the name of a hidden tick": (
        "from Named |> project qty |> rename qty as n",
        "n int, ~tick; key ~tick",
    ),
    "tumbling window": (
        "from Orders |> extend t := time '2026-01-01' |> window tumble(t, 1 min)",
        "id int, symbol text, note text null, ~tick, t time, wstart time, wend time; key id or ~tick",
    ),
    "hopping window": (
        "from Trades |> window hop(at, 10 s every 2 s) |> project symbol, wstart, wend",
        "symbol text, wstart time, wend time, ~tick; key wstart, ~tick",
    ),
    "session window": (
        "from Trades |> window session(at, gap 30 s per symbol) |> project symbol, wstart",
        "symbol text, wstart time, ~tick; key ~tick",
    ),
    "aggregate": (
        "from Trades |> aggregate n := count(), low := min(price), mean := avg(qty) group by symbol",
        "symbol text, n int, low decimal(12,4), mean decimal(18,6); key symbol",
    ),
    "aggregate with a filter": (
        "from Trades |> aggregate low := min(price) where qty > 5 group by symbol",
        "symbol text, low decimal(12,4) null; key symbol",
    ),
    "aggregate of everything": (
        "from Trades |> aggregate n := count(), low := min(price), total := sum(price)",
        "n int, low decimal(12,4) null, total decimal(18,4); key ()",
    ),
    "aggregate per window": (
        "from Trades |> window tumble(at, 1 min) |> aggregate n := count() group by symbol, wstart, wend",
        "symbol text, wstart time, wend time, n int; key symbol, wstart",
    ),
    "aggregate per session": (
        "from Trades |> window session(at, gap 1 s per symbol) |> aggregate n := count() group by symbol, wstart, wend",
        "symbol text, wstart time, wend time, n int; key symbol, wstart, wend",
    ),
    "aggregate of aggregates": (
        "from Totals |> aggregate most := max(bought)",
        "most int null; key ()",
    ),
    "top": ("from Totals |> top 3 by bought desc", "symbol text, bought int; key symbol"),
    "top with rank": (
        "from Trades |> top 3 per symbol by price desc with rank place |> project symbol, place",
        "symbol text, place int, ~tick; key ~tick or symbol, place",
    ),
    "latest": ("from Trades |> latest per symbol by at", f"{TRADES}; key symbol or ~tick"),
    "first by tick": (
        "from Orders |> first per symbol",
        "id int, symbol text, note text null, ~tick; key symbol or id or ~tick",
    ),
    "distinct events": ("from Trades |> project symbol, qty |> distinct", "symbol text, qty int; key symbol, qty"),
    "distinct keyed rows": ("from Totals |> distinct", "symbol text, bought int; key symbol"),
    "union": (
        "from Listing |> project symbol |> union (from Totals |> project symbol)",
        "symbol text; key symbol",
    ),
    "union of columns in another order": (
        "from Totals |> union (from Orders |> extend bought := id |> project bought, symbol)",
        "symbol text, bought int; key symbol, bought",
    ),
    "minus": (
        "from Totals |> minus (from Named |> rename qty as bought |> project symbol, bought)",
        "symbol text, bought int; key symbol",
    ),
    "merge with columns in another order": (
        "merge (from Trades |> project symbol, qty), (from Named |> project qty, symbol)",
        "symbol text, qty int, ~tick; key ~tick",
    ),
    "merge with null on one side": (
        "merge (from Orders |> project note), (from Trades |> rename symbol as note |> project note)",
        "note text null, ~tick; key ~tick",
    ),
    "matching": ("from Totals |> matching Trades using symbol", "symbol text, bought int; key symbol"),
    "not matching": (
        "from Orders |> not matching Trades as T on symbol = T.symbol and T.qty > id",
        "id int, symbol text, note text null, ~tick; key id or ~tick",
    ),
    "asof join": (
        "from Trades |> asof join Quotes using symbol |> project symbol, bid, Quotes.at",
        "symbol text, bid decimal(12,4), Quotes.at time, ~tick; key ~tick",
    ),
    "asof left join": (
        "from Trades as T |> asof left join Quotes as Q on T.symbol = Q.symbol and Q.at <= T.at |> project qty, bid",
        "qty int, bid decimal(12,4) null, ~tick; key ~tick",
    ),
}


@pytest.mark.parametrize(("relation", "expected"), OPERATORS.values(), ids=OPERATORS)
def test_operator(relation: str, expected: str) -> None:
    assert view(f"{DECLARED} view V = {relation};") == expected


# Names

TWO = "stream A (x int, y int); stream B (x int, z text); "


def names(relation: str) -> str:
    return view(f"{TWO} view V = {relation};").partition(";")[0]


def test_a_clashing_column_is_called_by_its_alias() -> None:
    assert names("from A |> join B as b on A.x = b.x |> project x, b.x, z") == "x int, b.x int, z text, ~tick, ~tick"


def test_a_plain_name_means_the_leftmost_column() -> None:
    joined = "from A |> extend w := 'left' |> join (from B |> extend w := 1 |> project all but x) as b on w = b.z"
    assert names(f"{joined} |> extend result := w |> project result") == "result text, ~tick, ~tick"
    assert names(f"{joined} |> extend result := b.w |> project result") == "result int, ~tick, ~tick"


def test_the_name_of_a_relation_is_its_alias() -> None:
    assert names("from A |> join B on A.x = B.x |> project B.x, A.y") == "B.x int, y int, ~tick, ~tick"


def test_an_alias_hides_the_name_of_the_relation() -> None:
    assert errors(f"{TWO} view V = from A as a |> where A.x > 1;") == ["MPL0202"]


def test_a_dotted_name_survives_in_a_view() -> None:
    program = TWO + "view W = from A |> join B as b on A.x = b.x; view V = from W |> where b.x > 1 |> project b.x, W.y;"
    assert view(program) == "b.x int, y int, ~tick, ~tick; key ~tick, ~tick"


def test_a_using_column_is_reached_by_either_alias() -> None:
    assert names("from A as a |> join B as b using x |> where a.x = b.x |> project b.x") == "x int, ~tick, ~tick"


def test_a_new_alias_reaches_all_columns_of_a_pipeline() -> None:
    assert names("from (from A as a |> project y) as inner |> where inner.y > 0") == "y int, ~tick"
    assert errors(f"{TWO} view V = from (from A as a |> project y) as i |> where a.y > 0;") == ["MPL0202"]


def test_a_pipeline_in_parentheses_without_an_alias_keeps_its_own() -> None:
    assert names("from (from A as a |> where y > 0) |> where a.y > 0 |> project a.y") == "y int, ~tick"


def test_without_an_alias_the_same_name_on_both_sides_is_refused() -> None:
    assert errors(f"{TWO} view V = from A |> join (from B |> where x > 1) on y = z;") == ["MPL0412"]


def test_self_joins_need_an_alias() -> None:
    assert errors(f"{TWO} view V = from A |> join A on x = y;") == ["MPL0211"]
    assert names("from A |> join A as other on x = other.y |> project other.x") == "other.x int, ~tick, ~tick"


def test_all_definitions_of_an_extend_see_only_what_came_before() -> None:
    assert errors(f"{TWO} view V = from A |> extend p := x + 1, q := p + 1;") == ["MPL0202"]
    assert names("from A |> extend p := x + 1 |> extend q := p + 1 |> project q") == "q int, ~tick"


# Nulls, defaults and ranges


def test_outer_joins_make_the_other_side_nullable() -> None:
    left = "from Totals |> left join (from Quotes |> aggregate quotes := count() group by symbol) using symbol"
    assert view(f"{DECLARED} view V = {left};") == "symbol text, bought int, quotes int null; key symbol"
    assert view(f"{DECLARED} view V = {left} default quotes := 0;") == "symbol text, bought int, quotes int; key symbol"
    full = left.replace("left join", "full join")
    assert view(f"{DECLARED} view V = {full};") == "symbol text, bought int null, quotes int null; key symbol"
    assert (
        view(f"{DECLARED} view V = {full} default bought := 0, quotes := 0;")
        == "symbol text, bought int, quotes int; key symbol"
    )


def test_a_default_widens_the_range() -> None:
    program = DECLARED + "view V = from Listing |> left join (from Orders |> where id > 0) as O using symbol;"
    assert "note text null" in view(program)
    declared = "stream S (k int, v int[5..9]) unique k; table T (k int) key k;"
    column = checked(f"{declared} view V = from T |> left join S using k default v := 0;").program.views["V"].schema
    assert (column.columns[1].bounds.low, column.columns[1].bounds.high) == (0, 9)


def test_default_values_are_converted() -> None:
    declared = "stream S (k int, v decimal(10,2)) unique k; table T (k int) key k;"
    relation = checked(f"{declared} view V = from T |> left join S using k default v := 3;").program.views["V"].relation
    assert isinstance(relation, JoinNode)
    assert [default.value for default in relation.defaults] == [300, None]


# Errors: one message per mistake, and none for its consequences


def test_a_broken_view_silences_its_readers() -> None:
    program = "stream S (a int); view V = from S |> where nobody > 1; view W = from V |> where what = 2;"
    assert codes(program + " subscribe s to W;") == ["MPL0202"]


def test_a_broken_operator_silences_the_rest_of_its_pipeline_but_not_other_sources() -> None:
    program = "stream S (a int); view V = from S |> project b, gone |> where what = 2 |> join Missing using a;"
    assert codes(program) == ["MPL0202", "MPL0202", "MPL0201"]


WRONG_STEPS = (
    "extend b := nobody, c := 1",
    "extend b := a, c := nothing(1)",
    "aggregate b := sum(nobody), c := count() group by a, k",
    "aggregate b := max(a), c := sum(k) group by a, k",
    "extend b := 1, c := 2 |> top 2 per nobody by a",
    "extend b := 1, c := 2 |> top 2 by nobody",
    "extend b := 1, c := 2 |> latest per a by nobody",
    "extend b := 1, c := 2 |> matching T using nobody",
    "extend b := 1, c := 2 |> not matching Nobody using a",
)


@pytest.mark.parametrize("wrong", WRONG_STEPS)
@pytest.mark.parametrize("then", ["project what", "where a = 'x'", "extend a := 1", "join T using gone"])
def test_a_wrong_step_does_not_hide_a_second_mistake(wrong: str, then: str) -> None:
    declared = "stream S (a int, k text); stream T (a int, v text);"
    first, second = (codes(f"{declared} view V = from S |> {step};") for step in (wrong, then))
    assert len(first) == len(second) == 1
    assert codes(f"{declared} view V = from S |> {wrong} |> {then};") == [*first, *second]


@pytest.mark.parametrize(
    "wrong",
    [
        *("extend b := nobody, c := 1", "extend b := nothing(1), c := 1"),
        *("aggregate b := sum(nobody), c := count() group by a", "aggregate b := sum(k), c := count() group by a"),
    ],
)
@pytest.mark.parametrize(
    "then",
    [
        *(
            "where b = 'x' and c > 1",
            "where b = 1",
            "extend d := b || 'x', e := -b",
            "aggregate d := sum(b) group by a",
        ),
        *("top 2 by b, c", "latest per a by b", "window tumble(b, 1 min)", "join U using b |> where w = 1"),
        *("matching U as U on b = U.b", "asof join U on U.t <= b and a = w", "project a, b, c |> union W"),
        "left join U using b default w := 1",
    ],
)
def test_no_message_about_a_column_that_is_wrong_already(wrong: str, then: str) -> None:
    declared = "stream S (a int, k text); stream U (b bool, w int, t time) event time t;"
    declared += "stream X (a int, b enum('x'), c int); view W = from X |> project a, b, c |> distinct;"
    assert len(codes(f"{declared} view V = from S |> {wrong} |> {then};")) == 1


def test_after_a_broken_where_the_columns_are_still_known() -> None:
    program = "stream S (a int); view V = from S |> where nobody > 1 |> where a > 'x' |> project gone;"
    assert codes(program) == ["MPL0202", "MPL0302", "MPL0202"]
    inner = "stream S (a int); view V = from (from S |> where nobody > 1) |> where what = 2;"
    assert codes(inner) == ["MPL0202"], "what reads it is silenced, as it is for a view"


def test_independent_errors_are_all_reported_in_source_order() -> None:
    program = """stream S (a int, a int, t int) event time t;
    view V = from Nowhere;
    view W = from T |> project b, c;
    stream T (x int);"""
    assert codes(program) == ["MPL0204", "MPL0201", "MPL0202", "MPL0202"]


def test_a_broken_stream_silences_views_over_it() -> None:
    assert codes("stream S (a int, a int); view V = from S |> project b;") == ["MPL0204"]


@pytest.mark.parametrize(
    ("relation", "code"),
    [
        ("from Trades |> window tumble(symbol, 1 min)", "MPL0407"),
        ("from Trades |> window tumble(at, 0 s)", "MPL0408"),
        ("from Trades |> window hop(at, 1 s every 2 s)", "MPL0408"),
        ("from Trades |> window hop(at, 10 d every 1 ms)", "MPL0408"),
        ("from Trades |> window tumble(at, 1 s) |> window tumble(wstart, 1 min)", "MPL0204"),
        ("from Orders |> extend t := nullif(time '2026-01-01', time '2026-01-01') |> window tumble(t, 1 s)", "MPL0407"),
        ("from Trades |> join Quotes as Q on price > Q.bid", "MPL0405"),
        ("from Trades |> join Quotes as Q on price = price", "MPL0405"),
        ("from Trades |> join Quotes as Q on symbol = Q.symbol or qty = 1", "MPL0405"),
        ("from Trades |> join Listing using symbol default name := ''", "MPL0406"),
        ("from Trades |> left join Listing using symbol default qty := 1", "MPL0406"),
        ("from Trades |> left join Listing using symbol default name := 5", "MPL0327"),
        ("from Trades |> join Orders as O using symbol, symbol", "MPL0204"),
        ("from Trades |> join (from Orders |> rename id as qty2) as O using qty", "MPL0202"),
        ("from Totals |> asof join Quotes using symbol", "MPL0409"),
        ("from Trades |> asof join Quotes as Q on symbol = Q.symbol and Q.at <= at and bid > 0", "MPL0409"),
        ("from Totals |> latest per symbol", "MPL0411"),
        ("from Trades |> latest per symbol by venue", "MPL0202"),
        ("from Listing |> latest per name by venue", "MPL0414"),
        ("from Listing |> top 1 by venue", "MPL0414"),
        ("from Trades |> top 1 by price > 3", "MPL0414"),
        ("from Trades |> top 0 by price", "MPL0410"),
        ("from Trades |> top 2000000 by price", "MPL0410"),
        ("from Trades |> project all but symbol, price, qty, at", "MPL0413"),
        ("from Trades |> project symbol, symbol", "MPL0204"),
        ("from Trades |> rename symbol as qty", "MPL0204"),
        ("from Trades |> extend qty := 1", "MPL0204"),
        ("from Trades |> aggregate symbol := count() group by symbol", "MPL0204"),
        ("from Trades |> union Quotes", "MPL0403"),
        ("from Totals |> minus (from Listing |> project symbol)", "MPL0403"),
        ("merge Totals, Trades", "MPL0402"),
        ("merge Trades, Quotes", "MPL0403"),
        ("merge Trades, Trades", "MPL0404"),
        ("from Trades |> join Trades using symbol", "MPL0211"),
    ],
)
def test_refused(relation: str, code: str) -> None:
    assert errors(f"{DECLARED} view V = {relation};") == [code]


def test_long_pipelines_are_refused() -> None:
    steps = " |> where a > 0"
    assert errors("stream S (a int); view V = from S" + steps * 200 + ";") == []
    assert errors("stream S (a int); view V = from S" + steps * 201 + ";") == ["MPL0401"]
