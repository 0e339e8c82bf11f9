"""Frames of a component's state, collected: Arrow tables as the batches and arrays that operators take.

`smile/bulk/install.py` knows what each frame is. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from runtime.batch import Batch
from runtime.kernels.install import Texts
from runtime.kernels.rows import Array
from runtime.kernels.spec import element
from runtime.plan import ValueType

JOBS_MAX = 4
"""Frames that are computed at the same time."""

BATCH_ROWS = 65_536
"""Events are fed to an operator in batches of so many."""


def collected(frames: Sequence[DataFrame]) -> list[Any]:
    """All rows of each frame, as Arrow tables with columns c0, c1, ...; several jobs at once, since most are small."""
    if not frames:
        return []
    with ThreadPoolExecutor(min(JOBS_MAX, len(frames))) as jobs:
        return list(jobs.map(lambda frame: frame.toArrow(), frames))


def event_batches(table: Any) -> Iterator[Batch]:
    """Events: column 0 is the tick."""
    for first in range(0, table.num_rows, BATCH_ROWS):
        ticks, *columns = plain_columns(table.slice(first, BATCH_ROWS))
        yield Batch.events(ticks, columns)


def plain_columns(table: Any) -> list[list[Any]]:
    """Python's values; a list of structs, whose last field is a value and whose others order it, as pairs of both."""
    return [_witnesses(column) if _has_structs(column.type) else column.to_pylist() for column in table.columns]


def _has_structs(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type))


def _witnesses(column: Any) -> list[Any]:
    rows = ([tuple(one.values()) for one in found] for found in column.to_pylist())
    return [[(row[:-1], row[-1]) for row in found] for found in rows]


def array_of(column: Any, kind: ValueType) -> Array | Texts:
    """One column without nulls, as a kernel keeps it."""
    if column.null_count:
        raise ValueError("a null in the state of a kernel")
    if kind is ValueType.TEXT:
        coded = pc.dictionary_encode(column).combine_chunks()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.chunk(0) if coded.num_chunks else pa.array([], pa.string()).dictionary_encode()
        return Texts(coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist())
    return np.asarray(column.to_numpy()).astype(element(kind))
