"""Whole columns: lists, numpy arrays, Arrow, pandas and polars, as canonical columns and back.

None of these libraries is imported here unless its objects were passed in or asked for; they are recognised by the
module of their type. numpy, which the project needs anyway, does the checking of numbers. What a fast check does not
accept goes through `smile/values.py`, value by value, so that an error can name row and value.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from mpl.scaled import limits_of, power_of_ten
from mpl.types import (
    BoolType,
    DecimalType,
    DurationType,
    EnumType,
    FloatType,
    IntType,
    TextType,
    TimeType,
    Type,
    Value,
)
from runtime.columns import numbers
from smile.errors import PROBLEMS_SHOWN_MAX, Problem
from smile.values import Cell, Refused

ARRAY_ROWS_MIN = 64
"""Shorter lists of whole numbers stay lists: an array has a price of its own."""

Column = Any
"""A list, a tuple or a numpy array: whatever can be counted and gone through."""


class NotColumns(TypeError):
    """The data are neither rows nor columns of any kind known here."""


# --- from what users have to columns by name --------------------------------------------------------------------------


def columns_of(data: object) -> dict[str, Column]:
    """Columns by name, still with the user's values."""
    if isinstance(data, Mapping):
        return {str(name): _sequence(values) for name, values in data.items()}
    match _library(data):
        case "pandas":
            return {str(name): _from_pandas(data[name]) for name in data.columns}  # type: ignore[index,attr-defined]
        case "pyarrow":
            schema = data.schema  # type: ignore[attr-defined]
            return {name: _from_arrow(data.column(at)) for at, name in enumerate(schema.names)}  # type: ignore[attr-defined]
        case "polars":
            return {series.name: _from_polars(series) for series in data.get_columns()}  # type: ignore[attr-defined]
        case _:
            pass
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise NotColumns(f"rows are dicts, columns a dict of sequences or a table; this is {type(data).__name__}")
    return _from_rows(data)


def _library(data: object) -> str:
    return type(data).__module__.partition(".")[0]


def _sequence(values: object) -> Column:
    match _library(values):
        case "pandas":
            return _from_pandas(values)
        case "pyarrow":
            return _from_arrow(values)
        case "polars":
            return _from_polars(values)
        case _:
            pass
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise NotColumns(f"a column has one dimension, not {values.ndim}")
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise NotColumns(f"a column is a sequence of values; this is {type(values).__name__}")
    return values if isinstance(values, list | tuple) else list(values)


def _from_rows(rows: Iterable[object]) -> dict[str, Column]:
    """A name that a row lacks is null there; one that no row has is a missing column."""
    rows = rows if isinstance(rows, list) else list(rows)
    alike = _from_rows_alike(rows)
    if alike is not None:
        return alike
    listed: list[Mapping[str, object]] = []
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise NotColumns(f"row {number} is {type(row).__name__}, not a dict")
        names.update(dict.fromkeys(row))
        listed.append(row)
    return {name: [row.get(name) for row in listed] for name in names}


def _from_rows_alike(rows: list[Any]) -> dict[str, Column] | None:
    """The usual case, several times as fast: dicts that all have the same names. None if they are not that."""
    if set(map(type, rows)) != {dict} or len(set(map(len, rows))) != 1:
        return None
    try:
        return {name: list(map(itemgetter(name), rows)) for name in rows[0]}
    except KeyError:
        return None


def _from_pandas(series: Any) -> Column:
    missing = series.isna().to_numpy()
    if missing.any():
        return [None if gone else _whole(value) for value, gone in zip(series.tolist(), missing, strict=True)]
    found = series.to_numpy()
    return found if found.dtype.kind in "biufMm" else series.tolist()


