"""Goal: the claims of the analysis hold for programs nobody thought of.

Random programs (`tests/generator/`), random events from few values so that keys meet, known in any order; then as in
`test_knowledge_histories.py`. A program is left at the first row for which an expression has no value.
"""

from __future__ import annotations

from random import Random
from typing import Any

from mpl import typed
from mpl.check import check
from mpl.failures import EvaluationError
from mpl.source import Source
from mpl.types import BoolType, DecimalType, DurationType, EnumType, FloatType, IntType, TextType, TimeType
from tests.generator.program import generate
from tests.mpl.naive_views import Row, rows_of_views
from tests.mpl.test_knowledge_histories import Witness

EVENTS_MAX = 14
PROGRAMS = 300


def a_value(source: Random, column: typed.Column) -> Any:
    if column.nullable and source.random() < 0.3:
        return None
    low, high = column.bounds.low, column.bounds.high
    match column.type:
        case IntType() | DecimalType() | TimeType() | DurationType():
            first = int(low if low is not None else high - 3 if high is not None else -1)
            last = min(first + 3, int(high)) if high is not None else first + 3
            scale = 1_000_000 if isinstance(column.type, TimeType) and high is None else 1
            return source.randint(0, last - first) * scale + first
        case FloatType():
            return source.choice((-1.5, 0.0, 2.0)) if low is None and high is None else float(low or high or 0)
        case BoolType():
            return source.random() < 0.5
        case TextType():
            return source.choice(("a", "b", "ab"))
        case EnumType():
            return source.choice(column.type.values)
        case _:
            raise AssertionError(column.type)


def some_events(source: Random, program: typed.TypedProgram) -> list[tuple[str, Row]]:
    events: list[tuple[str, Row]] = []
    taken: set[tuple[str, tuple[int, ...], Row]] = set()
    for tick in range(source.randint(0, EVENTS_MAX)):
        stream = source.choice(list(program.streams.values()))
        row = tuple(tick if column.is_tick else a_value(source, column) for column in stream.schema.columns)
        marks = {(stream.name, unique, tuple(row[c] for c in unique)) for unique in stream.unique}
        if not marks & taken:
            taken |= marks
            events.append((stream.name, row))
    source.shuffle(events)
    return events


def table_rows(source: Random, table: typed.Table) -> list[Row]:
    rows = [tuple(a_value(source, column) for column in table.schema.columns) for _ in range(4)]
    return list({tuple(row[c] for c in table.schema.key): row for row in rows}.values())


def hold_program(seed: int) -> bool:
    """Holds every claim about program `seed` against one history; False if it was left early."""
    checked = check(Source(f"seed{seed}.mpl", generate(seed, 6).text)).require()
    source = Random(f"history {seed}")
    tables = {name: table_rows(source, table) for name, table in checked.program.tables.items()}
    known: dict[str, list[Row]] = {name: [] for name in checked.program.streams}
    witnesses = [Witness(name, checked) for name in checked.program.views]
    for stream, row in [("", ()), *some_events(source, checked.program)]:
        if stream:
            known[stream] = [*known[stream], row]
        try:
            views = rows_of_views(checked.program, known, tables)
        except EvaluationError:
            return False
        for witness in witnesses:
            try:
                witness.see(views[witness.name])
            except AssertionError as wrong:
                raise AssertionError(f"program {seed}: {wrong}") from wrong
    return True


def test_claims_hold_for_random_programs(cases: int) -> None:
    completed = sum(hold_program(seed) for seed in range(PROGRAMS * cases))
    assert completed > PROGRAMS * cases // 2, "too many programs were left early to prove anything"
