"""Goal: a hub's source tells nothing before its subscriber is there, nothing that does not continue what was told, and
rows that a token held back at the first cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import smile
from runtime.batch import Batch
from runtime.plan import Emit, Plan
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import Deliver, Instruction, MessageArrived, Restarted, Stepped
from runtime.protocol.leaf import Leaf
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge, Snapshot
from smile.delivery import leaf_of
from smile.remote.source import LeafSource
from smile.remote.token import held_rows

PROGRAM = smile.compile(
    "stream S (item int, qty int); view Sold = from S |> aggregate total := sum(qty) group by item;"
)


class OneLeaf:
    """A connection that has one leaf, fed by the test."""

    def __init__(self) -> None:
        self.failure: str | None = None
        self.failure_code = ""
        self.epoch = 1

    def open_leaf(self, plan: Plan, leaf: Any, told: Callable[[Any], None], *, kept: Any, **_: object) -> OneLeaf:
        self.plan, self.name, self.told, self.edge = plan, leaf.name, told, leaf.in_edges[0].name
        self.leaf = Leaf(plan, leaf.name)
        self.leaf.handle(Restarted(self.epoch, checkpoint=kept))
        return self

    def feed(self, epoch: int, horizon: int, *rows: tuple[int, int, bool]) -> None:
        """A complete snapshot of the view, as of this horizon. Row n depends on nothing after tick 10 n."""
        batch = self._batch([10 * item for item, _, _ in rows], *rows)
        known = LineageCoverage.prefix(1, horizon)
        message = Snapshot(epoch, 1, known, -1, True, -1, batch, None)
        self._tell(self.leaf.handle(MessageArrived(self.edge, message)))

    def learn_with_a_gap(self, *rows: tuple[int, int, bool]) -> None:
        """The next step of epoch 1, which knows ticks up to 10, and 30 to 40: these rows depend on the last."""
        known = LineageCoverage([Coverage.of((0, 10), (30, 40))])
        message = Knowledge(1, 1, 2, known, self._batch([40] * len(rows), *rows), None, -1)
        self._tell(self.leaf.handle(MessageArrived(self.edge, message)))

    def _batch(self, ticks: list[int], *rows: tuple[int, int, bool]) -> Batch:
        width = self.leaf.relation.width
        values = [(item, *[total] * (width - 1)) for item, total, _ in rows]
        return Batch.of_rows(width, values, ticks, [visible for _, _, visible in rows])

    def _tell(self, instructions: list[Instruction]) -> None:
        for one in instructions:
            if isinstance(one, Deliver | Stepped):
                self.told(one)

    def run(self, function: Callable[[Leaf], Any]) -> Any:
        return function(self.leaf)

    def close(self) -> None:
        pass


def opened(kept: Checkpoint | None = None, held: Batch | None = None) -> tuple[OneLeaf, LeafSource, list[Deliver]]:
    connection, told = OneLeaf(), []  # type: ignore[var-annotated]
    plan = PROGRAM.plan.views["Sold"]
    source = LeafSource(connection, PROGRAM.plan, plan, "digest", kept, held)  # type: ignore[arg-type]
    source.attach(leaf_of(plan, Emit.AS_OF_HORIZON), told.append, wants_horizon=True)
    return connection, source, told


def shown(told: Deliver) -> list[tuple[object, bool]]:
    return [(key[0], bool(visible)) for key, visible in zip(told.rows.keys(1), told.rows.visible, strict=True)]


def test_a_resumed_leaf_waits_for_its_subscriber() -> None:
    first, _, told = opened()
    first.feed(1, 10, (1, 5, True))
    assert [one.kind for one in told] == ["snapshot"]
    again, source, told = opened(first.leaf.checkpoint())
    again.feed(2, 20, (1, 5, True), (2, 7, True))
    assert told == []
    source.begin()
    assert [shown(one) for one in told] == [[(2, True)]], "only what is new since the checkpoint"
    again.feed(3, 30, (1, 5, True), (2, 7, True), (3, 1, True))
    assert len(told) == 2


def test_rows_that_were_held_back_are_told_at_the_first_cut() -> None:
    """Row 2 and the end of row 1 are known to the leaf, but its rows were no cut when the token was taken."""
    first, _, told = opened()
    first.feed(1, 10, (1, 5, True))
    first.learn_with_a_gap((2, 7, True), (1, 5, False))
    assert len(told) == 1
    held = held_rows(first.leaf)
    assert held is not None
    assert len(held) == 2
    again, source, told = opened(first.leaf.checkpoint(), held)
    source.begin()
    again.feed(2, 50, (2, 7, True))
    (cut,) = told
    assert sorted(shown(cut)) == [(1, False), (2, True)]
    assert len(cut.final) == len(cut.rows)


def test_a_leaf_that_had_to_start_again_tells_nobody() -> None:
    connection, source, told = opened()
    connection.feed(1, 10, (1, 5, True))
    assert (len(told), source.failure) == (1, None)
    connection.epoch = 2
    connection.leaf = Leaf(connection.plan, connection.name)
    connection.leaf.handle(Restarted(2))
    connection.feed(2, 90, (9, 9, True))
    assert len(told) == 1
    assert "subscribe anew" in str(source.failure)


def test_a_leaf_that_could_not_read_its_checkpoint_tells_nobody() -> None:
    first, _, _ = opened()
    first.feed(1, 10, (1, 5, True))
    connection, source, told = opened(first.leaf.checkpoint())
    source.begin()
    connection.leaf = Leaf(connection.plan, connection.name)
    connection.leaf.handle(Restarted(connection.epoch))
    connection.feed(2, 20, (1, 5, True))
    assert told == []
    assert "subscribe anew" in str(source.failure)


@pytest.mark.parametrize(("code", "kind"), [("subscribe", smile.NotAllowed), ("other-deployment", smile.SmileError)])
def test_why_brokers_do_not_feed_it(code: str, kind: type[smile.SmileError]) -> None:
    connection, source, _ = opened()
    connection.failure, connection.failure_code = "no", code
    assert type(source.failure) is kind
