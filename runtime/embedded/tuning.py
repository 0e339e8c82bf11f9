"""Delays and bounds of components that run in one process."""

from __future__ import annotations

from runtime.plan import Tuning

BATCH_ROWS_MAX = 16_000_000
"""Rows of one publish, and of one message: it is in memory already, so cutting it up would only cost time."""

EMBEDDED = Tuning(
    trusts_peers=True,
    message_rows_max=BATCH_ROWS_MAX,
    publish_rows_max=BATCH_ROWS_MAX,
    assembly_rows_max=BATCH_ROWS_MAX,
    answer_rows_max=262_144,  # a view that catches up reads the log in pieces of this size
    producer_window=1,  # there is one producer, and it never repeats itself
    producers_max=16,
)
"""Timers never fire by themselves here: no message between components can be lost, and the engine knows who lacks what.

So the delays do not matter; `engine.py` fires what is useful (silence, acknowledgements, questions) when it is useful.
"""
