"""Goal: arrays cross the wire without being looked at value by value. Ratios of times in one process, not times."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable

import msgpack
import numpy as np

from runtime.batch import Batch
from runtime.columns import Same, numbers, ticks
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge
from runtime.wire.messages import decode_message, encode_message

ROWS = 10_000
ROUNDS = 7
TIMES = 20


def best(function: Callable[[], object]) -> float:
    return min(timeit.repeat(function, timer=time.thread_time, number=TIMES, repeat=ROUNDS)) / TIMES


def test_arrays_are_many_times_faster_than_values() -> None:
    columns = tuple(numbers(np.arange(ROWS) * factor) for factor in (1, 3, 7))
    rows = Batch(columns, ticks(np.arange(ROWS) ** 2), Same(True, ROWS))
    message = Knowledge(1, 2, 3, LineageCoverage.prefix(1, 10**9), rows)
    frames = encode_message("e", message)
    lists = [list(column) for column in (*columns, rows.max_ticks)]
    packed = msgpack.packb(lists)
    assert 4 * best(lambda: encode_message("e", message)) < best(lambda: msgpack.packb(lists))
    assert 4 * best(lambda: decode_message(frames)) < best(lambda: msgpack.unpackb(packed))
