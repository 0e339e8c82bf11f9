"""Goal: a view keeps its checkpoint as long as nothing that it computes from has changed, and not longer."""

from __future__ import annotations

import smile
from smile.deploy.bundles import make_deployment
from smile.deploy.placement import hosted_components
from smile.digests import component_digests

VIEWS = """
view Sums = from S |> aggregate n := count(), worth := sum(a) group by k;
view Newest = from S |> latest per k;
view Some = from S |> where a > 3;
"""


def digests(streams: str, views: str = VIEWS) -> dict[str, str]:
    program = smile.compile(streams + views)
    placement = dict.fromkeys((one.name for one in hosted_components(program.plan)), "b")
    deployment = make_deployment(program, {"b": "tcp://127.0.0.1:1"}, placement, identity="0" * 32)
    found = component_digests(deployment, program)
    return {name: found[view.component] for name, view in {**program.plan.streams, **program.plan.views}.items()}


def test_a_column_more_changes_only_what_has_it() -> None:
    before = digests("stream S(k int, a int);")
    after = digests("stream S(k int, a int, b text null);")
    changed = {name for name in before if before[name] != after[name]}
    assert "S" in changed
    assert "Sums" not in changed
    assert {"Newest", "Some"} <= changed, "they show all columns"


def test_a_column_with_a_default_more_changes_only_what_has_it_and_the_default_counts() -> None:
    before = digests("stream S(k int, a int);")
    after, other = (digests(f"stream S(k int, a int, b int default {default});") for default in (3, 4))
    assert {name for name in before if before[name] != after[name]} == {"S", "Newest", "Some"}
    assert after["S"] != other["S"]


def test_another_stream_or_computation_is_another_view() -> None:
    before = digests("stream S(k int, a int);")
    other = digests("stream R(k int, a int); stream S(k int, a int);")
    assert before["Sums"] != other["Sums"], "the stream has another share of the ticks"
    assert before["Sums"] != digests("stream S(k int, a int);", VIEWS.replace("sum(a)", "max(a)"))["Sums"]
