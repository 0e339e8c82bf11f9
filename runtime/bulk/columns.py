"""Columns of streams outside of the engine: which Spark and Arrow type each has, and how canonical values become them.

In the archive and for Spark's users decimals are decimals and times are timestamps (UTC, microseconds); a duration is
a number of microseconds. Inside bulk programs they are canonical again: `canonical` says how. The tick comes first; its
column is called `tick` unless the stream has one of that name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.batch import Batch
from runtime.columns import Numbers
from runtime.log.schema import default_of
from runtime.values import Value

TICK = "tick"
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_SPARK = {"int": "bigint", "float": "double", "bool": "boolean", "time": "timestamp", "duration": "bigint"}
_ARROW: dict[str, Any] = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "duration": pa.int64()}


@dataclass(frozen=True)
class LoggedColumn:
    """`declared` is what the log remembers: the type, perhaps a range, perhaps `null` or a default."""

    name: str
    declared: str

    @property
    def word(self) -> str:
        return re.split(r"[ (]", self.declared, maxsplit=1)[0]

    @property
    def default(self) -> Value:
        """What events have in files from before this column was there; None for null. Otherwise it is never null."""
        return default_of(self.declared)

    @property
    def precision(self) -> tuple[int, int]:
        found = _DECIMAL.match(self.declared)
        assert found is not None, f"{self.declared} is no decimal"
        return int(found.group(1)), int(found.group(2))

    @property
    def spark(self) -> str:
        if self.word == "decimal":
            return "decimal({},{})".format(*self.precision)
        return _SPARK.get(self.word, "string")

    def is_like(self, other: LoggedColumn) -> bool:
        """Do canonical values of one mean the same in the other? Texts do in enums."""
        return self.spark == other.spark and (self.word == other.word or self.spark == "string")

    @property
    def arrow(self) -> Any:
        match self.word:
            case "decimal":
                return pa.decimal128(*self.precision)
            case "time":
                return pa.timestamp("us", tz="UTC")
            case word:
                return _ARROW.get(word, pa.string())

    def array(self, values: Sequence[Any]) -> Any:
        """Canonical values as an Arrow array."""
        match self.word:
            case "decimal":
                return self._decimals(values)
            case "time":
                return _whole(values).view(pa.timestamp("us", tz="UTC"))
            case "int" | "duration":
                return _whole(values)
            case _:
                plain = np.asarray(values) if isinstance(values, Numbers) else list(values)
                return pa.array(plain, self.arrow)

    def filled(self, values: Any) -> Any:
        """An Arrow array as a file has it, with the default where it has nothing: compacting an older file with a newer
        one leaves nulls."""
        return values if self.default is None else values.fill_null(self.array([self.default])[0])

    def _decimals(self, values: Sequence[Any]) -> Any:
        """A 128-bit decimal is its scaled integer; ours has 64 bits, so the upper half is the sign."""
        whole = _whole(values)
        scaled = np.asarray(whole.fill_null(0)).astype(np.int64)
        words = np.empty((len(scaled), 2), np.int64)
        words[:, 0], words[:, 1] = scaled, scaled >> 63
        validity = whole.buffers()[0]
        return pa.Array.from_buffers(self.arrow, len(scaled), [validity, pa.py_buffer(words)], whole.null_count)


def _whole(values: Sequence[Any]) -> Any:
    if isinstance(values, Numbers):
        return pa.array(np.asarray(values, np.int64))
    return pa.array(list(values), pa.int64())


def logged_columns(stored: Sequence[tuple[str, str]]) -> tuple[LoggedColumn, ...]:
    return tuple(LoggedColumn(name, declared) for name, declared in stored)


def tick_name(columns: Sequence[tuple[str, str]]) -> str:
    """What the column of ticks is called beside these (name, type), also for readers to whom `Tick` is the same."""
    taken = {name.lower() for name, _ in columns}
    name = TICK
    while name in taken:
        name += "_"
    return name


def _tick_name(columns: Sequence[LoggedColumn]) -> str:
    return tick_name([(column.name, column.declared) for column in columns])


def spark_column(column: LoggedColumn) -> str:
    """As Spark's DDL."""
    return f"`{column.name.replace('`', '``')}` {column.spark}"


def spark_schema(columns: Sequence[LoggedColumn]) -> str:
    """The events' schema as Spark's DDL: the tick, then the payload."""
    return ", ".join((f"{_tick_name(columns)} bigint", *map(spark_column, columns)))


def arrow_schema(columns: Sequence[LoggedColumn]) -> Any:
    return pa.schema([(_tick_name(columns), pa.int64()), *((column.name, column.arrow) for column in columns)])


def record_batch(columns: Sequence[LoggedColumn], batch: Batch) -> Any:
    """Events of a log as Arrow."""
    ticks = pa.array(np.asarray(batch.max_ticks, np.int64))
    arrays = [column.array(values) for column, values in zip(columns, batch.columns[1:], strict=True)]
    return pa.RecordBatch.from_arrays([ticks, *arrays], schema=arrow_schema(columns))


def canonical(column: LoggedColumn) -> str:
    """An SQL expression: the column's canonical value, also in files that are older than the column."""
    value = _canonical(column)
    match column.default:
        case None:
            return value
        case str(text):  # as bytes: nothing in it has to be escaped
            return f"coalesce({value}, cast(X'{text.encode().hex()}' as string))"
        case bool(truth):
            return f"coalesce({value}, {str(truth).lower()})"
        case float(number):
            return f"coalesce({value}, cast('{number!r}' as double))"
        case number:
            return f"coalesce({value}, cast({number} as bigint))"


def _canonical(column: LoggedColumn) -> str:
    name = f"`{column.name.replace('`', '``')}`"
    match column.word:
        case "decimal":
            _, scale = column.precision
            return f"cast({name} * {10**scale} as bigint)"
        case "time":
            return f"unix_micros({name})"
        case _:
            return name
