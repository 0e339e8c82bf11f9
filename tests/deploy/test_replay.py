"""States by replay equal those of a system that saw the same events, whatever the components read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import smile
from runtime.batch import Batch
from runtime.log.reader import LogReader
from runtime.plan import Plan
from runtime.protocol.build import build_component
from runtime.protocol.events import Restarted
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.state_component import StateComponent
from smile.bulk.replay import replayed_checkpoints
from smile.errors import SmileError
from smile.views import ViewReader

PROGRAM = """
stream Buys (item int, qty int[0..1000]);
stream Items (item int, name text) unique item;
view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;
view Kinds = from Buys |> project item |> distinct;
view Named = from Items |> join Buys using item;
view Leaders = from Sold |> top 2 by total desc;
"""


def test_a_state_by_replay_is_that_of_a_system_that_saw_the_same(tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    with smile.run(program, data=tmp_path) as system:
        system.publish_many("Items", {"item": [1, 2], "name": ["x", "y"]})
        for n in range(50):
            system.publish("Buys", {"item": n % 3, "qty": n})
        live = {view: sorted(map(str, system.rows(view))) for view in program.plan.views}
    with LogReader(tmp_path) as reader:
        streams = reader.streams()
        as_of = max(stream.last_tick for stream in streams.values()) + 10

        def read(name: str) -> Iterator[Batch]:
            return reader.batches(streams[name], 0, streams[name].last_tick)

        views = {view: plan.component for view, plan in program.plan.views.items()}
        made = replayed_checkpoints(program, list(views.values()), as_of, read)
    plan = Plan(tuple(program.plan.components.values()))
    for view, name in views.items():
        component = build_component(plan, name)
        component.handle(Restarted(1, 0, made[name]))
        assert isinstance(component, StateComponent)
        assert component.coverage() == LineageCoverage.prefix(len(plan.lineages[name]), as_of)
        rows = component.operator.rows
        shown = ViewReader(program.plan.views[view])
        found = shown.rows(rows.select(rows.visible_slots()))
        assert sorted(map(str, found)) == live[view], view


def test_events_that_cannot_be_computed_are_said() -> None:
    program = smile.compile("stream S (a int, b int);\nview V = from S |> aggregate t := sum(a / b) group by b;")

    def read(_: str) -> Iterator[Batch]:
        yield Batch.events([17], [[1], [0]])

    with pytest.raises(SmileError, match="cannot be computed from all events"):
        replayed_checkpoints(program, ["V"], 100, read)
