"""Is a live view right? It is taken at a consistent cut, computed anew in bulk at the same tick, and compared.

Nothing of the live system is used for the second: not its operators, not its optimised graph, not its checkpoints;
only its log and the archive. Exact values must be equal; floats may differ in their last digits, because their sums
depend on the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mpl.types import FloatType
from smile.bulk.recompute import Recomputed, recompute
from smile.bulk.sources import Sources
from smile.errors import SmileError
from smile.values import decode

FLOAT_TOLERANCE = 1e-9
CUT_WAIT_S = 30.0

Row = Mapping[str, object]


@dataclass(frozen=True)
class Difference:
    """One row: what the live view shows and what it should show; None where there is no row."""

    key: tuple[object, ...]
    live: Row | None
    truth: Row | None


@dataclass(frozen=True)
class Verdict:
    view: str
    as_of: int
    rows: int
    differences: tuple[Difference, ...]

    @property
    def is_right(self) -> bool:
        return not self.differences


def cut_of(system: Any, view: str, wait_s: float = CUT_WAIT_S) -> tuple[int, list[Row]]:
    """All rows of a live view as of one tick, and that tick."""
    with system.subscribe(view, emit="as of horizon", timeout=wait_s) as changes:
        for batch in changes.batches():
            if batch.kind == "snapshot":
                as_of = batch.delivery.as_of
                assert isinstance(as_of, int), "a snapshot is of one moment"
                return as_of, [change.row for change in batch.changes()]
    raise SmileError(f"view `{view}` did not come to a consistent cut within {wait_s:g} s")


def verify(spark: Any, system: Any, view: str, sources: Sources, tables: Mapping[str, object] | None = None) -> Verdict:
    """`system` is a system in this process or behind a connection; its logs must be among the sources."""
    as_of, live = cut_of(system, view)
    truth = recompute(spark, system.program, view, sources, as_of=as_of, tables=tables)
    return compare(truth, live)


def compare(truth: Recomputed, live: Iterable[Row]) -> Verdict:
    shown = by_key(truth, live)
    right = by_key(truth, _rows_of(truth))
    floats = {column.name for column in truth.schema.columns if isinstance(column.type, FloatType)}
    wrong = [
        Difference(key, shown.get(key), right.get(key))
        for key in sorted(shown.keys() | right.keys(), key=repr)
        if not _same(shown.get(key), right.get(key), floats)
    ]
    return Verdict(truth.view, truth.as_of, len(right), tuple(wrong))


def by_key(truth: Recomputed, rows: Iterable[Row]) -> dict[tuple[object, ...], Row]:
    columns = truth.schema.columns
    names = [columns[position].name for position in truth.schema.key if not columns[position].hidden]
    if len(names) < len(truth.schema.key):  # a hidden tick is part of the key: the rows themselves tell them apart
        names = [column.name for column in columns if not column.hidden]
    return {tuple(row[name] for name in names): row for row in rows}


def _rows_of(truth: Recomputed) -> list[Row]:
    columns = [(at, column) for at, column in enumerate(truth.schema.columns) if not column.hidden]
    return [{column.name: decode(row[at], column.type) for at, column in columns} for row in truth.canonical.collect()]


def _same(live: Row | None, truth: Row | None, floats: set[str]) -> bool:
    if live is None or truth is None:
        return False
    for name, value in truth.items():
        other = live[name]
        if name in floats and isinstance(value, float) and isinstance(other, float):
            if not math.isclose(value, other, rel_tol=FLOAT_TOLERANCE, abs_tol=1e-12):
                return False
        elif value != other:
            return False
    return True
