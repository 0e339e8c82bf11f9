"""I1, I2 and I6 for one table of rows: the engine's slots against the oracle's set.

`checks.py` calls these after every step of a simulated run, `explore.py` for every new state of a component.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import compress
from typing import Any

from runtime.protocol.coverage import NO_TICK
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.rows import Rows
from runtime.simulation.oracle import Masks, Oracle
from runtime.simulation.violation import Violation


def check_rows(oracle: Oracle, name: str, rows: Rows, coverage: LineageCoverage, masks: Masks) -> None:
    """I1: the visible rows are the view of exactly the covered ticks."""
    held = set(compress(zip(*rows.columns, strict=True), rows.visible))
    wanted = oracle.flat(name, masks)
    if held != wanted:
        raise Violation("I1", name, difference(held, wanted, coverage))


def check_as_of(oracle: Oracle, name: str, rows: Rows, in_floor: int, horizon: int, masks: Masks) -> None:
    """I6: a row that depends on no tick above the horizon is that of the view at the horizon."""
    below = oracle.up_to(name, horizon)
    if below == masks or in_floor > horizon:
        return
    wanted = oracle.flat(name, below)
    table = list(zip(zip(*rows.columns, strict=True), rows.visible, rows.max_tick, strict=True))
    seen: set[Any] = {row for row, visible, max_tick in table if visible and max_tick <= horizon}
    if not seen <= wanted:
        raise Violation("I6", name, f"rows {sorted(seen - wanted)[:3]} are not in the view at {horizon}")
    width = rows.key_width
    # A free slot depends on no tick.
    hidden: set[Any] = {row[:width] for row, visible, tick in table if not visible and NO_TICK < tick <= horizon}
    if hidden and not hidden.isdisjoint({row[:width] for row in wanted}):
        wrong = sorted(hidden & {row[:width] for row in wanted})
        raise Violation("I6", name, f"hides {wrong[:3]}, visible in the view at {horizon}")


def check_copy(oracle: Oracle, name: str, sender: str, copy: Rows, quenched: Collection[Any], masks: Masks) -> None:
    """I2: the copy of an in-edge is the sender's view, but for the keys that were quenched."""
    held: set[Any] = set(compress(zip(*copy.columns, strict=True), copy.visible))
    wanted = oracle.flat(sender, masks)
    if held != wanted:
        width = copy.key_width
        if any(row[:width] not in quenched for row in held ^ wanted):
            raise Violation("I2", name, f"copy of {sender}: " + difference(held, wanted, None))


def difference(held: Collection[Any], wanted: Collection[Any], coverage: LineageCoverage | None) -> str:
    """What is too much and what is missing, in a few words."""
    extra = sorted(set(held) - set(wanted), key=repr)[:3]
    missing = sorted(set(wanted) - set(held), key=repr)[:3]
    covering = f", covering {coverage.show()}" if coverage is not None else ""
    return f"holds {extra or 'nothing'} wrongly, lacks {missing or 'nothing'}{covering}"
