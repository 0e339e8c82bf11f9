"""Bulk installs into hosts that go on serving: hold, parts, building, catching up, switching, and what can go wrong."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import smile
from runtime.broker.dismantling import SLICE, dismantled
from runtime.broker.hosted import SECOND, STOPPED, Told, second_name
from runtime.broker.installing import INSTALL_SILENT_US, Installing
from runtime.broker.status import failures_of
from runtime.checkpoints import codec
from runtime.log.stream_log import LogError
from runtime.protocol.build import build_component
from runtime.protocol.checkpoint import Checkpoint, bulk_install
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import Restarted, Stepped
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Durable, Upstream
from runtime.protocol.state_component import StateComponent
from tests.broker.hosts import Letter, Net
from tests.broker.processes import wait_for

VIEWS = ("Sold", "Leaders", "Kinds")
DIGESTS = dict.fromkeys(VIEWS, "d")
PROGRAM = """
stream Buys (item int, qty int[0..1000]);
view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;
view Leaders = from Sold |> top 2 by total desc;
view Kinds = from Buys |> project item |> distinct;
"""
ME = b"installer"
PART = 100


@dataclass
class FarNet:
    """Second in-edges over the letters of a net, attached at once unless `is_slow`."""

    net: Net
    host: str
    is_slow: bool = False
    attached: dict[str, str] = field(default_factory=dict)  # edge -> sender

    def attach_second(self, edge: str, sender: str, receiver: str) -> None:
        self.net.ends[edge] = (sender, receiver)
        self.net.homes = {**self.net.homes, receiver: self.host}
        self.net.hosts[self.net.homes[sender]].attach_second(sender, edge)
        self.attached[edge] = sender

    def detach_second(self, edge: str) -> None:
        sender = self.attached.pop(edge, None)
        if sender is not None:
            self.net.hosts[self.net.homes[sender]].detach_second(sender, edge)

    def is_attached(self, edge: str) -> bool:
        return not self.is_slow and edge in self.attached


@dataclass
class Shelf:
    horizon: int = -1
    is_hastened: bool = False

    def acknowledged(self, component: str, digest: str) -> int:
        return self.horizon

    def hasten(self) -> None:
        self.is_hastened = True


@dataclass
class Bench:
    """One host of a net in which things are installed."""

    net: Net
    host: str
    shelf: Shelf = field(default_factory=Shelf)

    def __post_init__(self) -> None:
        self.far = FarNet(self.net, self.host)
        self.installing = Installing(
            self.net.hosts[self.host],
            self.far,
            self.shelf,
            DIGESTS,
            lambda: next(self.net.epochs),
            self.net.clock,
        )

    def state(self, component: str) -> str:
        state: str = self.installing.status()[component]["state"]
        return state

    def hold(self, component: str) -> None:
        assert self.installing.hold(ME, component, "d") is None
        self.installing.poll()
        assert self.state(component) == "held"

    def send(self, component: str, checkpoint: Checkpoint) -> None:
        data = codec.encode(checkpoint.to_wire())
        for at in range(0, len(data), PART):
            assert self.installing.part(ME, component, at, len(data), data[at : at + PART]) is None
        assert self.state(component) == "building"

    def build(self, component: str) -> None:
        """Until the thread has finished."""

        def built() -> bool:
            self.installing.poll()
            return self.state(component) != "building"

        wait_for(built, "the building thread")

    def settle(self, component: str) -> None:
        for _ in range(60):
            self.net.pass_time(50_000)
            self.installing.poll()
            if self.state(component) != "catching up":
                break
        self.net.pass_time(1_000_000)

    def install(self, component: str, checkpoint: Checkpoint) -> None:
        self.hold(component)
        self.send(component, checkpoint)
        self.build(component)
        self.settle(component)


def as_of_now(net: Net, host: str, component: str) -> Checkpoint:
    """What a bulk computation of everything up to now would give: here, taken from the live component."""
    net.pass_time(500_000)
    live = net.hosts[host].hosted[component].component
    assert isinstance(live, StateComponent)
    horizon = live.horizon()
    counts = tuple(len(edge.coverage) for edge in live.in_edges.values())
    assert live.coverage() == LineageCoverage.prefix(sum(counts), horizon)
    return bulk_install(component, counts, horizon, live.operator.export())


def publish(net: Net, sequence: int, rows: list[tuple[int, int]]) -> None:
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    net.hosts["a"].publish("Buys", "p", sequence, columns, source=b"me")
    net.carry()


@pytest.fixture(scope="module")
def program() -> smile.Program:
    return smile.compile(PROGRAM)


PLACES = {
    "one host": {"Buys": "a", "Sold": "a", "Leaders": "a", "Kinds.project_1": "a", "Kinds": "a"},
    "senders elsewhere": {"Buys": "a", "Sold": "b", "Leaders": "c", "Kinds.project_1": "a", "Kinds": "b"},
}


def deployed(program: smile.Program, placement: dict[str, str]) -> Net:
    """What is said on a second edge while nobody stands by is for nobody."""
    net = Net()

    def is_for_nobody(letter: Letter) -> bool:
        return letter.edge.startswith(SECOND) and letter.edge not in net.ends

    net.lose = is_for_nobody
    net.deploy(program, dict(placement))
    return net


@pytest.fixture(params=list(PLACES))
def net(program: smile.Program, request: pytest.FixtureRequest) -> Net:
    made = deployed(program, PLACES[request.param])
    for sequence in range(10):
        publish(made, sequence, [(sequence % 3, sequence)])
    return made


@dataclass
class Watcher:
    """Every change that a subscriber is told."""

    changes: list[tuple[object, ...]] = field(default_factory=list)

    def see(self, told: Told) -> None:
        if isinstance(told, Stepped):
            self.changes += told.rows.rows()


@pytest.mark.parametrize("view", VIEWS)
def test_a_state_from_before_is_caught_up_and_switched_in_and_subscribers_see_nothing_of_it(
    net: Net, view: str
) -> None:
    home = net.homes[view]
    bench = Bench(net, home)
    watcher = Watcher()
    leaf = net.subscribe(view, watcher.see)
    bulk = as_of_now(net, home, view)
    first = net.hosts[home].hosted[view].component
    bench.hold(view)
    for sequence in range(10, 20):
        publish(net, sequence, [(sequence % 3, sequence)])
    bench.send(view, bulk)
    bench.build(view)
    bench.installing.poll()
    assert bench.state(view) == "catching up"  # it has not asked anybody yet
    assert net.hosts[home].hosted[view].component is first  # it goes on serving
    publish(net, 20, [(1, 1), (7, 100)])
    before = net.visible(leaf)
    bench.settle(view)
    assert bench.state(view) == "installed", bench.installing.status()
    hosted = net.hosts[home].hosted[view]
    assert hosted.component is not first
    assert hosted.component.epoch > first.epoch
    assert hosted.began_with == "a bulk install"
    assert net.visible(leaf) == before
    told = len(watcher.changes)
    net.pass_time(2_000_000)
    assert len(watcher.changes) == told  # nothing is told again as if it were new
    publish(net, 21, [(1, 1), (8, 50)])
    net.pass_time(500_000)
    assert net.visible(leaf) == sorted(net.rows_of(home, view).select(net.rows_of(home, view).visible_slots()).rows())
    assert net.visible(leaf) == expected(net, view)
    assert second_name(view) not in net.hosts[home].hosted
    assert all(not one.second_edges for host in net.hosts.values() for one in host.hosted.values())
    assert bench.shelf.is_hastened
    from_second = [one.message for one in net.seen if one.component == second_name(view)]
    assert all(isinstance(message, Upstream) for message in from_second)  # it has told nobody anything


def expected(net: Net, view: str) -> list[tuple[object, ...]]:
    """From what is in the logs, by hand."""
    _, rows, _ = net.stores["Buys"].read(Coverage.prefix(2**62), 10_000)
    totals: dict[int, tuple[int, int]] = {}
    events: list[Any] = rows.rows()
    for _tick, item, qty in events:
        total, number = totals.get(item, (0, 0))
        totals[item] = total + qty, number + 1
    if view == "Kinds":
        return sorted((item,) for item in totals)
    sold = [(item, *counted) for item, counted in totals.items()]
    return sorted(sorted(sold, key=lambda row: (-row[1], row[0]))[:2] if view == "Leaders" else sold)


def test_a_component_that_had_stopped_is_replaced(net: Net) -> None:
    home = net.homes["Sold"]
    bench, leaf = Bench(net, home), net.subscribe("Sold", lambda _: None)
    bulk = as_of_now(net, home, "Sold")
    host = net.hosts[home]
    host._cannot_go_on(host.hosted["Sold"], "broken", for_good=True)
    publish(net, 10, [(1, 1)])
    assert host.hosted["Sold"].state == STOPPED
    bench.install("Sold", bulk)
    assert bench.state("Sold") == "installed"
    assert net.visible(leaf) == expected(net, "Sold")


@pytest.mark.parametrize("epochs", [0, 1])
def test_without_a_new_epoch_nothing_changes(net: Net, epochs: int) -> None:
    """The disk is full when it is built, or when it would take over."""
    home = net.homes["Sold"]
    bench, bulk = Bench(net, home), as_of_now(net, home, "Sold")
    first = net.hosts[home].hosted["Sold"].component
    bench.hold("Sold")

    def next_epoch() -> int:
        nonlocal epochs
        epochs -= 1
        if epochs < 0:
            raise LogError("no room")
        return next(net.epochs)

    bench.installing._next_epoch = net.hosts[home]._next_epoch = next_epoch
    data = codec.encode(bulk.to_wire())
    assert bench.installing.part(ME, "Sold", 0, len(data), data) is None
    bench.build("Sold")
    bench.settle("Sold")
    status = bench.installing.status()["Sold"]
    assert (status["state"], status["reason"]) == ("failed", "no room")
    assert net.hosts[home].hosted["Sold"].component is first
    assert second_name("Sold") not in net.hosts[home].hosted


def test_one_that_starts_again_meanwhile_has_a_lower_epoch_than_what_takes_over(net: Net) -> None:
    home = net.homes["Sold"]
    bench, leaf = Bench(net, home), net.subscribe("Sold", lambda _: None)
    bench.hold("Sold")
    bench.send("Sold", as_of_now(net, home, "Sold"))
    bench.build("Sold")
    host = net.hosts[home]
    host._cannot_go_on(host.hosted["Sold"], "for the test")
    net.pass_time(1_000_000)
    again = host.hosted["Sold"].component.epoch
    assert again > host.hosted[second_name("Sold")].component.epoch
    bench.settle("Sold")
    assert bench.state("Sold") == "installed"
    assert host.hosted["Sold"].component.epoch > again
    publish(net, 10, [(1, 1)])
    net.pass_time(1_000_000)
    assert net.visible(leaf) == expected(net, "Sold")


def test_nothing_is_trimmed_from_the_hold_to_the_switch(program: smile.Program) -> None:
    net = deployed(program, {"Buys": "a", "Sold": "a"})
    net.hosts["a"]._keep_logs = False
    host, log = net.hosts["a"], net.stores["Buys"]
    for sequence in range(10):
        publish(net, sequence, [(sequence % 3, sequence)])

    def checkpointed() -> None:
        """The first one says that everything is durable."""
        component = host.hosted["Sold"].component
        host.arrived("Buys", next(iter(net.ends)), Durable(component.epoch, component.horizon()), None)
        net.carry()

    bench = Bench(net, "a")
    bulk = as_of_now(net, "a", "Sold")
    bench.hold("Sold")
    publish(net, 10, [(1, 1)])
    net.pass_time(500_000)
    checkpointed()
    assert len(log.read(Coverage.prefix(2**62), 100)[1]) == 11
    bench.send("Sold", bulk)
    bench.build("Sold")
    bench.settle("Sold")
    assert bench.state("Sold") == "installed"
    checkpointed()
    assert len(log.read(Coverage.prefix(2**62), 100)[1]) == 0


def test_what_has_left_the_log_ends_the_install_with_the_reason(program: smile.Program) -> None:
    net = deployed(program, {"Buys": "a", "Sold": "a"})
    publish(net, 0, [(1, 1)])
    bulk = as_of_now(net, "a", "Sold")
    publish(net, 1, [(1, 2)])
    net.pass_time(500_000)
    net.stores["Buys"].trim(net.hosts["a"].hosted["Sold"].component.horizon())
    bench = Bench(net, "a")
    bench.install("Sold", bulk)
    status = bench.installing.status()["Sold"]
    assert status["state"] == "failed"
    assert "as of a later tick" in status["reason"]
    assert net.rows_of("a", "Sold").select([0]).rows() == [(1, 3, 2)]  # the first one serves on
    assert not net.hosts["a"].hosted["Buys"].second_edges


def broken(change: Callable[[Checkpoint], Checkpoint]) -> Callable[[Checkpoint], bytes]:
    return lambda checkpoint: codec.encode(change(checkpoint).to_wire())


DAMAGED: dict[str, tuple[Callable[[Checkpoint], bytes], str]] = {
    "garbage": (lambda _: b"x" * 1_000, "not a checkpoint"),
    "cut off": (lambda one: codec.encode(one.to_wire())[:-1], "length or checksum"),
    "no bulk": (broken(lambda one: replace(one, bulk_horizon=None)), "not a bulk install"),
    "other floors": (broken(lambda one: replace(one, drop_floor=0)), "not a bulk install"),
    "another component": (broken(lambda one: replace(one, component="Kinds")), "a checkpoint of Kinds"),
    "no rows": (broken(lambda one: replace(one, state={})), "another kernel"),
    "other edges": (broken(lambda one: replace(one, edges=())), "in-edges"),
}


@pytest.mark.parametrize("damage", list(DAMAGED))
def test_what_is_no_state_of_this_component_is_refused_and_changes_nothing(net: Net, damage: str) -> None:
    home = net.homes["Sold"]
    bench, (damaged, reason) = Bench(net, home), DAMAGED[damage]
    data = damaged(as_of_now(net, home, "Sold"))
    first = net.hosts[home].hosted["Sold"].component
    bench.hold("Sold")
    assert bench.installing.part(ME, "Sold", 0, len(data), data) is None
    bench.build("Sold")
    status = bench.installing.status()["Sold"]
    assert (status["state"], reason in status["reason"]) == ("failed", True), status
    assert net.hosts[home].hosted["Sold"].component is first
    assert not bench.far.attached
    bench.install("Sold", as_of_now(net, home, "Sold"))  # and the next one may come
    assert bench.state("Sold") == "installed"


def test_a_state_older_than_what_was_acknowledged_before_the_hold_is_refused(net: Net) -> None:
    """Mistake 29."""
    home = net.homes["Sold"]
    bulk = as_of_now(net, home, "Sold")
    assert bulk.bulk_horizon is not None
    bench = Bench(net, home, Shelf(bulk.bulk_horizon + 1))
    bench.install("Sold", bulk)
    assert "Compute it as of that tick or a later one" in bench.installing.status()["Sold"]["reason"]


@pytest.mark.parametrize("view", ["Sold", "Leaders"])
def test_a_state_as_of_a_tick_that_has_not_passed_is_refused(net: Net, view: str) -> None:
    """What its streams still have up to then would be counted by nobody."""
    home = net.homes[view]
    bench, bulk = Bench(net, home), as_of_now(net, home, view)
    now_tick = (net.clock.wall_us() + 1) * 1024 - 1
    counts = tuple(len(edge.coverage) for edge in bulk.edges)
    bench.install(view, bulk_install(view, counts, now_tick + 1, bulk.state))
    status = bench.installing.status()[view]
    assert status["state"] == "failed"
    assert "has not passed yet" in status["reason"]
    leaf = net.subscribe(view, lambda _: None)
    publish(net, 10, [(1, 100)])
    net.pass_time(500_000)
    assert net.visible(leaf) == expected(net, view)
    bench.install(view, as_of_now(net, home, view))
    assert bench.state(view) == "installed"


def test_what_a_stream_with_a_faster_clock_has_told_has_passed(net: Net) -> None:
    home = net.homes["Sold"]
    bench, bulk = Bench(net, home), as_of_now(net, home, "Sold")
    bench.installing._clock = replace(net.clock, wall_us=lambda: 0)
    bench.install("Sold", bulk)
    assert bench.state("Sold") == "installed"


def test_a_broker_that_stops_while_it_builds_leaves_the_process_as_it_was(net: Net) -> None:
    home = net.homes["Sold"]
    bench, interval_s = Bench(net, home), sys.getswitchinterval()
    bench.hold("Sold")
    bench.send("Sold", as_of_now(net, home, "Sold"))
    assert sys.getswitchinterval() < interval_s
    bench.installing.close()
    assert (sys.getswitchinterval(), gc.isenabled()) == (interval_s, True)


def test_requests_that_do_not_fit_are_refused(net: Net) -> None:
    bench = Bench(net, net.homes["Sold"])
    installing = bench.installing

    def code(refusal: tuple[str, str] | None) -> str:
        assert refusal is not None
        return refusal[0]

    assert code(installing.hold(ME, "Buys", "d")) == "unknown-component"
    assert code(installing.hold(ME, "Nobody", "d")) == "unknown-component"
    assert code(installing.hold(ME, "Sold", "other")) == "other-deployment"
    assert code(installing.part(ME, "Sold", 0, 10, b"x")) == "not-held"
    bench.hold("Sold")
    assert installing.hold(ME, "Sold", "d") is None  # a sign of life
    assert code(installing.hold(b"somebody", "Sold", "d")) == "busy"
    assert code(installing.part(b"somebody", "Sold", 0, 10, b"x")) == "not-held"
    assert code(installing.part(ME, "Sold", 1, 10, b"x")) == "bad-part"
    assert bench.state("Sold") == "failed"
    bench.hold("Sold")
    assert code(installing.part(ME, "Sold", 0, 2**40, b"x")) == "too-large"
    bench.hold("Sold")
    assert installing.part(ME, "Sold", 0, 10, b"12345") is None
    assert code(installing.part(ME, "Sold", 5, 10, b"123456")) == "bad-part"


def test_whoever_leaves_or_falls_silent_before_the_end_gives_up(net: Net) -> None:
    bench = Bench(net, net.homes["Sold"])
    bench.hold("Sold")
    bench.installing.release(b"somebody")
    assert bench.state("Sold") == "held"
    bench.installing.release(ME)
    assert bench.state("Sold") == "failed"
    bench.hold("Sold")
    net.now_us += INSTALL_SILENT_US + 1
    bench.installing.poll()
    assert bench.state("Sold") == "failed"
    assert all(not one.second_edges for host in net.hosts.values() for one in host.hosted.values())


def test_a_hold_waits_until_senders_elsewhere_know_of_it(program: smile.Program) -> None:
    net = deployed(program, {"Buys": "a", "Sold": "b"})
    bench = Bench(net, "b")
    bench.far.is_slow = True
    assert bench.installing.hold(ME, "Sold", "d") is None
    bench.installing.poll()
    assert bench.state("Sold") == "holding"
    refusal = bench.installing.part(ME, "Sold", 0, 10, b"x")
    assert refusal is not None
    assert refusal[0] == "not-held"
    bench.far.is_slow = False
    bench.installing.poll()
    assert bench.state("Sold") == "held"


def test_a_view_that_lost_ticks_has_not_failed_while_its_state_is_computed(net: Net) -> None:
    bench = Bench(net, net.homes["Sold"])
    hosted = net.hosts[bench.host].hosted
    hosted["Sold"].lost_ticks = True
    assert failures_of(hosted, ("Sold",))["Sold"][0] == "lost"
    bench.hold("Sold")
    assert failures_of(hosted, ("Sold",)) == {}
    bench.installing.release(ME)
    assert failures_of(hosted, ("Sold",))["Sold"][0] == "lost"


def test_a_sender_that_starts_again_is_asked_again(net: Net) -> None:
    home = net.homes["Sold"]
    bench = Bench(net, home)
    bench.hold("Sold")
    bench.send("Sold", as_of_now(net, home, "Sold"))
    host = net.hosts["a"]
    host._cannot_go_on(host.hosted["Buys"], "for the test")
    bench.build("Sold")
    bench.settle("Sold")
    publish(net, 10, [(1, 1)])
    net.pass_time(2_000_000)
    bench.installing.poll()
    assert bench.state("Sold") == "installed"
    rows = net.rows_of(home, "Sold")
    assert sorted(rows.select(rows.visible_slots()).rows()) == expected(net, "Sold")


def test_a_large_state_is_taken_apart_in_slices(program: smile.Program) -> None:
    net = deployed(program, PLACES["one host"])
    component = build_component(net.plan, "Leaders")
    component.handle(Restarted(1))
    assert isinstance(component, StateComponent)
    index = component.operator.rows.index
    index.update({(number,): number for number in range(3 * SLICE)})
    assert len(list(dismantled(component))) == 3
    assert not index
