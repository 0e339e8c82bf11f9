"""Goal: a kernel in place of several components keeps every promise of the protocol, under all faults of the simulator.

Figure 1 and two other stars: the oracle computes them operator by operator from the durable events, the engine runs one
component, fed by three streams, in between streams and subscriber.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from runtime.kernels.operator import KernelOperator
from runtime.operators.copy import Copy
from runtime.plan import OperatorSpec
from runtime.simulation import build, kinds, oracle, schedules
from runtime.simulation.decisions import Settings
from runtime.simulation.descriptor import Aggregate, Extend, Graph, Group, Join, Leaf, Merge, Node, Select, Stream
from runtime.simulation.kinds import Kinds
from runtime.simulation.schedules import draw_schedule
from runtime.simulation.simulator import run_schedule
from tests.kernels.stars import fused

SEEDS = {"figure 1": 50, "rejected for good": 25, "many aggregates": 25}
MPL_STREAMS = """
stream sell (k int, g int, v int[0..9], w int);
stream west (k int, g int, v int[0..9], w int);
stream east (k int, g int, v int[0..9], w int);
view Buys = merge west, east;
"""


@dataclass(frozen=True)
class Fused:
    """The components that one kernel stands for; the last one's rows are its own. `text` is the same in MPL."""

    inner: tuple[Node, ...]
    text: str


BUYS = Node("buys", Merge(), ("west", "east"))
SOLD = Node("sold", Group(("k",), (Aggregate("sum", "v", "total"),)), ("buys",))
STARS = {
    "figure 1": Fused(
        (
            Node("offered", Group(("k",), (Aggregate("sum", "v", "total"),)), ("sell",)),
            BUYS,
            SOLD,
            Node("both", Join((("k", "k"),), outer=True, defaults=(0,)), ("offered", "sold")),
            Node("left", Extend("avail", ("difference", "total", "both_total")), ("both",)),
            Node("open", Select(("at_least", "avail", 1)), ("left",)),
        ),
        """view Offered = from sell |> aggregate total := sum(v) group by k;
        view Sold = from Buys |> aggregate sold := sum(v) group by k;
        view V = from Offered |> left join Sold using k default sold := 0 |> extend avail := total - sold
            |> where avail >= 1;""",
    ),
    "rejected for good": Fused(
        (
            Node("offered", Group(("k",), (Aggregate("max", "v", "most"),)), ("sell",)),
            BUYS,
            SOLD,
            Node("few", Select(("less", "total", 25)), ("sold",)),
            Node("open", Join((("k", "k"),)), ("few", "offered")),
        ),
        """view Offered = from sell |> aggregate most := max(v) group by k;
        view Sold = from Buys |> aggregate sold := sum(v) group by k |> where sold < 25;
        view V = from Sold |> join Offered using k;""",
    ),
    "many aggregates": Fused(
        (
            Node("all", Merge(), ("sell", "west", "east")),
            Node("chosen", Select(("at_least", "v", 2)), ("all",)),
            Node(
                "open",
                Group(
                    ("k", "g"),
                    (
                        Aggregate("signed_sum", "w", "moved"),
                        Aggregate("count", "v", "n"),
                        Aggregate("min", "v", "least"),
                        Aggregate("avg", "v", "mean"),
                    ),
                ),
                ("chosen",),
            ),
        ),
        """view V = from (merge sell, west, east) |> where v >= 2
            |> aggregate moved := sum(w), n := count(), least := min(v), mean := avg(v) group by k, g;""",
    ),
}


def star_graph(star: Fused) -> Graph:
    streams = tuple(Node(name, Stream()) for name in ("sell", "west", "east"))
    kernel = Node("open", star, tuple(edge for edge in stream_order(star)))  # type: ignore[arg-type]
    return Graph("kernel", (*streams, kernel, Node("sub", Leaf(), ("open",))))


