"""Whole columns: from rows, lists, numpy arrays and tables (`smile/frames.py`) to canonical columns.

numpy, which the project needs anyway, does the checking of numbers. What a fast check does not accept goes through
`smile/values.py`, value by value, so that an error can name row and value.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from mpl.scaled import limits_of, power_of_ten
from mpl.types import (
    INT_MAX,
    BoolType,
    DecimalType,
    DurationType,
    EnumType,
    FloatType,
    IntType,
    TextType,
    TimeType,
    Value,
)
from runtime.columns import numbers
from smile.errors import PROBLEMS_SHOWN_MAX, Problem
from smile.frames import FLOAT_WHOLE_MAX, FrameColumn, NotColumns, column_of_frame, columns_of_frame, masked_column
from smile.values import UNIT_US, Cell, Refused

ARRAY_ROWS_MIN = 64
"""Shorter lists of whole numbers stay lists: an array has a price of its own."""

Column = Any
"""A list, a tuple, a numpy array or a `FrameColumn`: whatever can be counted."""


# --- from what users have to columns by name --------------------------------------------------------------------------


def columns_of(data: object, defaults: Mapping[str, object]) -> dict[str, Column]:
    """Columns by name, still with the user's values. `defaults`: what rows have that lack a name which others have."""
    if isinstance(data, Mapping):
        return {str(name): _sequence(values) for name, values in data.items()}
    table = columns_of_frame(data)
    if table is not None:
        return table
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise NotColumns(f"rows are dicts, columns a dict of sequences or a table; this is {type(data).__name__}")
    return _from_rows(data, defaults)


def _sequence(values: object) -> Column:
    column = column_of_frame(values)
    if column is not None:
        return column
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise NotColumns(f"a column has one dimension, not {values.ndim}")
        return masked_column(values) if isinstance(values, np.ma.MaskedArray) else values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise NotColumns(f"a column is a sequence of values; this is {type(values).__name__}")
    return values if isinstance(values, list | tuple) else list(values)


def _from_rows(rows: Iterable[object], defaults: Mapping[str, object]) -> dict[str, Column]:
    """A name that a row lacks has its default there, or null; one that no row has is a missing column."""
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
    if listed and not names:
        raise NotColumns("rows without any column")
    return {name: [row.get(name, defaults.get(name)) for row in listed] for name in names}


def _from_rows_alike(rows: list[Any]) -> dict[str, Column] | None:
    """The usual case, several times as fast: dicts that all have the same names. None if they are not that."""
    if set(map(type, rows)) != {dict} or len(set(map(len, rows))) != 1 or not rows[0]:
        return None
    try:
        return {name: list(map(itemgetter(name), rows)) for name in rows[0]}
    except KeyError:
        return None


def repeated(value: Value, count: int) -> Sequence[Value]:
    """One canonical value so many times, in the form in which a whole column of such values would be."""
    if type(value) is int and count >= ARRAY_ROWS_MIN:
        return numbers(np.full(count, value, np.int64))
    return [value] * count


# --- from the user's values to canonical ones -------------------------------------------------------------------------


def encode_column(cell: Cell, values: Column) -> tuple[Sequence[Value], list[Problem]]:
    """Canonical values, and what was wrong: at most ten problems, and then the values are of no use."""
    if isinstance(values, FrameColumn):
        fast = _encode_frame_column(cell, values)
    elif isinstance(values, np.ndarray):
        fast = _encode_array(cell, values)
    else:
        fast = _encode_list(cell, values)
    if fast is not None:
        return fast, []
    listed = _listed(values)
    found: list[Value] = []
    problems: list[Problem] = []
    for row, value in enumerate(listed):
        try:
            found.append(cell.encode(value))
        except Refused as refused:
            problems.append(Problem(cell.name, value, str(refused), row))
            if len(problems) == PROBLEMS_SHOWN_MAX:
                break
    return found, problems


