"""Installs at any time, over links that lose, beside components that start again: nothing false, and in the end all."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

import smile
from runtime.broker.hosted import SECOND
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.state_component import StateComponent
from tests.broker.hosts import Letter
from tests.broker.test_install import ME, PLACES, PROGRAM, VIEWS, Bench, Watcher, as_of_now, deployed, expected, publish

ACTIONS = 60
SEEDS = 8


@pytest.fixture(scope="module")
def program() -> smile.Program:
    return smile.compile(PROGRAM)


class World:
    """One net, one subscriber of each view, and installs under way."""

    def __init__(self, program: smile.Program, seed: int) -> None:
        self.rng = random.Random(seed)
        self.net = deployed(program, PLACES[self.rng.choice(list(PLACES))])
        self.is_for_nobody = self.net.lose
        self.benches = {home: Bench(self.net, home) for home in dict.fromkeys(self.net.homes.values())}
        self.watchers = {view: Watcher() for view in VIEWS}
        self.leaves = {view: self.net.subscribe(view, self.watchers[view].see) for view in VIEWS}
        self.sequence = 0
        self.installed = 0
        self.actions: list[Callable[[], None]] = [
            *[self.publish] * 4,
            *[self.wait] * 3,
            *[self.poll] * 3,
            *[self.begin] * 3,
            self.give_up,
            self.break_one,
            self.lose_some,
            self.lose_nothing,
        ]

    def publish(self) -> None:
        rows = [(self.rng.randrange(5), self.rng.randrange(9)) for _ in range(self.rng.randint(1, 5))]
        publish(self.net, self.sequence, rows)
        self.sequence += 1

    def wait(self) -> None:
        self.net.pass_time(self.rng.choice((50_000, 200_000, 1_000_000)))

    def poll(self) -> None:
        for bench in self.benches.values():
            bench.installing.poll()

    def begin(self) -> None:
        """A state as of now, if the component is at a cut; it may be sent at once or after more has happened."""
        view = self.rng.choice(VIEWS)
        bench = self.benches[self.net.homes[view]]
        if bench.installing.hold(ME, view, "d") is not None:
            return
        self.poll()
        live = self.net.hosts[bench.host].hosted[view].component
        self.net.pass_time(500_000)
        if bench.state(view) != "held" or not isinstance(live, StateComponent) or not live.epoch:
            return
        if live.coverage() != LineageCoverage.prefix(len(live.coverage()), live.horizon()):
            return
        bulk = as_of_now(self.net, bench.host, view) if self._is_at_a_cut(live) else None
        if bulk is None or live is not self.net.hosts[bench.host].hosted[view].component:
            return
        for _ in range(self.rng.randrange(3)):
            self.publish()
        bench.send(view, bulk)
        bench.build(view)

    def _is_at_a_cut(self, live: StateComponent) -> bool:
        """Letters are lost: only without that is it certain that it stays at one while time passes."""
        return self.net.lose is self.is_for_nobody and live.horizon() >= 0

    def give_up(self) -> None:
        self.rng.choice(list(self.benches.values())).installing.release(ME)

    def break_one(self) -> None:
        """A component, a stream or a second one breaks; all but the last start again."""
        host = self.rng.choice(list(self.net.hosts.values()))
        hosted = self.rng.choice(list(host.hosted.values()))
        if hosted.tell is None and hosted.is_running:
            host._cannot_go_on(hosted, "for the test")

    def lose_some(self) -> None:
        self.net.lose = lambda letter: self.is_for_nobody(letter) or self._is_lost(letter)

    def _is_lost(self, letter: Letter) -> bool:
        return self.rng.random() < 0.3

    def lose_nothing(self) -> None:
        self.net.lose = self.is_for_nobody

    def end(self) -> None:
        self.lose_nothing()
        for _ in range(10):
            self.net.pass_time(2_000_000)
            self.poll()
        self.installed = sum(
            one["state"] == "installed" for bench in self.benches.values() for one in bench.installing.status().values()
        )


def test_whatever_happens_beside_an_install_nothing_false_is_told(program: smile.Program) -> None:
    installed = 0
    for seed in range(SEEDS):
        world = World(program, seed)
        for _ in range(ACTIONS):
            world.rng.choice(world.actions)()
        world.end()
        installed += world.installed
        for view in VIEWS:
            assert world.net.visible(world.leaves[view]) == expected(world.net, view), (seed, view)
        for item in range(5):  # sums only rise, and nothing is told twice
            sums = [row[1:3] for row in world.watchers["Sold"].changes if row[0] == item]
            assert all(one < other for one, other in pairwise(sums)), (seed, sums)
        kinds = [row[0] for row in world.watchers["Kinds"].changes]
        assert len(set(kinds)) == len(kinds), seed
        assert not any(name.startswith(SECOND) for host in world.net.hosts.values() for name in host.hosted)
    assert installed >= SEEDS // 2
