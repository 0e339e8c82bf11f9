"""Goal: the kernel's table answers the protocol's questions, and a batch is applied wholly or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest

from runtime.batch import Batch
from runtime.kernels import journal
from runtime.kernels import rows as kernel_rows
from runtime.kernels.operator import KernelOperator
from runtime.kernels.spec import Meta
from runtime.operators.errors import Overflow
from runtime.protocol.coverage import NO_TICK
from runtime.values import Value
from tests.kernels.stars import STREAMS, VIEWS, Events, case, fused, state_of

SOLD = "view V = from Buys |> aggregate total := sum(qty) group by item;"


def sell(tick: int, item: int, qty: int) -> Batch:
    return Batch.events([tick], [[item], [150], [qty], ["seat"], [0.5], [True]])


def buy(*rows: tuple[int, int, int]) -> Batch:
    """(tick, item, quantity) each."""
    ticks, items, quantities = (list(column) for column in zip(*rows, strict=True))
    width = len(rows)
    return Batch.events(ticks, [items, quantities, [0] * width, ["a"] * width, [0.0] * width])


def wide_batch(operator: KernelOperator, edge: int, batch: Batch) -> Batch:
    """Only the columns that the plan kept of the stream are there."""
    return Batch(batch.columns[: operator.input_relations[edge].width], batch.max_ticks, batch.visible, batch.lineages)


def tickets() -> KernelOperator:
    return case("tickets").kernel()


def take(operator: KernelOperator, edge: int, batch: Batch) -> list[int]:
    return list(operator.take(edge, wide_batch(operator, edge, batch)))


def test_a_row_appears_changes_and_dies() -> None:
    kernel = tickets()
    assert take(kernel, 1, buy((4, 7, 2))) == []  # nobody offers it yet, so there is no row
    assert len(kernel.rows) == 0
    assert kernel.rows.slot_of((7,)) == -1
    (slot,) = take(kernel, 0, sell(8, 7, 5))
    assert kernel.rows.row_at(slot)[:4] == (7, 150, 5, 2)
    assert kernel.rows.max_tick[slot] == 8
    assert take(kernel, 2, buy((6, 7, 1))) == [slot]
    assert kernel.rows.max_tick[slot] == 8  # the tick arrived late
    assert take(kernel, 1, buy((12, 7, 0))) == []  # nothing changed
    assert kernel.rows.max_tick[slot] == 8
    assert take(kernel, 1, buy((16, 7, 2))) == [slot]
    assert kernel.rows.tombstones() == [slot]
    assert take(kernel, 1, buy((20, 7, 2))) == []  # rejected for good
    assert kernel.rows.max_tick[slot] == 16


def test_every_change_of_a_batch_is_listed() -> None:
    kernel = tickets()
    take(kernel, 0, sell(4, 7, 5))
    assert take(kernel, 1, buy((8, 7, 2), (12, 9, 1), (16, 7, 1), (20, 7, 0), (24, 7, 4), (28, 7, 1))) == [0]
    changes = kernel.changes()
    assert changes.slots.tolist() == [0, 0, 0]
    assert changes.visible.tolist() == [1, 1, 0]
    columns = changes.columns()
    assert columns[0] == [7, 7, 7]
    assert columns[2] == [5, 5, 5]
    assert columns[3] == [2, 3, 7]


def test_a_forgotten_tombstone_leaves_the_state() -> None:
    star = fused(
        "stream S (item int, change int);"
        "view N = from S |> aggregate n := count(), d := sum(change) group by item; view V = from N |> where d > 0;"
    )
    kernel = star.kernel()

    def change(tick: int, by: int) -> list[int]:
        return list(kernel.take(0, Batch.events([tick], [[5], [by]])))

    (slot,) = change(4, 2)
    assert kernel.rows.visible[slot]
    assert change(8, -3) == [slot]
    assert kernel.rows.tombstones() == [slot]
    kernel.forget_all([slot])
    assert len(kernel.rows) == 0
    assert kernel.rows.max_tick[slot] == NO_TICK
    assert kernel.rows.tombstones() == []
    assert kernel.rows.above(0) == []
    assert change(12, 0) == [slot]  # reached again: its tombstone is back
    assert kernel.rows.tombstones() == [slot]
    assert change(16, 5) == [slot]
    assert kernel.rows.row_at(slot)[:2] == (5, 4), "the count survived"


def test_overflow_names_view_and_row_and_applies_nothing() -> None:
    stream = "stream S (item int, up int);"
    star = fused(stream + "view V = from S |> aggregate total := sum(up), n := count() group by item;")
    kernel = star.kernel()
    kernel.take(0, Batch.events([1, 2], [[1, 2], [2**62, 5]]))
    before = kernel.export()
    with pytest.raises(Overflow) as failure:
        kernel.take(0, Batch.events([3, 4, 5], [[2, 1, 3], [1, 2**62, 1]]))
    assert failure.value.relation == "V"
    assert "row (S.tick=4, item=1, up=4611686018427387904)" in failure.value.what
    assert str(2**62) in failure.value.what
    assert len(kernel.changes()) == 0
    kernel.take(0, Batch.events([6], [[2], [1]]))
    kernel.take(0, Batch.events([7], [[2], [-1]]))
    rows = before["rows"]
    assert isinstance(rows, dict)
    assert kernel.rows.row_at(kernel.rows.slot_of((1,)))[1:3] == (2**62, 0)
    assert kernel.rows.slot_of((3,)) == -1


def test_growth_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_rows, "SLOTS_MIN", 2)
    monkeypatch.setattr(kernel_rows, "BATCH_MIN", 1)
    kernel = fused(STREAMS + SOLD).kernel()
    rng = Random(5)
    totals: dict[int, int] = {}
    for step in range(1, 200):
        rows = [
            (step * 100 + i, rng.randint(-(2**63), 2**63 - 1), rng.randint(0, 9)) for i in range(rng.randint(1, 40))
        ]
        again = rng.sample(sorted(totals), min(3, len(totals)))
        rows += [(step * 100 + 50 + i, item, 1) for i, item in enumerate(again)]
        touched = take(kernel, step % 2, buy(*rows))
        for _, item, quantity in rows:
            totals[item] = totals.get(item, 0) + quantity
        kernel.rows.mark(touched, step)
    assert {row[0]: row[1] for row in zip(*kernel.rows.columns, strict=True)} == totals
    assert all(kernel.rows.slot_of((item,)) >= 0 for item in totals)
    assert kernel.rows.slot_of((1,)) == -1


def test_few_slots_and_many_are_entered_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MARKS_MAX", 40)
    rng = Random(3)
    found, last, ordered = journal.Journal(), dict[int, int](), list[int]()
    found.grow(50)
    for step in range(1, 200):
        slots = rng.sample(range(50), rng.choice((0, 1, 1, 1, 20)))
        found.mark(slots if len(slots) < 9 else np.array(slots), step)  # type: ignore[arg-type]
        last.update(dict.fromkeys(slots, step))
        ordered = [slot for slot in ordered if slot not in slots] + slots
        if rng.random() < 0.1:
            since = rng.randrange(step)
            assert found.touched_since(since).tolist() == [slot for slot in ordered if last[slot] > since]
            assert found.last_step().tolist() == [last.get(slot, 0) for slot in range(50)]


def test_the_journal_finds_what_was_touched_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SLACK", 8)
    kernel = fused(STREAMS + SOLD).kernel()
    rng = Random(6)
    last: dict[int, int] = {}
    for step in range(1, 300):
        items = rng.sample(range(60), rng.randint(1, 9))
        touched = take(kernel, 0, buy(*((step * 16 + i, item, 1) for i, item in enumerate(items))))
        kernel.rows.mark(touched, step)
        last.update(dict.fromkeys(items, step))
        since = rng.randint(0, step)
        found = kernel.rows.touched_since(since)
        assert sorted(kernel.rows.key_at(slot)[0] for slot in found) == sorted(  # type: ignore[type-var]
            item for item, at in last.items() if at > since
        )
        steps = [kernel.rows.last_step[slot] for slot in found]
        assert steps == sorted(steps)


def test_a_checkpoint_goes_on_where_it_was() -> None:
    for name in ("tickets", "two columns", "totals"):
        star = case(name)
        first, second = star.kernel(), star.kernel()
        for number, (edge, batch) in enumerate(Events(star, 11).batches(30, 6)):
            first.take(edge, batch)
            second.take(edge, batch)
            if number == 15:
                restored = star.kernel()
                restored.restore(second.export())
                assert state_of(restored) == state_of(second)
                second = restored
        assert state_of(first) == state_of(second)
        assert first.rows.slots() == second.rows.slots()


def test_after_a_restore_there_is_room_for_the_next_batches() -> None:
    kernel, installed = tickets(), tickets()
    items = range(3_000)
    for first in range(0, len(items), 500):
        take(kernel, 1, buy(*((8 + 4 * item, item, 1) for item in items[first : first + 500])))
    installed.restore(kernel.export())
    before = installed.table.arrays["table"]
    take(installed, 1, buy(*((100_000 + 4 * item, 5_000 + item, 1) for item in range(500))))
    assert installed.table.arrays["table"] is before  # a broker would have waited for a larger one
    assert installed.table.count == 3_500


def test_a_bulk_install_dates_every_row() -> None:
    kernel = tickets()
    take(kernel, 0, sell(4, 7, 5))
    take(kernel, 1, buy((8, 7, 1), (12, 8, 1)))
    installed = tickets()
    installed.restore(kernel.export(), bulk_horizon=100)
    assert installed.rows.max_tick[0] == 100
    assert installed.rows.above(99) == [0]
    take(installed, 1, buy((120, 7, 1)))
    assert installed.rows.max_tick[0] == 120
    take(installed, 0, sell(124, 8, 3))
    assert installed.rows.row_at(1)[3] == 1, "what was sold before the offer came"


def test_state_of_another_kernel_is_refused() -> None:
    kernel = tickets()
    with pytest.raises(ValueError, match="another kernel"):
        kernel.restore(case("totals").kernel().export())
    exported = kernel.export()
    rows = exported["rows"]
    assert isinstance(rows, dict)
    del rows["columns"]["key_0"]
    with pytest.raises(ValueError, match="other columns"):
        tickets().restore(exported)


def test_columns_may_be_numpy_arrays() -> None:
    kernel, other = tickets(), tickets()
    for edge, batch in Events(case("tickets"), 2).batches(12, 20):
        arrays = tuple(
            np.array(column, object if any(isinstance(value, str) for value in column) else None)
            for column in batch.columns
        )
        kernel.take(edge, Batch(arrays, batch.max_ticks, batch.visible, batch.lineages))  # type: ignore[arg-type]
        other.take(edge, batch)
    assert state_of(kernel) == state_of(other)
    assert kernel.table.count > 5


def test_every_change_ends_with_each_touched_row_as_it_is() -> None:
    """What a receiver needs that keeps the last word: rows without a change are there too, tombstones above all."""
    kernel = tickets()
    without_change = 0
    for touched in random_steps(kernel):
        told = kernel.every_change(touched)
        without_change += len(told) - len(kernel.changed(touched))
        last = {key: i for i, key in enumerate(told.keys(1))}
        held = kernel.rows.select(touched)
        final = told.take(list(last.values()))
        assert sorted(zip(final.rows(), final.max_ticks, final.visible, strict=True)) == sorted(
            zip(held.rows(), held.max_ticks, held.visible, strict=True)
        )
    assert without_change


def test_the_only_change_of_an_event_is_told_as_all_changes_are() -> None:
    """Single events make no arrays; what they say is the same."""
    alone = hidden = 0
    kinds: set[type] = set()
    for star in map(case, VIEWS):
        kernel = star.kernel()
        for edge, batch in Events(star, 5).batches(300, 1):
            touched = kernel.take(edge, batch)
            numbers, arrays = kernel.table.numbers, kernel.table.arrays
            if numbers[Meta.CHANGES] != 1 or numbers[Meta.BARE]:
                continue
            told, general = kernel.every_change(touched), kernel.changed(touched)
            assert repr(told.rows()) == repr(general.rows())
            assert list(told.visible) == list(general.visible)
            assert list(told.max_ticks) == [arrays["max_tick"][arrays["change_slot"][0]]]
            alone += 1
            hidden += not told.visible[0]
            kinds.update(map(type, told.rows()[0]))
    assert alone > 500
    assert hidden > 5
    assert kinds == {int, float, str, bool}


def test_a_change_is_not_all_if_other_rows_were_touched() -> None:
    found = 0
    for star in map(case, VIEWS):
        kernel = star.kernel()
        for edge, batch in Events(star, 5).batches(300, 3):
            touched = kernel.take(edge, batch)
            numbers = kernel.table.numbers
            if numbers[Meta.CHANGES] == 1 and numbers[Meta.BARE]:
                assert len(kernel.every_change(touched)) == 1 + numbers[Meta.BARE]
                found += 1
    assert found


def test_the_latest_is_the_last_of_the_changes_of_each_row() -> None:
    kernel = tickets()
    gone = several = 0
    for touched in random_steps(kernel):
        changes, latest = kernel.changed(touched), kernel.latest(touched)
        last = dict(zip(changes.keys(1), zip(changes.rows(), changes.visible, strict=True), strict=True))
        told = dict(zip(latest.keys(1), zip(latest.rows(), latest.visible, strict=True), strict=True))
        assert len(told) == len(latest)
        assert told == last
        gone += list(latest.visible).count(False)
        several += len(changes) > len(latest)
    assert gone > 5
    assert several > 5


def test_the_hidden_are_those_touched_that_cannot_be_seen() -> None:
    kernel = tickets()
    found = 0
    for touched in random_steps(kernel):
        hidden = kernel.rows.hidden_among(kernel.table.touched())
        assert sorted(hidden) == sorted(slot for slot in touched if not kernel.rows.visible[slot])
        assert sorted(hidden) == sorted(kernel.rows.hidden_among(list(touched)))
        found += len(hidden)
    assert found > 5


def test_a_large_table_finds_every_key_after_it_has_grown() -> None:
    """Keys that collide go further, all at once; each must be found where the probe loop looks for it."""
    kernel = fused(STREAMS + SOLD).kernel()
    keys = [int(key) for key in np.random.default_rng(3).integers(-(2**62), 2**62, 20_000)]
    rest: list[Sequence[Value]] = [[1] * 20_000, [0] * 20_000, ["a"] * 20_000, [0.0] * 20_000]
    for first in (1, 30_001):
        kernel.take(0, Batch.events(range(first, first + 20_000), [keys, *rest]))
        assert len(kernel.rows) == len(set(keys)), "a key was not found and got a second slot"
    assert all(kernel.rows.slot_of((key,)) >= 0 for key in keys[::97])


def random_steps(kernel: KernelOperator) -> Iterator[Sequence[int]]:
    """Offers and buys of few items, so that rows appear, change several times and vanish; what each batch touched."""
    random = Random(7)
    for tick in range(1, 800, 8):
        if random.random() < 0.3:
            yield take(kernel, 0, sell(tick, random.randrange(30), random.randrange(60)))
        else:
            items = [random.randrange(30) for _ in range(3)]
            rows = [(tick + i, random.choice(items), random.randrange(9)) for i in range(random.randrange(1, 8))]
            yield take(kernel, 1, buy(*rows))
