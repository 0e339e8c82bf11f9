"""Goal: events that a receiver on another host would drop do not travel, and nobody can tell otherwise.

Hosts are joined by hand (`hosts.py`). What crosses is counted; random programs split over two hosts that lose, repeat
and reorder messages and restart components must show the rows of the reference, with many events quenched; and wrong
conditions must be noticed by exactly that.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import ModuleType

import pytest

import smile
from compiler.expressions import conjunction
from compiler.kernels import edges, fuse
from compiler.plan import build
from compiler.plan.wanted import wanted_by_chains
from mpl.check import check
from mpl.failures import EvaluationError, Failure
from mpl.source import Source
from mpl.typed import Apply, Expr, RelationTree, Schema
from mpl.types import BoolType
from runtime.batch import Batch
from runtime.protocol.coverage import TICK_MAX, Coverage
from runtime.protocol.event_component import EventComponent
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import EventCuriosity, Events
from runtime.protocol.state_component import StateComponent
from runtime.values import Value
from smile.views import ViewReader
from tests.broker.hosts import Letter, Net
from tests.generator.program import generate
from tests.reference.data import python_stand_ins, random_events, random_tables
from tests.reference.relations import KeyBroken, Row, evaluate_program
from tests.smile.test_against_reference import as_dict

SALES = """
stream Sales (item int[0..9], state text(2), qty int[0..100], rebate int null);
view California = from Sales |> where state = 'CA' |> aggregate total := sum(qty) group by item;
view Either =
  from Sales |> where state = 'CA' |> aggregate here := sum(qty) group by item
  |> join (from Sales |> extend twice := qty * 2 |> where twice > 150 |> aggregate large := count() group by item)
     using item;
