"""The slot table: slots, the journal of touches, forgetting and reusing, checkpoints. Compared with plain dicts."""

import random

import pytest

from runtime.batch import Batch
from runtime.protocol.coverage import Coverage
from runtime.protocol.held_events import HeldEvents
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.rows import JOURNAL_SLACK, Rows


def put(rows: Rows, key: str, value: int, tick: int, step: int, visible: bool = True) -> int:
    batch = Batch.of_rows(2, [(key, value)], [tick], [visible])
    slots = rows.slots_for(batch)
    rows.store(slots, batch)
    rows.mark(slots, step)
    return slots[0]


def test_slots_are_dense_in_arrival_order_and_kept() -> None:
    rows = Rows(1, 2)
    assert [put(rows, key, 1, 1, step) for step, key in enumerate("abca", 1)] == [0, 1, 2, 0]
    assert rows.row_at(1) == ("b", 1)
    assert rows.slot_of(("z",)) == -1


def test_touched_since_lists_each_row_once_in_order_of_its_last_touch() -> None:
    rows = Rows(1, 2)
    for step, key in enumerate("abacab", 1):
        put(rows, key, step, step, step)
    assert [rows.key_at(slot)[0] for slot in rows.touched_since(0)] == ["c", "a", "b"]
    assert [rows.key_at(slot)[0] for slot in rows.touched_since(4)] == ["a", "b"]
    assert rows.touched_since(6) == []


def test_a_row_touched_twice_in_one_step_counts_once() -> None:
    rows = Rows(1, 2)
    put(rows, "a", 1, 1, 1)
    put(rows, "a", 2, 1, 1)
    assert rows.touched_since(0) == [0]


def test_rows_above_a_tick_include_the_invisible_ones() -> None:
    rows = Rows(1, 2)
    put(rows, "a", 1, 5, 1)
    put(rows, "b", 1, 9, 2, visible=False)
    put(rows, "c", 1, 9, 3)
    assert rows.above(5) == [1, 2]
    assert rows.visible_slots() == [0, 2]
    assert rows.tombstones() == [1]


def test_a_forgotten_slot_is_reused_and_its_past_does_not_come_back() -> None:
    rows = Rows(1, 2)
    put(rows, "a", 1, 5, 1)
    put(rows, "b", 1, 5, 2)
    rows.forget(0)
    assert rows.touched_since(0) == [1]
    assert rows.slot_of(("a",)) == -1
    slot = rows.slot_for(("c",))
    assert slot == 0
    assert rows.is_new(slot)
    assert rows.row_at(slot) == ("c", None)


@pytest.mark.parametrize("seed", range(5))
def test_the_journal_agrees_with_a_dict_and_stays_small(seed: int) -> None:
    chance = random.Random(seed)
    rows = Rows(1, 2)
    last: dict[str, int] = {}
    for step in range(1, 12_000):
        key = f"k{int(chance.paretovariate(0.7)) % 40}"
        if chance.random() < 0.02 and key in last:
            rows.forget(rows.slot_of((key,)))
            del last[key]
        else:
            put(rows, key, step, step, step)
            last[key] = step
        if step % 1_500 == 0:
            since = chance.randrange(step)
            found = [rows.key_at(slot)[0] for slot in rows.touched_since(since)]
            expected = sorted((s, k) for k, s in last.items() if s > since)
            assert found == [k for _, k in expected]
    assert len(rows.journal_steps) <= 2 * 40 + 2 * JOURNAL_SLACK


def test_export_and_restore_keep_rows_and_drop_steps() -> None:
    rows = Rows(1, 2)
    for step, key in enumerate("abc", 1):
        put(rows, key, step, step * 10, step, visible=key != "b")
    rows.forget(0)
    made = Rows.restore(1, 2, rows.export())
    assert [(made.row_at(s), made.visible[s], made.max_tick[s]) for s in made.slots()] == [
        (("b", 2), False, 20),
        (("c", 3), True, 30),
    ]
    assert made.last_step == [0, 0]
    assert made.touched_since(0) == []


def test_a_relation_without_key_columns_has_one_row() -> None:
    rows = Rows(0, 1)
    batch = Batch.of_rows(1, [(5,)], [1], [True])
    rows.store(rows.slots_for(batch), batch)
    assert (len(rows), rows.row_at(rows.slot_of(()))) == (1, (5,))


def test_held_events_stay_in_tick_order_whatever_order_they_come_in() -> None:
    held = HeldEvents(2, 2)
    ticks = [9, 1, 5, 7, 3]
    held.add(Batch.events(ticks, [[tick * 10 for tick in ticks]], [0, 0, 1, 0, 1]))
    assert held.ticks == [[1, 7, 9], [3, 5]]
    found = held.select(LineageCoverage([Coverage.of((2, 9)), Coverage.of((0, 3))]))
    assert found.rows() == [(7, 70), (9, 90), (3, 30)]
    assert found.lineages == [0, 0, 1]
    held.trim(5)
    assert (held.ticks, len(held)) == ([[7, 9], []], 2)
    assert HeldEvents.restore(2, 2, held.export()).ticks == held.ticks
    with pytest.raises(ValueError, match="lineages"):
        HeldEvents.restore(3, 2, held.export())
