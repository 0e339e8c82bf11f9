"""Programs that become kernels, random events for them, and the same graph on the operators one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from compiler.graph import TransformGraph, build_graph, validate
from compiler.kernels.fuse import fused_or_reason
from compiler.passes import optimise
from compiler.plan.build import ProgramPlan, build_plan
from mpl.check import check
from mpl.source import Source
from runtime.batch import Batch
from runtime.kernels.operator import KernelOperator
from runtime.kernels.spec import KernelSpec
from runtime.operators.operator import EventOperator, Operator
from runtime.plan import Component, ValueType
from runtime.values import Value

STREAMS = """
stream Sell (item int, price decimal(10,2), qty int[0..40], name text, rate float, open bool) unique item;
stream West (item int, qty int[0..9], change int, kind enum('a', 'b', 'c'), weight float);
stream East (item int, qty int[0..9], change int, kind enum('a', 'b', 'c'), weight float);
stream Pair (shop text, item int, qty int[0..9], change int);
stream Shop (shop text, item int, name text, size int[0..40]) unique shop, item;
view Buys = merge West, East;
"""

VIEWS = {
    "tickets": """
        view Sold = from Buys |> aggregate total := sum(qty) group by item;
        view V = from Sell |> left join Sold using item default total := 0
            |> extend left_over := qty - total |> where left_over > 0 |> project item, price, left_over;""",
    "totals": """
        view V = from Buys |> aggregate n := count(), total := sum(qty), moved := sum(change), mean := avg(qty),
            least := min(qty), most := max(change), heaviest := max(weight) group by item;""",
    "filtered": """
        view V = from Buys |> where kind = 'a' or qty > 3 |> extend twice := qty * 2
            |> aggregate some := sum(twice) where kind <> 'b', n := count() where twice > 4 group by item;""",
    "inner": """
        view Sold = from West |> aggregate total := sum(qty), moved := sum(change) group by item;
        view V = from Sell |> join Sold using item |> where moved > 0 or total > 20
            |> project item, name, rate, open, total, moved;""",
    "both": """
        view Out = from West |> aggregate gone := sum(qty) group by item;
        view Into = from East |> where qty > 1 |> aggregate come := sum(qty), n := count() group by item;
        view V = from Into |> left join Out using item default gone := 7 |> extend net := come - gone, code := come * 3
            |> where code < 60;""",
    "one stream twice": """
        view Out = from West |> where kind = 'a' |> aggregate gone := sum(qty) group by item;
        view Into = from West |> where kind <> 'a' |> aggregate come := sum(qty) group by item;
        view V = from Into |> join Out using item |> where come <> gone;""",
    "other defaults": """
        view Sold = from Buys |> aggregate least := min(change), most := max(weight), total := sum(qty) group by item;
        view V = from Sell |> left join Sold using item default least := 3, most := 0.5, total := 2
            |> where open or total > 2 |> project item, name, rate, least, most, total;""",
    "two columns": """
        view Sold = from Pair |> aggregate total := sum(qty), moved := sum(change) group by item, shop;
        view V = from Shop |> left join Sold using shop, item default total := 0, moved := 0
            |> where size > total |> extend rest := size - total |> project shop, item, name, rest;""",
    "choice": """
        view Sold = from Buys
            |> aggregate total := sum(case when change > 0 then qty else 0 end), n := count() group by item;
        view V = from Sell |> join Sold using item
            |> extend state := case when total > qty then 2 when n > 3 and total > 5 then 1 else 0 end,
               score := total - n |> project item, state, score, total;""",
}


@dataclass(frozen=True)
class Case:
    """A view as a kernel, and the plan without it."""

    graph: TransformGraph
    plan: ProgramPlan
    component: Component

    @property
    def spec(self) -> KernelSpec:
        assert isinstance(self.component.operator, KernelSpec)
        return self.component.operator

    @property
    def streams(self) -> list[str]:
        return [edge.sender for edge in self.component.in_edges]

    def kernel(self) -> KernelOperator:
        inputs = tuple(self.plan.components[stream].relation for stream in self.streams)
        operator = self.spec.build(inputs, self.component.relation)
        assert isinstance(operator, KernelOperator)
        return operator


@cache
def case(name: str) -> Case:
    return fused(STREAMS + VIEWS[name])


def fused(text: str, view: str = "V") -> Case:
    graph, plan = planned(text)
    component = fused_or_reason(graph, plan, view)
    assert isinstance(component, Component), component
    return Case(graph, plan, component)


def planned(text: str) -> tuple[TransformGraph, ProgramPlan]:
    graph = optimise(validate(build_graph(check(Source("stars.mpl", text)).require())))
    return graph, build_plan(graph, kernels=False)


def state_of(kernel: Operator) -> dict[str, object]:
    """What a checkpoint has of a kernel, to be compared."""
    exported = kernel.export()
    rows = exported["rows"]
    assert isinstance(rows, dict)
    return {**exported, "rows": {**rows, "columns": {name: list(column) for name, column in rows["columns"].items()}}}


class Chain:
    """The components of a view on the operators one by one, fed in order, without any protocol."""

    def __init__(self, plan: ProgramPlan, target: str) -> None:
        self.components = [c for c in plan.needed_for([target]) if not c.is_stream]
        self.target = target
        self.operators: dict[str, Operator | EventOperator] = {
            c.name: c.operator.build(tuple(plan.components[e.sender].relation for e in c.in_edges), c.relation)
            for c in self.components
        }

    @property
    def output(self) -> Operator:
        operator = self.operators[self.target]
        assert isinstance(operator, Operator)
        return operator

    def take_one_by_one(self, stream: str, batch: Batch) -> list[int]:
        """Each event as a batch of its own; the touched slots of the target."""
        touched = [slot for i in range(len(batch)) for slot in self.take(stream, batch.slice(i, i + 1))]
        return list(dict.fromkeys(touched))

    def take(self, stream: str, batch: Batch) -> list[int]:
        """The touched slots of the target."""
        made = {stream: [batch]}
        touched: list[int] = []
        for component in self.components:
            operator = self.operators[component.name]
            out: list[Batch] = []
            for number, edge in enumerate(component.in_edges):
                for part in made.get(edge.sender, ()):
                    if isinstance(operator, EventOperator):
                        out.append(operator.map(number, part))
                        continue
                    slots = operator.take(number, part)
                    out.append(operator.rows.select(slots))
                    if component.name == self.target:
                        touched += slots
            made[component.name] = out
        return list(dict.fromkeys(touched))


class Events:
    """Random events of a case's streams: batches of rising ticks, in any order of delivery."""

    def __init__(self, case: Case, seed: int, keys: int = 12) -> None:
        self.case = case
        self.random = Random(seed)
        self.keys = keys
        self.logged: dict[str, list[tuple[Value, ...]]] = {stream: [] for stream in case.plan.streams}
        self._unique: set[tuple[Value, ...]] = set()

    def batches(self, count: int, rows_max: int) -> Iterator[tuple[int, Batch]]:
        """(in-edge, batch): ticks are unique, and a batch may hold older ones than the batch before."""
        made: list[tuple[int, list[tuple[Value, ...]]]] = []
        tick = 0
        for _ in range(count):
            edge = self.random.randrange(len(self.case.streams))
            stream = self.case.streams[edge]
            rows = []
            for _ in range(self.random.randint(1, rows_max)):
                tick += self.random.randint(1, 3)
                row = self._row(stream, tick)
                if row is not None:
                    rows.append(row)
            self.random.shuffle(rows)
            made.append((edge, rows))
        for i in range(len(made) - 1):  # some arrive late
            if self.random.random() < 0.3:
                made[i], made[i + 1] = made[i + 1], made[i]
        for edge, rows in made:
            self.logged[self.case.streams[edge]] += rows
            yield edge, self._batch(rows, self.case.plan.components[self.case.streams[edge]].relation.width)

    @staticmethod
    def _batch(rows: Sequence[tuple[Value, ...]], width: int) -> Batch:
        columns = [[row[number] for row in rows] for number in range(width)]
        ticks = [int(row[0] or 0) for row in rows]
        return Batch.events(ticks, columns[1:])

    def _row(self, stream: str, tick: int) -> tuple[Value, ...] | None:
        columns = self.case.plan.components[stream].relation.columns
        row = (tick, *(self._value(column.name, column.type) for column in columns[1:]))
        if stream in ("Sell", "Shop"):
            key = (stream, *row[1 : 2 if stream == "Sell" else 3])
            if key in self._unique:
                return None
            self._unique.add(key)
        return row

    def _value(self, name: str, type: ValueType) -> Value:
        rng = self.random
        match name, type:
            case "item", _:
                return rng.randint(-self.keys // 2, self.keys // 2) * 1_000_003
            case "kind", _:
                return rng.choice("abc")
            case "change", _:
                return rng.randint(-5, 5)
            case "size" | "price", _:
                return rng.randint(0, 40)
            case _, ValueType.FLOAT:
                return rng.choice((0.0, 0.5, -1.25, 3.0))
            case _, ValueType.TEXT:
                return rng.choice(("x", "y", "zz", "", "\u2028"))
            case _, ValueType.BOOL:
                return rng.random() < 0.5
            case _:
                return rng.randint(0, 9)
