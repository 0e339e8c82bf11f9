"""Goal: a kernel is the operators that it stands for.

The same batches, out of order within and among each other, go through a kernel and, event by event as a kernel does it,
through the chain of operators. Rows that are shown are equal after every batch; touched rows are at least those of the
chain; `max_tick` is at least that of the chain. At the end the rows are those of the reference interpreter, which
shares no code with either.
"""

from __future__ import annotations

import pytest

from runtime.batch import Batch
from runtime.kernels.operator import KernelOperator
from runtime.operators.operator import Operator
from runtime.plan import ColumnKind
from runtime.values import Key, Value
from tests.kernels.random_stars import RandomStar
from tests.kernels.stars import STREAMS, VIEWS, Case, Chain, Events, case, fused
from tests.reference.relations import evaluate_program

HISTORIES = 15
BATCHES = 14
RANDOM_STARS = 40


def shown(operator: Operator) -> dict[Key, tuple[tuple[Value, ...], int]]:
    rows = operator.rows
    return {rows.key_at(slot): (rows.row_at(slot), rows.max_tick[slot]) for slot in rows.visible_slots()}


def compare(kernel: KernelOperator, chain: Operator, kernel_touched: list[int], touched: list[int]) -> None:
    mine, theirs = shown(kernel), shown(chain)
    assert {key: row for key, (row, _) in mine.items()} == {key: row for key, (row, _) in theirs.items()}
    for key, (_, tick) in theirs.items():
        assert mine[key][1] >= tick, f"max_tick of {key}"
    reached = {kernel.rows.key_at(slot) for slot in kernel_touched}
    dead = kernel.table.arrays["dead"]
    for key in (chain.rows.key_at(slot) for slot in touched):
        slot = kernel.rows.slot_of(key)
        assert key in reached or (slot >= 0 and dead[slot]), f"{key} was not touched"
    compare_tombstones(kernel, chain)


def compare_tombstones(kernel: KernelOperator, chain: Operator) -> None:
    """T1: a row that the chain holds invisibly is held here too, with its final columns."""
    columns = chain.relation.columns
    final = [n for n, column in enumerate(columns) if column.kind is ColumnKind.FINAL or n < chain.relation.key_width]
    for slot in chain.rows.tombstones():
        row = chain.rows.row_at(slot)
        here = kernel.rows.slot_of(row[: chain.relation.key_width])
        assert here >= 0
        mine = kernel.rows.row_at(here)
        assert [mine[n] for n in final if row[n] is not None] == [row[n] for n in final if row[n] is not None]


@pytest.mark.parametrize("name", VIEWS)
def test_same_rows_after_every_batch(name: str, cases: int) -> None:
    star = case(name)
    seen = 0
    for seed in range(HISTORIES * cases):
        events = Events(star, seed)
        kernel, chain = star.kernel(), Chain(star.plan, star.component.name)
        for edge, batch in events.batches(BATCHES, rows_max=1 + seed % 9):
            kernel_touched = list(kernel.take(edge, batch))
            assert len(set(kernel_touched)) == len(kernel_touched)
            compare(kernel, chain.output, kernel_touched, chain.take_one_by_one(star.streams[edge], batch))
            check_changes(kernel)
            seen += len(kernel.changes())
        assert as_of_reference(star, events) == set(displayed(star, kernel))
    assert seen > HISTORIES, "too few changes to show anything"


def test_random_stars(cases: int) -> None:
    changes = 0
    for seed in range(RANDOM_STARS * cases):
        text = STREAMS + RandomStar(seed).text
        try:
            star = fused(text)
            events = Events(star, seed, keys=4)
            kernel, chain = star.kernel(), Chain(star.plan, star.component.name)
            for edge, batch in events.batches(BATCHES, rows_max=3 + seed % 9):
                kernel_touched = list(kernel.take(edge, batch))
                compare(kernel, chain.output, kernel_touched, chain.take_one_by_one(star.streams[edge], batch))
                check_changes(kernel)
                changes += len(kernel.changes())
            assert as_of_reference(star, events) == set(displayed(star, kernel))
        except AssertionError as broken:
            raise AssertionError(f"seed {seed}: {text}") from broken
    assert changes > 10 * RANDOM_STARS


def check_changes(kernel: KernelOperator) -> None:
    """The last change of every row says what is shown now."""
    changes = kernel.changes()
    rows = list(zip(*changes.columns(), strict=True)) if len(changes) else []
    last = dict(zip(changes.slots.tolist(), zip(rows, changes.visible.tolist(), strict=True), strict=True))
    for slot, (row, visible) in last.items():
        assert kernel.rows.visible[slot] == bool(visible)
        if visible:
            assert row == kernel.rows.row_at(slot)


def displayed(star: Case, kernel: KernelOperator) -> list[tuple[Value, ...]]:
    """The shown rows by the columns of the schema; averages as pairs."""
    cells = star.plan.parts[star.component.name].layout.cells
    rows = []
    for slot in kernel.rows.visible_slots():
        physical = kernel.rows.row_at(slot)
        row: list[Value] = []
        for cell in cells:
            parts = [physical[number] for number in cell.columns]
            match cell.form, parts:
                case "difference", (int(up), int(down)):
                    row.append(up - down)
                case "average", _:
                    row.append(None)  # the quotient is not the kernel's business
                case _:
                    row.append(parts[0])
        rows.append(tuple(row))
    return rows


def as_of_reference(star: Case, events: Events) -> set[tuple[Value, ...]]:
    program = star.graph.as_program()
    logged = {}
    for stream, rows in events.logged.items():
        cells = star.plan.streams[stream].side.layout.cells
        logged[stream] = [
            tuple(row[cell.columns[0]] for cell in cells) for row in sorted(rows, key=lambda row: int(row[0] or 0))
        ]
    rows = evaluate_program(program, logged, {})[star.component.name]
    averages = [n for n, cell in enumerate(star.plan.parts[star.component.name].layout.cells) if cell.form == "average"]
    return {tuple(None if n in averages else value for n, value in enumerate(row)) for row in rows}


def test_rows_of_a_wrong_kernel_would_be_noticed() -> None:
    """The comparison itself: a kernel that skips an event differs."""
    star = case("totals")
    kernel, chain = star.kernel(), Chain(star.plan, star.component.name)
    for edge, batch in Events(star, 1).batches(4, 5):
        chain.take(star.streams[edge], batch)
        if len(batch) > 1:
            kernel.take(edge, batch.slice(0, len(batch) - 1))
    with pytest.raises(AssertionError):
        compare(kernel, chain.output, [], [])


def test_an_empty_batch_changes_nothing() -> None:
    star = case("tickets")
    kernel = star.kernel()
    assert len(kernel.take(0, Batch.empty(5, events=True))) == 0
    assert len(kernel.changes()) == 0
    assert len(kernel.rows) == 0
