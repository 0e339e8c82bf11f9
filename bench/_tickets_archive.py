"""An archive of the tickets benchmark's events, written straight to its files: what the archiver would have made.

Used by `bench/spark.py` for sizes that would take long to publish. A test compares it with an archive of the same
events that went through a log and the archiver. Not a benchmark itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tickets_events import COASTS, Integers, TicketEvents
from runtime.bulk.columns import LoggedColumn, arrow_schema, logged_columns
from runtime.bulk.manifest import ArchivedFile, ArchivedStream, Manifest, write_manifest
from runtime.columns import numbers

FILE_ROWS = 1_000_000
"""Like the archiver's tasks."""

QUANTITY = "int [0..100000000]"
OFFERS = (("item_id", "int"), ("price", "decimal(10,2)"), ("qty", QUANTITY))
BUYS = (("item_id", "int"), ("qty", QUANTITY))


def write_archive(archive: Path, events: TicketEvents, file_rows: int = FILE_ROWS) -> int:
    """All offers, then the buys, which go to the coasts by turns. How many events there are."""
    offers = np.arange(events.item_count) * 2
    cents = {"item_id": np.arange(events.item_count), "price": events.prices * 100, "qty": events.offered}
    streams = {"Sellers": _stream(archive, "Sellers", OFFERS, offers, cents, file_rows)}
    start = 2 * events.item_count
    for phase, name in enumerate(COASTS):
        values = {"item_id": events.items[phase::2], "qty": events.quantities[phase::2]}
        ticks = start + phase + 2 * np.arange(len(values["qty"]))
        streams[name] = _stream(archive, name, BUYS, ticks, values, file_rows)
    write_manifest(archive, Manifest(1, streams))
    return sum(stream.rows for stream in streams.values())


def _stream(
    archive: Path,
    name: str,
    declared: tuple[tuple[str, str], ...],
    ticks: Integers,
    values: Mapping[str, Integers],
    file_rows: int,
) -> ArchivedStream:
    columns = logged_columns(declared)
    folder = archive / "streams" / name
    folder.mkdir(parents=True)
    files = []
    for first in range(0, len(ticks), file_rows):
        end = min(first + file_rows, len(ticks))
        part = {column.name: values[column.name][first:end] for column in columns}
        files.append(_file(archive, folder, columns, ticks[first:end], part))
    return ArchivedStream(declared, horizon=int(ticks[-1]), files=tuple(files))


def _file(
    archive: Path, folder: Path, columns: tuple[LoggedColumn, ...], ticks: Integers, values: Mapping[str, Integers]
) -> ArchivedFile:
    arrays = [pa.array(ticks), *(column.array(numbers(values[column.name])) for column in columns)]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    temporary = folder / ".new"
    pq.write_table(table, temporary, compression="zstd", row_group_size=len(ticks), store_decimal_as_integer=True)
    body = temporary.read_bytes()
    digest = hashlib.sha256(body).hexdigest()
    first, last = int(ticks[0]), int(ticks[-1])
    place = temporary.rename(folder / f"{first}-{last}-{digest[:12]}.parquet")
    return ArchivedFile(str(place.relative_to(archive)), first, last, len(ticks), len(body), digest)
