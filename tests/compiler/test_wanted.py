"""Goal: the plan says what an edge of events wants: all that its receiver could need, and little else."""

from __future__ import annotations

import pytest

import smile
from runtime.plan import InEdge

STREAM = "stream S (k int[0..9], q int[0..100], n int null, d int, note text(9));\n"


def edge_into(component: str, text: str) -> InEdge:
    (edge,) = smile.compile(STREAM + text).plan.components[component].in_edges
    return edge


def wanted(view: str) -> str | None:
    """In words, what V wants of its only input."""
    wish = edge_into("V", f"view V = {view};").wants
    return None if wish is None else wish.text  # type: ignore[attr-defined]


GROUP = "aggregate total := sum(q) group by k"
COUNT = "aggregate c := count() group by k"

WANTED = {
    "from S |> where note = 'CA'": "note = 'CA'",
    "from S |> where n > 3": "n > 3",
    "from S |> where q > 3 |> where k = 2": "q > 3 and k = 2",
    f"from S |> where note = 'CA' |> {GROUP}": "note = 'CA'",
    f"from S |> project k, q, d |> where q > 7 |> {GROUP}": "q > 7",
    f"from S |> extend e := q + k |> where e > 9 |> {GROUP}": "q + k > 9",
    f"from S |> extend e := q + k |> extend f := e * 2 |> where f > 9 and k > 1 |> {GROUP}": (
        "k > 1 and (q + k) * 2 > 9"
    ),
    f"from (from S |> where q > 9 |> {GROUP}) |> join (from S |> where k = 3 |> {COUNT}) using k": "q > 9 or k = 3",
    "from S |> where q > 0 and 100 / q > 7": "q > 0",
}


@pytest.mark.parametrize("view", WANTED)
def test_what_an_edge_wants(view: str) -> None:
    assert wanted(view) == WANTED[view]


@pytest.mark.parametrize(
    "view",
    [
        "from S |> where 100 / q > 7",  # some row has no value, and that has to be told
        "from S |> where n > 0 and 100 / q > 7",  # after a null the second part is looked at
        f"from S |> extend e := d * d |> where e > 9 |> {GROUP}",  # too large for an int
        f"from S |> {GROUP}",
        f"from (from S |> {GROUP}) |> join (from S |> where k = 3 |> {COUNT}) using k",
    ],
)
def test_edges_that_want_everything(view: str) -> None:
    assert wanted(view) is None


def test_a_condition_that_would_grow_too_large_in_place_is_no_wish() -> None:
    doubled = " |> ".join(f"extend e{n + 1} := case when k > {n} then e{n} else e{n} + 1 end" for n in range(12))
    text = f"view V = from S |> extend e0 := q |> {doubled} |> where e12 > 9 |> {GROUP};"
    assert smile.compile(STREAM + text).plan.components["V"].in_edges[0].wants is None


def test_edges_that_want_different_things_have_different_names() -> None:
    names = {
        edge_into("V", f"view V = from S |> where {condition} |> {GROUP};").name
        for condition in ("note = 'CA'", "note = 'OR'", "note <> 'CA'", "q = 3", "k = 3", "true")
    }
    assert len(names) == 6
    assert "S->V#0" in names, "who wants everything has the plain name"


def test_the_name_does_not_depend_on_what_else_there_is() -> None:
    view = f"view V = from S |> where note = 'CA' |> {GROUP};"
    assert edge_into("V", view).name == edge_into("V", f"view Other = from S |> where q = 1;\n\n{view}").name


def test_a_selection_of_state_is_asked_for_by_key_instead() -> None:
    assert (
        edge_into("V", f"view A = from S |> {GROUP}; view V = from A |> where k > 3 |> where total > 3;").wants is None
    )