view Rebated = from Sales |> where rebate > 3;
"""
VIEWS = ("California", "Either", "Rebated")
EVENTS: list[tuple[Value, ...]] = [
    (n % 7, ("CA", "OR", "NY", "WA")[n % 4], n * 13 % 101, n % 9 if n % 5 else None) for n in range(120)
]
PROGRAMS = 40


def split(text: str = SALES) -> Net:
    """The stream on one host, the views on another."""
    net = Net()
    net.deploy(smile.compile(text), {"Sales": "near", **dict.fromkeys(VIEWS, "far")})
    return net


def publish(net: Net, rows: list[tuple[Value, ...]] = EVENTS, *, first: int = 0) -> None:
    for sequence, row in enumerate(rows, first):
        net.hosts["near"].publish("Sales", "p", sequence, tuple([value] for value in row))
        net.carry()


def crossed(net: Net, receiver: str) -> list[tuple[Value, ...]]:
    """The events that went to this component on the other host, without their ticks."""
    edges = {edge.name for edge in net.plan.by_name[receiver].in_edges}
    return [
        row[1:]
        for letter in net.seen
        if letter.edge in edges and isinstance(letter.message, Events)
        for row in letter.message.rows.rows()
    ]


def wanted_of(row: tuple[Value, ...]) -> dict[str, bool]:
    _, state, qty, rebate = row
    assert isinstance(qty, int)
    is_rebated = isinstance(rebate, int) and rebate > 3
    return {"California": state == "CA", "Either": state == "CA" or qty * 2 > 150, "Rebated": is_rebated}


@pytest.mark.parametrize("view", VIEWS)
def test_only_what_is_wanted_crosses(view: str) -> None:
    net = split()
    publish(net)
    assert crossed(net, view) == [row for row in EVENTS if wanted_of(row)[view]]
    (edge,) = net.plan.by_name[view].in_edges
    unwanted = sum(not wanted_of(row)[view] for row in EVENTS)
    assert net.hosts["near"].events_quenched(edge.name) == unwanted > 30
    far = net.hosts["far"].hosted[view].component
    assert far.coverage()[0].horizon() == net.hosts["near"].hosted["Sales"].component.horizon(), "the rest is silence"


def test_an_answer_to_curiosity_is_quenched_too() -> None:
    net = split()
    net.lose = lambda letter: isinstance(letter.message, Events)
    publish(net)
    assert not net.rows_of("far", "California").visible_slots()
    net.lose = lambda _letter: False
    net.seen.clear()
    net.pass_time(5_000_000)
    assert any(isinstance(letter.message, EventCuriosity) for letter in net.seen)
    assert crossed(net, "California") == [row for row in EVENTS if row[1] == "CA"]
    shown = {row[0]: row[1] for row in _visible(net, "California")}
    assert shown == {item: _total(EVENTS, item) for item in range(7) if _total(EVENTS, item)}


def test_the_log_guests_and_receivers_on_the_same_host_get_everything() -> None:
    net = Net()
    net.deploy(smile.compile(SALES), {"Sales": "near", "California": "near", "Rebated": "far"})
    told: list[object] = []
    leaf = net.subscribe("Sales", told.append)
    publish(net)
    assert len(net.visible(leaf)) == len(EVENTS)
    _, logged, _ = net.stores["Sales"].read(Coverage.prefix(TICK_MAX), 1_000)
    assert len(logged) == len(EVENTS)
    (local,) = net.plan.by_name["California"].in_edges
    assert net.hosts["near"].events_quenched(local.name) == 0, "nobody computes what saves nothing"
    assert {row[0]: row[1] for row in _visible(net, "California", "near")}[0] == _total(EVENTS, 0)


def test_what_was_quenched_for_another_condition_is_not_taken() -> None:
    """Of a deployment before, still under way: what it left out would pass for silence."""
    net = split()
    (old,) = smile.compile(SALES.replace("'CA'", "'OR'")).plan.components["California"].in_edges
    (new,) = net.plan.by_name["California"].in_edges
    far = net.hosts["far"]
    before = far.hosted["California"].component.coverage()
    silence = Events(LineageCoverage.of_range(0, TICK_MAX), Batch.empty(5, events=True))
    far.arrived("California", old.name, silence, None)
    assert far.hosted["California"].component.coverage() == before
    assert far.hosted["California"].refused == {"unknown_edge": 1}
    far.arrived("California", new.name, silence, None)
    assert far.hosted["California"].component.coverage() != before, "the right one would have been taken"


def _total(rows: list[tuple[Value, ...]], item: int) -> int:
    return sum(int(row[2] or 0) for row in rows if row[0] == item and row[1] == "CA")


def _visible(net: Net, component: str, host: str = "far") -> list[tuple[Value, ...]]:
    rows = net.rows_of(host, component)
    return rows.select(rows.visible_slots()).rows()


# Random programs


class Hostile(Net):
    """Loses, repeats and reorders, until `calm`."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.rng = rng
        self.calm = False

    def _deliver(self, letter: Letter) -> None:
        fate = 1.0 if self.calm else self.rng.random()
        if fate < 0.15:
            return
        if fate < 0.3:
            self.letters.append(letter)
            return
        super()._deliver(letter)
        if fate < 0.4:
            super()._deliver(letter)

    def restart_one(self) -> None:
        host = self.rng.choice(list(self.hosts.values()))
        running = [one for one in host.hosted.values() if one.is_running]
        if running:
            host._cannot_go_on(self.rng.choice(running), "test")


