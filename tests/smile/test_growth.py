"""Goal: what one event costs does not depend on how many rows a view has, whichever operator and whatever moves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import smile
from runtime.kernels.tier import MODE_VARIABLE
from runtime.protocol.state_component import StateComponent

STREAMS = """
stream A (k int, v int[0..1000000]);
stream B (k int, v int[0..1000000]);
view T = from A |> aggregate n := count(), t := sum(v) group by k;
view U = from B |> aggregate n := count(), t := sum(v) group by k;
"""
VIEWS = {
    "top": "from T |> top 5 by t desc",
    "top with rank": "from T |> top 5 by t desc with rank place",
    "top per group": "from T |> extend g := k % 3 |> top 2 per g by t desc",
    "top per what moves": "from T |> top 1 per t by k",
    "top of joined events": "from A |> join U on k = U.k |> top 5 by U.t desc",
    "group by what moves": "from T |> aggregate c := count() group by t",
    "distinct of what moves": "from T |> project t |> distinct",
    "latest per what moves": "from T |> latest per t by k",
    "matching what moves": "from U |> matching T on t = T.t",
    "not matching what moves": "from U |> not matching T on t = T.t",
    "join by what moves": "from U |> join T on t = T.t",
    "left join by what moves": "from U |> left join T on t = T.t",
    "full join by what moves": "from U |> full join T on t = T.t",
    "where": "from T |> where t > 100",
    "sum of sums": "from T |> aggregate s := sum(t)",
}
FEW, MANY = 60, 600


def touched_by_one(view: str, keys: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows of all components one event touches when the view is computed over so many keys."""
    counts: list[int] = []
    advance = StateComponent._advance

    def counting(self: StateComponent, touched: Sequence[int]) -> None:
        counts.append(len(touched))
        advance(self, touched)

    with smile.run(smile.compile(f"{STREAMS} view V = {view};")) as system:
        system.subscribe("V")
        for stream in "AB":
            system.publish_many(stream, [{"k": key, "v": 7 * key + (stream == "B")} for key in range(keys)])
        with monkeypatch.context() as patched:
            patched.setattr(StateComponent, "_advance", counting)
            system.publish("A", {"k": 3, "v": 1})
    assert counts
    return sum(counts)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_an_event_touches_as_many_rows_of_a_large_view_as_of_a_small_one(
    view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "plain")
    assert touched_by_one(view, MANY, monkeypatch) <= touched_by_one(view, FEW, monkeypatch)
