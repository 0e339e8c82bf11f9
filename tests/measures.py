"""Time and memory of a piece of work, measured so that neither neighbours on the machine nor other threads decide.

Tests use these instead of clocks. Processor time is that of the calling thread alone. Traced memory has to include what
other threads allocate meanwhile (clients of brokers that other tests share do), so it is measured until it is within
its bound: noise only adds, and work that really takes more takes it every time. What is kept is counted for the code in
question only.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial

Work = Callable[[], object]

TIMES = 5
PATIENCE_S = 60.0
"""How long a test waits for something that happens in milliseconds, unless the machine has other things to do."""


def least_cpu_s(work: Work, within: float = 0.0, times: int = TIMES) -> float:
    """The least processor time of up to `times` runs; the first that is `within` is enough."""
    return _least(_cpu_s, work, within, times)


def least_peak_bytes(work: Work, within: int) -> int:
    """How far the memory of Python objects rises while the work is done."""
    return int(_least(_peak_bytes, work, within, TIMES))


def least_kept_bytes(work: Work, within: int, folder: str) -> int:
    """How much of what code of this folder allocates is still there afterwards."""
    return int(_least(partial(_kept_bytes, folder), work, within, TIMES))


def eventually(condition: Callable[[], object], what: str = "the condition", seconds: float = PATIENCE_S) -> None:
    """Waits until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)


def _least(measure: Callable[[Callable[[], object]], float], work: Work, within: float, times: int) -> float:
    least = measure(work)
    for _ in range(times - 1):
        if least < within:
            break
        least = min(least, measure(work))
    return least


def _cpu_s(work: Work) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def _peak_bytes(work: Work) -> int:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _kept_bytes(folder: str, work: Work) -> int:
    ours = tracemalloc.Filter(True, f"*/{folder}/*")
    tracemalloc.start()
    try:
        work()
        return sum(one.size for one in tracemalloc.take_snapshot().filter_traces([ours]).traces)
    finally:
        tracemalloc.stop()