def _whole(value: object) -> object:
    """pandas turns whole numbers into floats where some are missing; a float column takes whole numbers too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _from_arrow(column: Any) -> Column:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    kind = str(column.type)
    is_number = kind.startswith(("int", "uint", "float", "double", "timestamp", "duration"))
    if column.null_count == 0 and is_number:
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()


def _from_polars(series: Any) -> Column:
    if series.null_count() == 0 and series.dtype.is_numeric() and not series.dtype.is_decimal():
        return series.to_numpy()
    return series.to_list()


# --- from the user's values to canonical ones -------------------------------------------------------------------------


def encode_column(cell: Cell, values: Column) -> tuple[Sequence[Value], list[Problem]]:
    """Canonical values, and what was wrong: at most ten problems, and then the values are of no use."""
    fast = _encode_array(cell, values) if isinstance(values, np.ndarray) else _encode_list(cell, values)
    if fast is not None:
        return fast, []
    found: list[Value] = []
    problems: list[Problem] = []
    for row, value in enumerate(values.tolist() if isinstance(values, np.ndarray) else values):
        try:
            found.append(cell.encode(value))
        except Refused as refused:
            problems.append(Problem(cell.name, value, str(refused), row))
            if len(problems) == PROBLEMS_SHOWN_MAX:
                break
    return found, problems


_UNIT_US = {"ns": (1, 1_000), "us": (1, 1), "ms": (1_000, 1), "s": (1_000_000, 1), "m": (60_000_000, 1)}


def _encode_array(cell: Cell, values: Any) -> Sequence[Value] | None:
    """The canonical column of an array of numbers; None if it has to be looked at value by value."""
    type_ = cell.column.type
    match type_, values.dtype.kind:
        case (IntType() | TimeType() | DurationType(), "i" | "u"):
            scaled = values
        case (DecimalType(scale=scale), "i" | "u"):
            factor = power_of_ten(scale)
            limit = (2**63 - 1) // factor
            if len(values) and (values.max() > limit or values.min() < -limit):
                return None
            scaled = values.astype(np.int64) * factor
        case (TimeType(), "M") | (DurationType(), "m"):
            return _encode_moments(cell, values)
        case (FloatType(), "f" | "i" | "u"):
            scaled = values.astype(np.float64) + 0.0
            if not np.isfinite(scaled).all():
                return None
        case (BoolType(), "b"):
            return list(values.tolist())
        case _:
            return None
    return _kept(scaled) if _is_within(cell, scaled) else None


def _kept(scaled: Any) -> Sequence[Value]:
    """The same values as a column of the engine; a copy, because the user's array may change later."""
    return numbers(np.array(scaled, np.float64 if scaled.dtype.kind == "f" else np.int64))


def _encode_moments(cell: Cell, values: Any) -> Sequence[Value] | None:
    unit, count = np.datetime_data(values.dtype)
    if np.isnat(values).any() or unit not in _UNIT_US or count != 1:
        listed = values.astype(f"{values.dtype.kind}8[us]").tolist()
        return _encode_list(cell, listed)
    times, per = _UNIT_US[unit]
    raw = values.astype(np.int64)
    if per > 1:
        if (raw % per).any():  # finer than a microsecond: not silently cut
            return None
        raw = raw // per
    scaled = raw * times
    return _kept(scaled) if _is_within(cell, scaled) else None


def _encode_list(cell: Cell, values: Column) -> Sequence[Value] | None:
    """The canonical column of a list whose values need no conversion; None if some do, or are wrong."""
    kinds = set(map(type, values))
    type_ = cell.column.type
    match type_:
        case IntType() | TimeType() | DurationType() if kinds == {int}:
            if len(values) >= ARRAY_ROWS_MIN:
                return _encode_integers(cell, values)
            return list(values) if _is_within(cell, values) else None
        case FloatType() if kinds == {float}:
            found = np.array(values) + 0.0
            return found.tolist() if np.isfinite(found).all() and _is_within(cell, found) else None
        case BoolType() if kinds == {bool}:
            return list(values)
        case EnumType() if kinds == {str}:
            return list(values) if set(values) <= set(type_.values) else None
        case TextType() if kinds == {str}:
            too_long = type_.length_max is not None and max(map(len, values)) > type_.length_max
            return None if too_long or not all(map(str.isascii, values)) else list(values)
        case _:
            return None


def _encode_integers(cell: Cell, values: Column) -> Sequence[Value] | None:
    """As an array: checked faster, kept in a quarter of the space, and what kernels want in the end."""
    try:
        found = np.frombuffer(array("q", values), np.int64)  # reads lists faster than numpy does
    except OverflowError:
        return None
    return numbers(found) if _is_within(cell, found) else None


def _is_within(cell: Cell, values: Any) -> bool:
    """Are all values in the type's and the column's range?"""
    if not len(values):
        return True
    low, high = (values.min(), values.max()) if isinstance(values, np.ndarray) else (min(values), max(values))
    limits = limits_of(cell.column.type)
    bounds = cell.column.bounds
    return not (
        (limits is not None and (low < limits[0] or high > limits[1]))
        or (bounds.low is not None and low < bounds.low)
        or (bounds.high is not None and high > bounds.high)
    )


# --- from canonical columns to tables ---------------------------------------------------------------------------------


def arrow_table(names: Sequence[str], types: Sequence[Type], columns: Sequence[Sequence[object]]) -> Any:
    """A pyarrow table of the user's values, with exact types."""
    import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

    kinds = [_arrow_type(pa, type_) for type_ in types]
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=list(names))


def _arrow_type(pa: Any, type_: Type) -> Any:
    match type_:
        case IntType():
            return pa.int64()
        case DecimalType(scale=scale):
            return pa.decimal128(38, scale)  # sums may have more digits than their summands
        case FloatType():
            return pa.float64()
        case BoolType():
            return pa.bool_()
        case TimeType():
            return pa.timestamp("us", tz="UTC")
        case DurationType():
            return pa.duration("us")
        case _:
            return pa.string()


def pandas_frame(names: Sequence[str], columns: Sequence[Sequence[object]]) -> Any:
    """A pandas frame of the user's values."""
    import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return pd.DataFrame({name: list(values) for name, values in zip(names, columns, strict=True)}, columns=list(names))
