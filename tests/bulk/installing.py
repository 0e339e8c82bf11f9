"""Components that start from a state made by Spark, beside components that were fed every event.

`Course` runs a program in one process on logs in memory, notes a horizon on the way, and starts a second engine on the
same logs later, in which all components that read events begin with a checkpoint of that horizon.

    python -m tests.bulk.installing --programs 200
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

import smile
from compiler.bulk.expressions import spark_type
from runtime.bulk.session import SparkSettings, session
from runtime.checkpoints.codec import decode, encode
from runtime.embedded.engine import Engine
from runtime.kernels.spec import KernelSpec
from runtime.log.stream_log import StreamLog
from runtime.plan import Component
from runtime.protocol.build import AnyComponent
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import Event, MessageArrived, Restarted
from runtime.protocol.messages import Events
from runtime.protocol.state_component import StateComponent
from runtime.values import Value
from smile.bulk.install import Making, needing_state, not_in_bulk
from smile.program import Program
from tests.kernels.random_stars import RandomStar
from tests.kernels.stars import STREAMS, VIEWS
from tests.smile.test_against_reference import Run

ROWS_MAX = 10**9
PROGRAMS_PER_JOB = 10
EVENTS = 40
"""Tried before the horizon; rules refuse some."""
Rows = dict[tuple[Value, ...], tuple[Value, ...]]


class InstalledEngine(Engine):
    """`checkpoints` are what components start from. `early` counts events that came to them below their horizon."""

    def __init__(
        self,
        components: Mapping[str, Component],
        logs: Mapping[str, StreamLog],
        checkpoints: Mapping[str, Checkpoint],
        next_epoch: Callable[[], int],
    ) -> None:
        self.checkpoints = checkpoints
        self.early = 0
        super().__init__(components, logs, lambda: time.time_ns() // 1_000, next_epoch, components)

    def _feed(self, component: AnyComponent, event: Event) -> None:
        checkpoint = self.checkpoints.get(component.name)
        if checkpoint is not None and isinstance(event, Restarted):
            event = replace(event, checkpoint=checkpoint)
        elif checkpoint is not None and isinstance(event, MessageArrived) and isinstance(event.message, Events):
            self.early += sum(tick <= checkpoint.edges[0].coverage.horizon() for tick in event.message.rows.max_ticks)
        super()._feed(component, event)


class Course:
    """One program: events up to a horizon, then the making of checkpoints, then more events in two engines."""

    def __init__(self, program: Program, engine: Engine, spark: SparkSession) -> None:
        self.program = program
        self.plan = program.plan
        self.logs = engine.logs
        self.horizon = max((log.open(0).last_tick for log in self.logs.values()), default=-1)
        views = [name for name, view in self.plan.views.items() if view.component not in self.plan.streams]
        wanted = [name for name in needing_state(program, views) if not self._is_failed(engine, name)]
        self.refused = not_in_bulk(program, wanted)
        self.components = [name for name in wanted if name not in self.refused]
        frames = {name: log_frame(spark, program, name, log, self.horizon) for name, log in self.logs.items()}
        self.making = Making(program, self.components, self.horizon, frames.__getitem__)
        self._epochs: Iterator[int] = count(1_000)

    def _is_failed(self, engine: Engine, name: str) -> bool:
        for component in self.plan.needed_for([name]):
            if component.name not in engine.failures:
                engine.start(component.name)
        return any(one.name in engine.failures for one in self.plan.needed_for([name]))

    def start(self, tables: Sequence[Any] | None) -> InstalledEngine:
        """An engine on the same logs: with the checkpoints that these tables make, or without any."""
        checkpoints = {} if tables is None else self.making.checkpoints(tables)
        sent = {
            name: Checkpoint.from_wire(decode(encode(checkpoint.to_wire()))) for name, checkpoint in checkpoints.items()
        }
        engine = InstalledEngine(self.plan.components, self.logs, sent, self._epochs.__next__)
        for name in self.checked():
            engine.start(name)
        return engine

    def checked(self) -> list[str]:
        """Of what the views need, the components that have a checkpoint, and those that read nothing else."""
        known = {*self.components, *self.logs}
        for component in self.plan.needed_for({view.component for view in self.plan.views.values()}):
            if component.in_edges and all(edge.sender in known for edge in component.in_edges):
                known.add(component.name)
        return [name for name in self.plan.components if name in known and name not in self.logs]


def log_frame(spark: SparkSession, program: Program, name: str, log: StreamLog, last: int) -> DataFrame:
    """The events of a log up to a tick, as bulk programs number their columns."""
    plan = program.plan
    base = plan.streams[name] if name in plan.streams else plan.tables[name]
    _, batch, _ = log.read(Coverage.prefix(last), ROWS_MAX)
    layout = base.side.layout
    places = [layout.plain(position) for position in range(len(base.schema.columns))]
    kinds = [f"c{at} {spark_type(column.type)}" for at, column in enumerate(base.schema.columns)]
    if layout.front:
        places, kinds = [*places, 0], [*kinds, "tick bigint"]
    rows = list(zip(*(list(batch.columns[place]) for place in places), strict=True)) if len(batch) else []
    return spark.createDataFrame(rows, ", ".join(kinds))


def collected_together(frames: Sequence[DataFrame]) -> list[Any]:
    """The rows of many small frames by one job: a job costs more than what it computes here."""
    union = None
    for number, frame in enumerate(frames):
        row = F.to_json(F.struct(*frame.columns), {"ignoreNullFields": "false"})
        part = frame.select(F.lit(number).alias("n"), row.alias("r"))
        union = part if union is None else union.unionAll(part)
    found: dict[int, list[Any]] = {}
    for number, row in [] if union is None else union.collect():
        found.setdefault(number, []).append(json.loads(row))
    schemas = (to_arrow_schema(frame.schema) for frame in frames)
    return [pa.Table.from_pylist(found.get(number, []), schema) for number, schema in enumerate(schemas)]


def visible_rows(engine: Engine, name: str) -> Rows:
    component = engine.running[name]
    assert isinstance(component, StateComponent)
    rows = component.operator.rows
    found = rows.select(rows.visible_slots()).rows()
    return {row[: rows.key_width]: row for row in found}


def differences(one: Engine, other: Engine, names: Collection[str]) -> list[str]:
    """What one engine lacks or has otherwise than the other; both have read the same logs."""
    wrong = []
    for name in names:
        component = one.running[name]
        if not component.coverage().contains(other.running[name].coverage()):
            wrong.append(f"{name}: covers {component.coverage()}, not {other.running[name].coverage()}")
        if isinstance(component, StateComponent) and visible_rows(one, name) != visible_rows(other, name):
            wrong.append(f"{name}: shows {visible_rows(one, name)}, not {visible_rows(other, name)}")
    return wrong


def engine_of(system: smile.System) -> Engine:
    return system._engine


def random_runs(seeds: Sequence[int]) -> Iterator[tuple[str, Run]]:
    for seed in seeds:
        with suppress(smile.MplError):  # windows do not run yet
            yield f"program {seed}", Run(seed)


def star_runs(names: Collection[str], seeds: Sequence[int]) -> Iterator[tuple[str, Run]]:
    """Programs whose views are kernels."""
    texts = {name: VIEWS[name] for name in names}
    texts |= {f"star {seed}": RandomStar(seed).text for seed in seeds}
    for number, (name, text) in enumerate(texts.items()):
        yield name, Run(number, STREAMS + text)


def check_runs(spark: SparkSession, runs: Iterable[tuple[str, Run]], counts: Counter[str]) -> Iterator[str]:
    """What differs when programs start from states that Spark has made."""
    courses = []
    for name, run in runs:
        run.publish(EVENTS)
        courses.append((name, run, Course(run.program, engine_of(run.system), spark)))
    tables = iter(collected_together([frame for _, _, course in courses for frame in course.making.frames]))
    for name, run, course in courses:
        own = [next(tables) for _ in course.making.frames]
        counts["programs"] += 1
        counts["components"] += len(course.components)
        counts["kernels"] += sum(
            isinstance(course.plan.components[one].operator, KernelSpec) for one in course.components
        )
        for reason in course.refused.values():
            counts[f"not in bulk: {reason}"] += 1
        for what in followed(run, course, own, counts):
            yield f"{name}: {what}"


def followed(run: Run, course: Course, tables: Sequence[Any], counts: Counter[str]) -> Iterator[str]:
    """At the horizon; with events that come later; and after a restart at the horizon that finds these in the logs.
    Always against components that start from nothing, and in between against the reference."""
    plain, installed = course.start(None), course.start(tables)
    if plain.failures or installed.failures:  # a batch without a value stops what computes it, in both
        counts["stopped"] += 1
        return
    yield from differences(installed, plain, course.checked())
    run.system._engine = installed  # its rules go on
    run.publish(24)
    expected = run.expected()
    if expected is None or installed.failures:
        counts["stopped"] += 1
        return
    for name, view in course.plan.views.items():
        if view.component in course.checked() and not course.plan.components[view.component].relation.is_event:
            counts["rows"] += len(expected[name])
            if in_text(run.system.rows(name)) != in_text(expected[name]):
                yield f"{name}: shows {run.system.rows(name)}, the reference {expected[name]}"
    plain, late = course.start(None), course.start(tables)
    yield from differences(installed, plain, course.checked())
    yield from differences(late, plain, course.checked())
    if installed.early + late.early:
        yield f"{installed.early} and {late.early} events were read that the checkpoints have"


def in_text(rows: Iterable[object]) -> list[str]:
    return sorted(map(str, rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--start", type=int, default=0)
    arguments = parser.parse_args()
    spark = session(SparkSettings(conf={"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}))
    counts: Counter[str] = Counter()
    failed = 0
    for first in range(arguments.start, arguments.start + arguments.programs, PROGRAMS_PER_JOB):
        seeds = range(first, first + PROGRAMS_PER_JOB)
        for wrong in check_runs(spark, chain(random_runs(seeds), star_runs(VIEWS, seeds)), counts):
            failed += 1
            print(wrong, flush=True)
    for what, number in counts.items():
        print(f"{number:6} {what}")
    print(f"{failed} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