def stream_order(star: Fused) -> list[str]:
    return fused(MPL_STREAMS + star.text).streams


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[Fused], None]:
    """Teaches the simulator what a fused component is: to the oracle its operators, to the engine a kernel."""
    node_kinds, evaluate, operator_spec = kinds.node_kinds, oracle.evaluate, build.operator_spec

    def kinds_with(node: Node, inputs: Sequence[Kinds]) -> Kinds:
        if not isinstance(node.operator, Fused):
            return node_kinds(node, inputs)
        found = dict(zip(node.inputs, inputs, strict=True))
        for inner in node.operator.inner:
            found[inner.name] = node_kinds(inner, [found[source] for source in inner.inputs])
        return found["open"]

    def evaluate_with(node: Node, inputs: Sequence[Any], shapes: Sequence[Any]) -> Any:
        if not isinstance(node.operator, Fused):
            return evaluate(node, inputs, shapes)
        relations = dict(zip(node.inputs, inputs, strict=True))
        stream_kinds = node_kinds(Node("", Stream()), [])
        known = dict.fromkeys(node.inputs, stream_kinds)
        for inner in node.operator.inner:
            known[inner.name] = node_kinds(inner, [known[source] for source in inner.inputs])
            shapes = [(known[source].keys, known[source].columns) for source in inner.inputs]
            relations[inner.name] = evaluate(inner, [relations[source] for source in inner.inputs], shapes)
        return relations["open"]

    def spec_with(node: Node, *others: Any) -> OperatorSpec:
        if isinstance(node.operator, Fused):
            return fused(MPL_STREAMS + node.operator.text).spec
        return operator_spec(node, *others)

    monkeypatch.setattr(kinds, "node_kinds", kinds_with)
    monkeypatch.setattr(oracle, "evaluate", evaluate_with)
    monkeypatch.setattr(build, "operator_spec", spec_with)

    def use(star: Fused) -> None:
        monkeypatch.setattr(schedules, "figure_1", lambda: star_graph(star))

    return use


@pytest.mark.parametrize("name", STARS)
def test_plan_and_kernel_agree_on_the_relation(name: str, with_kernels: Callable[[Fused], None]) -> None:
    star = STARS[name]
    relation = build.build_plan(star_graph(star), Settings()).by_name["open"].relation
    compiled = fused(MPL_STREAMS + star.text).component.relation
    assert (relation.width, relation.key_width) == (compiled.width, compiled.key_width)
    assert compiled.versioned or not relation.versioned, "rows may promise less than the simulator's, never more"


@pytest.mark.slow
@pytest.mark.parametrize("name", STARS)
def test_holds_under_all_faults(name: str, with_kernels: Callable[[Fused], None], cases: int) -> None:
    with_kernels(STARS[name])
    messages = 0
    for seed in range(SEEDS[name] * cases):
        result = run_schedule(draw_schedule(seed, "figure1"))
        assert result.violation is None, f"seed {seed}: {result.violation}"
        messages += result.messages
    assert messages > 100 * SEEDS[name]


def test_a_kernel_with_a_mistake_is_caught(
    with_kernels: Callable[[Fused], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that takes max_tick from the event that happened to arrive is noticed within a few seeds."""
    with_kernels(STARS["figure 1"])
    take = KernelOperator.take

    def careless(self: KernelOperator, edge: int, batch: Any) -> Sequence[int]:
        touched = take(self, edge, batch)
        for slot in touched:
            self.table.arrays["max_tick"][slot] = batch.max_ticks[0]
        return touched

    monkeypatch.setattr(KernelOperator, "take", careless)
    assert any(run_schedule(draw_schedule(seed, "figure1")).violation is not None for seed in range(40))


def test_a_receiver_that_keeps_the_first_of_several_changes_is_caught(
    with_kernels: Callable[[Fused], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edges that tell every change list a row several times, and only kernels know what happened in between."""
    with_kernels(STARS["figure 1"])
    take = Copy.take

    def careless(self: Copy, edge: int, batch: Any) -> Sequence[int]:
        first: dict[Any, int] = {}
        for i, key in enumerate(batch.keys(self.relation.key_width)):
            first.setdefault(key, i)
        return take(self, edge, batch.take(list(first.values())))

    monkeypatch.setattr(Copy, "take", careless)
    assert any(run_schedule(draw_schedule(seed, "figure1")).violation is not None for seed in range(40))