class Case:
    """A program split over two hosts, with its events."""

    def __init__(self, text: str, seed: int, sales: Sequence[Row] = ()) -> None:
        self.rng = Random(f"quench {seed}")
        self.typed = check(Source("random.mpl", text)).require().program
        python = python_stand_ins(self.typed)
        self.program = smile.compile(text, python=python)
        plan = self.program.plan
        events = random_events(self.typed, self.rng, 30)
        tables = random_tables(self.typed, self.rng, 3)
        self.net = Hostile(self.rng)
        self.views = tuple(plan.views)
        self.last: dict[str, int] = {}
        needed = plan.needed_for({plan.views[view].component for view in self.views})
        self.net.deploy(self.program, {one.name: self._home(one.is_stream) for one in needed})
        self.events: dict[str, list[Row]] = {name: [] for name in self.typed.streams}
        for name, rows in tables.items():
            self._publish(name, rows)
        for name, rows in events.items():
            self._publish(name, sales or [row[:-1] for row in rows])
        self._settle()
        self.expected = evaluate_program(self.typed, self.events, tables, python)

    def _home(self, is_stream: bool) -> str:
        return "near" if is_stream or self.rng.random() < 0.2 else "far"

    def _publish(self, name: str, rows: Sequence[Row]) -> None:
        """One by one, with mishaps in between."""
        base = {**self.program.plan.streams, **self.program.plan.tables}[name]
        if name not in self.net.homes:
            return
        width = self.program.plan.components[name].relation.width
        for sequence, row in enumerate(rows):
            physical: list[Value] = [None] * width
            for value, cell in zip(row, base.side.layout.cells, strict=False):
                physical[cell.columns[0]] = value
            acknowledged = len(self.net.outcomes)
            while len(self.net.outcomes) == acknowledged or self.net.outcomes[-1][0].code:
                self.net.hosts["near"].publish(name, "p", sequence, tuple([value] for value in physical[1:]))
                self.net.pass_time(50_000)
            (tick,) = self.net.outcomes[-1][0].ticks
            self.last[name] = tick
            if name in self.events:
                self.events[name].append((*row, tick))
            if self.rng.random() < 0.1:
                self.net.restart_one()

    def _settle(self) -> None:
        self.net.calm = True
        for _ in range(300):
            self.net.pass_time(100_000, 100_000)
            if all(self._has_all(name) for name in self.net.homes):
                return
        raise AssertionError("does not settle")

    def _has_all(self, name: str) -> bool:
        hosted = self.net.hosts[self.net.homes[name]].hosted[name]
        if hosted.failure is not None:
            raise EvaluationError(Failure.OVERFLOW, "perhaps only in between")
        lasts = (self.last.get(stream, -1) for stream in self.net.plan.lineages[name])
        return hosted.is_running and all(
            part.horizon() >= last for part, last in zip(hosted.component.coverage(), lasts, strict=True)
        )

    def shown(self, view: str) -> list[str]:
        planned = self.program.plan.views[view]
        component = self.net.hosts[self.net.homes[planned.component]].hosted[planned.component].component
        if isinstance(component, StateComponent):
            rows = component.operator.rows
            batch = rows.select(rows.visible_slots())
        elif isinstance(component, EventComponent):
            batch = component.held.select(component.coverage())
        else:
            return self.wanted(view)  # a stream under another name
        return sorted(map(repr, ViewReader(planned).rows(batch)))

    def wanted(self, view: str) -> list[str]:
        schema = self.typed.views[view].schema
        return sorted(repr(as_dict(schema, row)) for row in self.expected[view])

    def differing(self) -> list[str]:
        return [view for view in self.views if self.shown(view) != self.wanted(view)]

    def quenched(self) -> int:
        edges = [edge.name for one in self.net.plan.components for edge in one.in_edges]
        return sum(host.events_quenched(edge) for host in self.net.hosts.values() for edge in edges)


def test_random_programs_split_over_two_hosts_equal_the_reference(cases: int) -> None:
    views = rows = quenched = 0
    for seed in range(PROGRAMS * cases):
        try:
            case = Case(generate(seed).text, seed)
        except (smile.MplError, EvaluationError, KeyBroken):
            continue  # windows do not run yet; or some row has no value, perhaps only in between
        assert case.differing() == [], f"seed {seed}"
        views += len(case.views)
        rows += sum(len(case.expected[view]) for view in case.views)
        quenched += case.quenched()
    assert min(2 * views, rows, 2 * quenched) > PROGRAMS * cases


def test_conditions_of_every_kind_equal_the_reference_under_faults(cases: int) -> None:
    quenched = 0
    for seed in range(3 * cases):
        case = Case(SALES, seed, EVENTS[:40])
        assert case.differing() == [], f"seed {seed}"
        quenched += case.quenched()
    assert quenched > 60 * cases


# Planted mistakes


def _negated(condition: Expr | None) -> Expr | None:
    if condition is None:
        return None
    return Apply("not", (condition,), type=BoolType(), nullable=condition.nullable, span=condition.span)


@pytest.mark.parametrize("module", [build, fuse])
def test_a_negated_condition_is_noticed(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.plan_edge
    monkeypatch.setattr(module, "plan_edge", lambda *arguments: right(*arguments[:-1], _negated(arguments[-1])))
    assert any(Case(SALES, seed, EVENTS[:40]).differing() for seed in range(3))


def test_a_condition_stronger_than_the_receivers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two parts of a kernel one would do; here both must want an event."""
    right = wanted_by_chains

    def all_of(chains: Sequence[Sequence[RelationTree]], schema: Schema) -> Expr | None:
        found = [right([chain], schema) for chain in chains]
        return conjunction(tuple(one for one in found if one is not None))

    monkeypatch.setattr(edges, "wanted_by_chains", all_of)
    differing = [Case(SALES, seed, EVENTS[:40]).differing() for seed in range(3)]
    assert ["Either"] in differing
    assert all(found in ([], ["Either"]) for found in differing)