def _listed(values: Column) -> Iterable[object]:
    """The values one by one, as the user would write them."""
    if isinstance(values, FrameColumn):
        return values.listed()
    if isinstance(values, np.ndarray) and values.dtype.kind not in "mM":  # a list of times finer than us has numbers
        return list(values.tolist())
    return values  # type: ignore[no-any-return]


def _encode_frame_column(cell: Cell, column: FrameColumn) -> Sequence[Value] | None:
    values, missing = column.values, column.missing
    if missing is not None:
        if not cell.column.nullable:
            return None
        values = values[~missing]
    encoded = _encode_array(cell, values) if column.scale is None else _encode_scaled(cell, values, column.scale)
    if missing is None or encoded is None:
        return encoded
    spread = np.full(len(missing), None, object)
    spread[~missing] = encoded
    return list(spread.tolist())


def _encode_scaled(cell: Cell, values: Any, scale: int) -> Sequence[Value] | None:
    """Decimals as whole numbers of 10 ** -scale."""
    type_ = cell.column.type
    if not isinstance(type_, DecimalType):
        return None
    factor = power_of_ten(abs(type_.scale - scale))
    if type_.scale < scale:
        if factor > INT_MAX or (values % factor).any():
            return None
        values = values // factor
    elif not _may_be_multiplied(values, factor):
        return None
    else:
        values = values * factor
    return _kept(values) if _is_within(cell, values) else None


def _may_be_multiplied(values: Any, factor: int) -> bool:
    limit = INT_MAX // factor
    return not len(values) or bool(limit > 0 and -limit <= values.min() and values.max() <= limit)


def _encode_array(cell: Cell, values: Any) -> Sequence[Value] | None:
    """The canonical column of an array of numbers; None if it has to be looked at value by value."""
    type_ = cell.column.type
    match type_, values.dtype.kind:
        case (IntType() | TimeType() | DurationType(), "i" | "u"):
            scaled = values
        case (DecimalType(scale=scale), "i" | "u"):
            factor = power_of_ten(scale)
            if not _may_be_multiplied(values, factor):
                return None
            scaled = values.astype(np.int64) * factor
        case (TimeType(), "M") | (DurationType(), "m"):
            return _encode_moments(cell, values)
        case (FloatType(), "f" | "i" | "u"):
            with np.errstate(over="ignore"):
                scaled = values.astype(np.float64) + 0.0
            if not np.isfinite(scaled).all() or not _are_exact(values, scaled):
                return None
        case (BoolType(), "b"):
            return list(values.tolist())
        case (TextType() | EnumType(), "U" | "O"):
            return _encode_list(cell, values.tolist())
        case _:
            return None
    return _kept(scaled) if _is_within(cell, scaled) else None


def _are_exact(values: Any, floats: Any) -> bool:
    """Surely; what is refused here is looked at one by one."""
    if values.dtype.kind == "f":
        return values.dtype.itemsize <= floats.dtype.itemsize or bool((values == floats).all())
    return not len(values) or bool(values.min() >= -FLOAT_WHOLE_MAX and values.max() <= FLOAT_WHOLE_MAX)


def _kept(scaled: Any) -> Sequence[Value]:
    """The same values as a column of the engine; a copy, because the user's array may change later."""
    return numbers(np.array(scaled, np.float64 if scaled.dtype.kind == "f" else np.int64))


def _encode_moments(cell: Cell, values: Any) -> Sequence[Value] | None:
    unit, count = np.datetime_data(values.dtype)
    if unit not in UNIT_US or np.isnat(values).any():
        return None
    times, per = UNIT_US[unit]
    raw = values.astype(np.int64)
    if not _may_be_multiplied(raw, times * count):
        return None
    raw = raw * (times * count)
    if per > 1:
        if (raw % per).any():  # finer than a microsecond: not silently cut
            return None
        raw = raw // per
    return _kept(raw) if _is_within(cell, raw) else None


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
