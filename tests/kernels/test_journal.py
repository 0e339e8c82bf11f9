"""Goal: marks of few slots and of many are one history, whenever they are entered."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from runtime.columns import ticks
from runtime.kernels import journal
from runtime.kernels.journal import FEW, Journal


@pytest.mark.parametrize("seed", range(10))
def test_few_and_many_in_any_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MARKS_MAX", 100)
    rng, slots = Random(seed), range(3 * FEW)
    made = Journal()
    made.grow(len(slots))
    last: dict[int, int] = {}
    for step in range(1, 200):
        touched = rng.sample(slots, rng.choice((0, 1, 1, 2, FEW, FEW + 1, 2 * FEW)))
        made.mark(ticks(np.array(touched, np.int64)) if rng.random() < 0.5 else touched, step)
        for slot in touched:
            last.pop(slot, None)
            last[slot] = step
        if rng.random() < 0.2:
            since = rng.randrange(step)
            assert made.touched_since(since).tolist() == [slot for slot, at in last.items() if at > since]
            assert made.last_step().tolist() == [last.get(slot, 0) for slot in slots]
