"""Goal: placement honours what was said, in the order of who said it, gives reasons, and repeats exactly."""

from pathlib import Path

import pytest

import smile
from mpl.source import Source
from smile.deploy.placement import Placed, PlacementError, place
from smile.program import compile_source

STREAMS = """
stream A (k int, x int[0..9]);
stream B (k int, y int[0..9]);
stream C (k int, z int[0..9]);
"""
SUM = "view SA = from A |> aggregate s := sum(x) group by k;\nview SB = from B |> aggregate s := sum(y) group by k;\n"


def placed(text: str, brokers: list[str], pins: dict[str, str] | None = None, *, ignore_absent: bool = False) -> Placed:
    program = compile_source(Source("p.mpl", text), Path())
    return place(program.checked.program, program.plan, brokers, pins, ignore_absent=ignore_absent)


def test_figure_1_is_placed_as_it_says() -> None:
    program = smile.compile("examples/tickets/tickets.mpl")
    found = place(program.checked.program, program.plan, ["west", "east", "hub"])
    homes = found.homes
    assert (homes["BuyersWest"], homes["BuyersEast"], homes["Sellers"]) == ("west", "east", "hub")
    assert homes["Sold"] == "hub"
    assert homes["Available"] == "hub", "20 + 35 ms from the hub, more from anywhere else"
    assert found.reasons["Sold"] == "`place Sold on hub`"
    assert "`publish BuyersWest at west`" in found.explain()
    assert set(homes) == {component.name for component in program.plan.needed_for(homes)}


def test_streams_are_spread_and_views_follow_them() -> None:
    found = placed(STREAMS + SUM, ["one", "two", "three"])
    assert [found.homes[name] for name in "ABC"] == ["one", "two", "three"]
    assert found.homes["SA"] == "one"
    assert found.reasons["SA"] == "beside A"
    assert found.homes["SB"] == "two"


def test_one_broker_hosts_all() -> None:
    assert set(placed(STREAMS + SUM, ["b"]).homes.values()) == {"b"}


def test_pins_win_over_the_program() -> None:
    text = STREAMS + SUM + 'broker one at "tcp://o:1"; broker two at "tcp://t:1"; publish A at one; place SA on one;'
    assert placed(text, ["one", "two"]).homes["SA"] == "one"
    found = placed(text, ["one", "two"], {"SA": "two"})
    assert (found.homes["A"], found.homes["SA"]) == ("one", "two")
    assert found.reasons["SA"] == "pinned as SA"


def test_with_near_and_avoid() -> None:
    brokers = 'broker one at "tcp://o:1"; broker two at "tcp://t:1"; broker three at "tcp://r:1";\n'
    told = "place SB with SA; place SA avoid one; place C near two;"
    found = placed(STREAMS + SUM + brokers + told, ["one", "two", "three"])
    assert found.homes["SA"] == "three", "both are as far, and this one has less to do"
    assert (found.homes["SB"], found.reasons["SB"]) == ("three", "`place SB with SA`")
    assert (found.homes["C"], found.reasons["C"]) == ("two", "`place C near two`")


def test_near_a_subscription_is_where_it_is_attached() -> None:
    text = (
        STREAMS
        + SUM
        + 'broker one at "tcp://o:1"; broker two at "tcp://t:1"; subscribe w to SA at two; place SA near w;'
    )
    assert placed(text, ["one", "two"]).homes["SA"] == "two"


def test_between_brokers_the_short_links_decide() -> None:
    text = (
        STREAMS
        + """
stream D (k int, x int[0..9]);
view All = merge A, D;
broker far at "tcp://f:1"; broker left at "tcp://l:1"; broker mid at "tcp://m:1"; broker right at "tcp://r:1";
link left - mid latency 5 ms; link right - mid latency 5 ms; link left - right latency 30 ms;
link far - mid latency 90 ms;
publish A at left; publish D at right; publish C at far; publish B at far;
"""
    )
    found = placed(text, ["far", "left", "mid", "right"])
    assert found.homes["All"] == "mid", "10 ms in all, as from either end, and nothing to do yet"


def test_tables_go_to_their_readers(tmp_path: Path) -> None:
    text = STREAMS + "table T (k int, name text) key k;\nview J = from B |> join T using k;\n"
    found = placed(text, ["one", "two", "three"])
    assert found.homes["J"] == "two"
    assert (found.homes["T"], found.reasons["T"]) == ("two", "beside J")


@pytest.mark.parametrize(
    ("told", "pins", "says"),
    [
        ("", {"SAA": "one"}, "pins.SAA: the program has no such view, stream or table; did you mean"),
        ("", {"SA": "tow"}, "did you mean `two`"),
        ('broker x at "tcp://x:1"; place SA on x;', {}, "`place SA on x`: there is no broker `x`"),
        (
            'broker one at "tcp://x:1"; broker two at "tcp://y:1"; place SA avoid one; place SA avoid two;',
            {},
            "no other",
        ),
        (
            'broker one at "tcp://x:1"; place SA avoid one; place SA on one;',
            {},
            "should avoid one, but it is put on one",
        ),
        ("view Same = from A |> aggregate s := sum(x) group by k;", {"SA": "one", "Same": "two"}, "one component"),
    ],
)
def test_what_cannot_be_had_is_said(told: str, pins: dict[str, str], says: str) -> None:
    with pytest.raises(PlacementError) as found:
        placed(STREAMS + SUM + told, ["one", "two"], pins)
    assert says in str(found.value)


def test_a_local_run_may_have_other_brokers_than_the_program() -> None:
    text = STREAMS + SUM + 'broker x at "tcp://x:1"; place SA on x; place SB avoid x;'
    assert placed(text, ["one", "two"], ignore_absent=True).homes["SA"] == "one"


def test_no_brokers() -> None:
    with pytest.raises(PlacementError, match="no brokers"):
        placed(STREAMS, [])
