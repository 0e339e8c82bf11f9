"""Goal: a graph says exactly what the program says, in normal form, and a broken one is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.graph import GraphError, Transform, TransformGraph, build_graph, show, validate
from compiler.passes import optimise
from compiler.stages import explain_stage
from mpl.check import Checked, check
from mpl.diagnostic import MplError
from mpl.source import Source
from mpl.typed import AggregateNode, JoinNode, ProjectNode, StreamScan, WhereNode
from tests.conftest import Golden

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

TEXT = """
stream S (k int, v int[0..9]) unique k;
stream R (k int, w int[0..9]);
view Base = from S |> where v > 1 |> join (from R |> where w > 2) using k;
view Sums = from Base |> aggregate total := sum(w) group by k;
view Keyed key k = from S;
view Hidden = from R |> where w > 3 inline;
view Alias = from Sums;
subscribe s to (from Sums |> top 3 by total desc) emit final;
subscribe events to R;
"""


def checked(text: str) -> Checked:
    return check(Source("test.mpl", text))


def graph_of(text: str) -> TransformGraph:
    return validate(build_graph(checked(text)))


def test_ids_and_inputs() -> None:
    graph = graph_of(TEXT)
    assert {name: transform.inputs for name, transform in graph.nodes.items()} == {
        "Base.where_1": ("S",),
        "Base.where_2": ("R",),
        "Base": ("Base.where_1", "Base.where_2"),
        "Sums": ("Base",),
        "Keyed": ("S",),
        "Hidden": ("R",),
        "Alias": ("Sums",),
        "s": ("Sums",),
    }


def test_outputs_are_the_views_that_can_be_asked_for() -> None:
    graph = graph_of(TEXT)
    assert list(graph.outputs) == ["Base", "Sums", "Keyed", "Alias", "s"]
    assert graph.subscriptions["events"].view == "R"


def test_an_inline_view_that_is_subscribed_to_is_an_output() -> None:
    graph = graph_of("stream S (k int); view V = from S |> where k > 1 inline; subscribe s to V;")
    assert list(graph.outputs) == ["V"]


def test_a_name_that_looks_like_an_id_is_not_taken() -> None:
    graph = graph_of("stream S (k int); view `V.where_1` = from S; view V = from S |> where k > 1 |> extend x := k;")
    assert list(graph.nodes) == ["V.where_1", "V.where_2", "V"]


def test_a_declared_key_survives_everything() -> None:
    text = "stream S (a int, b int) unique a unique b; view V key b = from S; view W key b = from S |> where true;"
    for graph in (graph_of(text), optimise(graph_of(text))):
        assert graph.nodes["V"].schema.key == (1,)
        assert graph.outputs["W"].schema.key == graph.schema_of(graph.outputs["W"].id).key == (1,)


def test_errors_of_the_program_are_raised() -> None:
    with pytest.raises(MplError):
        build_graph(checked("view V = from Nothing;"))


def test_sharing_keeps_every_origin() -> None:
    text = "stream S (k int);\nview A = from S |> where k > 1;\nview B = from S |> where k > 1;"
    graph = optimise(graph_of(text))
    assert [str(span) for span in graph.nodes["A"].origins] == ["test.mpl:2:20", "test.mpl:3:20"]
    assert graph.outputs["B"].id == "A"


def test_long_pipelines_do_not_recurse() -> None:
    long = " |> ".join(f"extend x{n} := k + {n}" for n in range(190))
    graph = optimise(graph_of(f"stream S (k int[0..9]); view V = from S |> {long};"))
    assert len(graph.nodes) == 1
    chain = "".join(f"view V{n} = from V{n - 1} |> where k > {n};" for n in range(1, 1500))
    graph = optimise(graph_of(f"stream S (k int); view V0 = from S |> where k > 0; {chain}"))
    assert len(graph.nodes) == 1500


@pytest.mark.parametrize("name", ["tickets", "nexmark"])
@pytest.mark.parametrize("stage", ["algebra", "graph"])
def test_examples(name: str, stage: str, golden: Golden) -> None:
    path = EXAMPLES / name / f"{name}.mpl"
    program = check(Source(path.name, path.read_text(encoding="utf-8")))
    golden(f"graph/{name}.{stage}.txt", explain_stage(program, "algebra" if stage == "algebra" else "graph"))


def test_show_is_the_same_every_time() -> None:
    assert show(optimise(graph_of(TEXT))) == show(optimise(graph_of(TEXT)))


# --- what validate notices --------------------------------------------------------------------------------------------


def _replaced(graph: TransformGraph, id: str, change: Callable[[Transform], Transform]) -> TransformGraph:
    nodes = {name: change(one) if name == id else one for name, one in graph.nodes.items()}
    return TransformGraph(graph.program, nodes, graph.outputs)


def _bad_position(one: Transform) -> Transform:
    assert isinstance(one.node, AggregateNode)
    return replace(one, node=replace(one.node, group=(99,)))


def _bad_key(one: Transform) -> Transform:
    return replace(one, node=replace(one.node, schema=replace(one.schema, key=(7,))))


def _bad_reference(one: Transform) -> Transform:
    assert isinstance(one.node, WhereNode)
    return replace(one, node=replace(one.node, input=StreamScan("R", schema=one.schema, span=one.node.span)))


def _missing_input(one: Transform) -> Transform:
    assert isinstance(one.node, WhereNode)
    return replace(one, node=replace(one.node, input=StreamScan("Gone", schema=one.schema, span=one.node.span)))


def _bad_join(one: Transform) -> Transform:
    assert isinstance(one.node, JoinNode)
    return replace(one, node=replace(one.node, right_kept=(0, 1, 2)))


def _bad_types(one: Transform) -> Transform:
    assert isinstance(one.node, WhereNode)
    wrong = ProjectNode(one.node.input, (1, 0, 2), False, schema=one.schema, span=one.node.span)
    narrow = replace(one.schema, columns=(replace(one.schema.columns[0], bounds=one.schema.columns[1].bounds),) * 3)
    return replace(one, node=replace(wrong, schema=narrow))


@pytest.mark.parametrize(
    ("id", "change"),
    [
        ("Sums", _bad_position),
        ("Sums", _bad_key),
        ("Base.where_1", _bad_reference),
        ("Base.where_1", _missing_input),
        ("Base.where_1", _bad_types),
        ("Base", _bad_join),
        ("Base", lambda one: replace(one, origins=())),
        ("Base", lambda one: replace(one, id="Other")),
    ],
)
def test_validate_notices(id: str, change: Callable[[Transform], Transform]) -> None:
    graph = graph_of(TEXT)
    with pytest.raises(GraphError):
        validate(_replaced(graph, id, change))


def test_validate_notices_wrong_order_and_outputs() -> None:
    graph = graph_of(TEXT)
    backwards = TransformGraph(graph.program, dict(reversed(list(graph.nodes.items()))), graph.outputs)
    with pytest.raises(GraphError, match="does not come before"):
        validate(backwards)
    gone = {**graph.outputs, "Base": replace(graph.outputs["Base"], id="Gone")}
    with pytest.raises(GraphError, match="there is no Gone"):
        validate(TransformGraph(graph.program, graph.nodes, gone))
