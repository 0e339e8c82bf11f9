"""Components that start from a state computed by Spark: their checkpoints at a horizon (rule C6 of docs/protocol.md).

Only components that read events need one. What reads relations of state only starts empty and takes over a complete
snapshot of these, as after any restart; so it is computed here only where a component reads both, by the operators
themselves, which are fed what the operators before them hold. Whoever calls hands in a session, and knows that the
sources have every event up to the horizon and that no further one can appear below it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from compiler.bulk.expressions import spark_type
from compiler.bulk.state import EventRows, GroupTotals, PartStates, StateProgram, state_program
from compiler.bulk.writer import NotInBulk
from compiler.kernels.module import load_functions
from compiler.plan.build import ProgramPlan
from mpl.typed import Column
from mpl.types import IntType
from runtime.batch import Batch
from runtime.columns import Same
from runtime.kernels.operator import KernelOperator
from runtime.operators.errors import OperatorError
from runtime.operators.group_by import GroupBy
from runtime.operators.operator import Operator
from runtime.plan import Component, Plan
from runtime.protocol.checkpoint import Checkpoint, bulk_install
from runtime.protocol.coverage import Coverage
from smile.bulk.recompute import events_in, spark_errors
from smile.bulk.sources import Sources
from smile.errors import SmileError
from smile.program import Program


def needing_state(program: Program, names: Collection[str]) -> tuple[str, ...]:
    """Of all components that these views need, those that read events: they cannot ask anybody for their state."""
    needed = program.plan.plan_for(names).components
    return tuple(component.name for component in needed if _reads_events(program.plan, component))


def not_in_bulk(program: Program, components: Collection[str]) -> dict[str, str]:
    """Which of these components Spark cannot make a state for, and why. Starts no Spark."""
    found: dict[str, str] = {}
    for name in components:
        try:
            for one in _folded_for(program.plan, name):
                state_program(program.graph, program.plan, one)
        except NotInBulk as reason:
            found[name] = str(reason)
    return found


def make_checkpoints(
    spark: Any,
    program: Program,
    components: Collection[str],
    sources: Sources,
    as_of: int,
    tables: Mapping[str, str] | None = None,
) -> dict[str, Checkpoint]:
    """For each of these components, all of which read events, a checkpoint as of this tick; `NotInBulk` if that cannot
    be. `tables`: for each table the name of its log; one that is not named has no row up to this tick."""
    from runtime.bulk.install import collected

    base = Bases(spark, program, sources, as_of, tables or {}).frame
    with spark_errors(", ".join(components)):
        making = Making(program, components, as_of, base)
        found = collected(making.frames)
    try:
        return making.checkpoints(found)
    except OperatorError as failure:
        raise SmileError(f"the state as of tick {as_of} cannot be computed: {failure}") from failure


def _reads_events(plan: ProgramPlan, component: Component) -> bool:
    return any(plan.components[edge.sender].relation.is_event for edge in component.in_edges)


def _folded_for(plan: ProgramPlan, name: str) -> list[str]:
    """The components whose state Spark folds from events, to know the state of this one."""
    found, waiting = dict[str, None](), [name]
    while waiting:
        component = plan.components[waiting.pop()]
        if component.relation.is_event:
            continue
        if _reads_events(plan, component):
            found[component.name] = None
        waiting.extend(edge.sender for edge in component.in_edges)
    return list(found)


class Making:
    """The making of some checkpoints: first `frames`, which Spark has to compute, then `checkpoints` of what it found.

    `base` gives the events of a stream or table up to `as_of`, as the bulk program names its columns.
    """

    def __init__(self, program: Program, components: Collection[str], as_of: int, base: Callable[[str], Any]) -> None:
        from runtime.bulk.evaluate import evaluate_state

        self._plan = program.plan
        self._components = components
        self._as_of = as_of
        self._operators: dict[str, Operator] = {}
        self._programs: dict[str, StateProgram] = {}
        self.frames: list[Any] = []
        for name in dict.fromkeys(one for component in components for one in _folded_for(self._plan, component)):
            made = self._programs[name] = state_program(program.graph, self._plan, name)
            self.frames += evaluate_state(
                made.load(), made.constants, {source: base(source) for source in made.sources}
            )

    def checkpoints(self, tables: Sequence[Any]) -> dict[str, Checkpoint]:
        """`tables`: the rows of each frame, as Arrow."""
        rest = iter(tables)
        folded = {name: list(islice(rest, len(program.results))) for name, program in self._programs.items()}
        return {name: self._checkpoint(name, folded) for name in self._components}

    def _checkpoint(self, name: str, folded: Mapping[str, list[Any]]) -> Checkpoint:
        component = self._plan.components[name]
        lineages = Plan(self._plan.needed_for([name])).lineages
        counts = tuple(len(lineages[edge.sender]) for edge in component.in_edges)
        if component.relation.is_event:
            held: list[list[list[object]]] = [[[] for _ in component.relation.columns] for _ in lineages[name]]
            return bulk_install(name, counts, self._as_of, {"held": held, "trimmed_tick": self._as_of})
        return bulk_install(name, counts, self._as_of, self._operator(name, folded).export())

    def _operator(self, name: str, folded: Mapping[str, list[Any]]) -> Operator:
        """With its state as of the horizon, made once."""
        if name not in self._operators:
            component = self._plan.components[name]
            senders = [self._plan.components[edge.sender] for edge in component.in_edges]
            operator = component.operator.build(tuple(one.relation for one in senders), component.relation)
            assert isinstance(operator, Operator), f"{name} is a relation of events"
            if name in folded:
                _give(operator, self._programs[name], folded[name])
            for edge, sender in enumerate(senders):
                if not sender.relation.is_event:
                    rows = self._operator(sender.name, folded).rows
                    shown = rows.select(rows.visible_slots())
                    # What they depend on is not known any more than in the checkpoint; `NO_TICK` would be no news.
                    operator.take(edge, replace(shown, max_ticks=Same(self._as_of, len(shown))))
            self._operators[name] = operator
        return self._operators[name]


def _give(operator: Operator, program: StateProgram, tables: Sequence[Any]) -> None:
    """Give a fresh operator what Spark has made of the events."""
    from runtime.bulk.install import array_of, event_batches, plain_columns
    from runtime.kernels.install import PartState, install_parts

    parts: list[PartState] = []
    for result, table in zip(program.results, tables, strict=True):
        match result:
            case EventRows():
                for batch in event_batches(table):
                    operator.take(result.edge, batch)
            case GroupTotals():
                assert isinstance(operator, GroupBy)
                operator.install(table.num_rows, plain_columns(table))
            case PartStates():
                assert isinstance(operator, KernelOperator)
                width = len(operator.spec.keys)
                kinds = [*operator.spec.keys, *(operator.spec.state[number].type for number in result.states)]
                arrays = [array_of(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
                parts.append(
                    PartState(result.part, arrays[:width], dict(zip(result.states, arrays[width:], strict=True)))
                )
    if isinstance(operator, KernelOperator):
        assert program.settling is not None, "a kernel has a settling loop"
        install_parts(operator, parts, load_functions(program.settling, 1)[0])


class Bases:
    """Streams and tables of a program, as archive and logs have them up to a tick."""

    def __init__(self, spark: Any, program: Program, sources: Sources, as_of: int, tables: Mapping[str, str]) -> None:
        self._spark = spark
        self._declared = program.checked.program
        self._sources = sources
        self._as_of = as_of
        self._logs = {**{name: name for name in self._declared.streams}, **tables}
        self._frames: dict[str, Any] = {}

    def frame(self, name: str) -> Any:
        """Of a table also the tick of each row, which no column of it names."""
        if name not in self._frames:
            self._frames[name] = self._table(name) if name in self._declared.tables else self._events(name)
        return self._frames[name]

    def batches(self, name: str) -> Iterator[Batch]:
        """The same in the order of ticks, as operators take them: column 0 is the tick."""
        from runtime.bulk.install import event_batches

        if name in self._declared.tables:
            tick, names = "tick", [f"c{at}" for at in range(len(self._declared.tables[name].schema.columns))]
        else:
            columns = self._declared.streams[name].schema.columns
            (tick,) = (f"c{at}" for at, column in enumerate(columns) if column.is_tick)
            names = [f"c{at}" for at in range(len(columns)) if f"c{at}" != tick]
        with spark_errors(name):
            events = self.frame(name).select(tick, *names).orderBy(tick).toArrow()
        return event_batches(events)

    def _events(self, name: str) -> Any:
        schema, within = self._declared.streams[name].schema, Coverage.prefix(self._as_of)
        return events_in(self._spark, schema, name, self._sources, within)

    def _table(self, name: str) -> Any:
        schema = self._declared.tables[name].schema
        columns = (*schema.columns, Column("tick", IntType(), is_tick=True))
        if name in self._logs:
            within = Coverage.prefix(self._as_of)
            frame = events_in(self._spark, replace(schema, columns=columns), self._logs[name], self._sources, within)
        else:
            kinds = ", ".join(f"c{at} {spark_type(column.type)}" for at, column in enumerate(columns))
            frame = self._spark.createDataFrame([], kinds)
        return frame.withColumnRenamed(f"c{len(schema.columns)}", "tick")
