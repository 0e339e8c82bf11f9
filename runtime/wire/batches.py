"""A batch of rows: [count, ticks, visible, lineages, columns], each described as in `columns`.

What is nearly always the same costs nothing: ticks in arithmetic progression, rows that are all visible, events that
are all of one lineage, an event's tick as its first column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.batch import Batch
from runtime.columns import Same, flags
from runtime.values import Value
from runtime.wire.columns import (
    Description,
    Form,
    read_bits,
    read_column,
    read_columns,
    read_count,
    write_bits,
    write_column,
    write_columns,
    write_singles,
)
from runtime.wire.errors import WireGarbage
from runtime.wire.framing import Incoming, Outgoing, whole

_SOME_VISIBLE = 2


def write_batch(batch: Batch, out: Outgoing) -> list[object]:
    count, columns = len(batch.max_ticks), batch.columns
    if count == 1:
        (described,) = write_singles((batch.max_ticks,), out)
    else:
        described = write_ticks(batch.max_ticks, count, out)
    visible = _write_visible(batch.visible, count, out)
    lineages = None if batch.lineages is None else _write_lineages(batch.lineages, count, out)
    if count and lineages is not None and columns and _is_same(columns[0], batch.max_ticks):
        return [count, described, visible, lineages, [Form.TICKS, *write_columns(columns[1:], count, out)]]
    return [count, described, visible, lineages, write_columns(columns, count, out)]


def write_ticks(ticks: Sequence[int], count: int, out: Outgoing) -> Description:
    """Whole numbers that are likely to be an arithmetic progression."""
    if count > 2 and not isinstance(ticks, range):
        first, last = ticks[0], ticks[-1]
        step = ticks[1] - first
        if step > 0 and last - first == step * (count - 1) and _is_progression(ticks, first, step):
            ticks = range(first, last + 1, step)
    return write_column(ticks, count, out)


def _is_progression(ticks: Any, first: int, step: int) -> bool:
    if isinstance(ticks, np.ndarray):
        return bool((np.diff(ticks.view(np.ndarray)) == step).all())
    return list(ticks) == list(range(first, first + step * len(ticks), step))


def _is_same(column: Sequence[Value], ticks: Sequence[int]) -> bool:
    return column is ticks or (type(column) is type(ticks) and isinstance(column, list | range) and column == ticks)


def _write_visible(visible: Any, count: int, out: Outgoing) -> bool | int:
    if len(visible) != count:
        raise WireGarbage(f"visibility of {len(visible)} rows among {count}")
    if type(visible) is Same:
        return bool(visible.value)
    if isinstance(visible, np.ndarray):
        truths: Any = np.ascontiguousarray(visible, np.bool_)
        seen = int(np.count_nonzero(truths))
    else:
        truths = bytes(visible)
        seen = truths.count(1)
    if seen in (0, count):
        return seen > 0
    write_bits(truths, out)
    return _SOME_VISIBLE


def _write_lineages(lineages: Any, count: int, out: Outgoing) -> list[object] | int:
    """The lineage itself if all events have the same."""
    if len(lineages) != count:
        raise WireGarbage(f"lineages of {len(lineages)} events among {count}")
    if isinstance(lineages, Same):
        return lineages.value  # type: ignore[no-any-return]
    found = lineages if isinstance(lineages, list) else list(lineages)
    first: int = found[0] if count else 0
    return first if found.count(first) == count else [write_column(found, count, out)]


def read_batch(value: Any, incoming: Incoming) -> Batch:
    if type(value) is not list or len(value) != 5:
        raise WireGarbage("a batch has five parts")
    count, described, seen, kinds, columns = value
    if type(count) is not int or count != 1:
        count = read_count(count)
    ticks = read_ticks(described, count, incoming)
    if seen is True or seen is False:
        visible: Sequence[bool] = Same(seen, count)
    else:
        visible = _read_visible(seen, count, incoming)
    lineages = None if kinds is None else _read_lineages(kinds, count, incoming)
    return Batch(read_columns(columns, count, incoming, ticks), ticks, visible, lineages)


def read_ticks(description: Any, count: int, incoming: Incoming) -> Sequence[int]:
    ticks: Any = (
        read_column(description, count, incoming) if count != 1 else read_columns([description], 1, incoming)[0]
    )
    if isinstance(ticks, range):
        return ticks
    if isinstance(ticks, np.ndarray):
        are_whole = ticks.dtype.kind == "i"
    else:
        are_whole = {*map(type, ticks)} <= {int}
    if not are_whole:
        raise WireGarbage("ticks are whole numbers")
    return ticks  # type: ignore[no-any-return]


def _read_visible(value: Any, count: int, incoming: Incoming) -> Sequence[bool]:
    if value != _SOME_VISIBLE:
        raise WireGarbage("visibility that is neither all, none nor some")
    return flags(read_bits(count, incoming))


def _read_lineages(value: Any, count: int, incoming: Incoming) -> Sequence[int]:
    if type(value) is not list:
        return Same(whole(value), count)
    if len(value) != 1:
        raise WireGarbage("lineages are one column")
    return read_ticks(value[0], count, incoming)
