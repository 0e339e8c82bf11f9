"""Arrow, pandas and polars: their columns as `smile/columns.py` takes them, and views as their tables.

Masked arrays of numpy are columns of this kind too. None of these libraries is imported unless its objects were passed
in or asked for; objects are recognised by the module of their type. Columns of numbers, times and truth values stay
arrays, missing values included, so that nothing here looks at single values; text becomes a list. Whether a value is
allowed is decided in `smile/columns.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpl.types import BoolType, DecimalType, DurationType, FloatType, IntType, TimeType, Type, Value
from smile.values import decoder

FLOAT_WHOLE_MAX = 2**53
"""Above this a float may stand for several whole numbers."""


class NotColumns(TypeError):
    """The data are neither rows nor columns of any kind known here."""


@dataclass(frozen=True, eq=False)
class FrameColumn:
    """A column without Python values. `missing` marks the rows that have none; `values` is anything there.

    `scale`: the numbers are decimals, counted in units of 10 ** -scale. `listed` gives the values one by one, as a user
    would write them: what an error names.
    """

    values: Any
    missing: Any | None
    listed: Callable[[], list[object]]
    scale: int | None = None

    def __len__(self) -> int:
        return len(self.values)


def library(data: object) -> str:
    return type(data).__module__.partition(".")[0]


# --- in ---------------------------------------------------------------------------------------------------------------


def columns_of_frame(data: Any) -> dict[str, Any] | None:
    """The columns of a table of one of the three libraries; None if it is something else."""
    match library(data):
        case "pandas" if hasattr(data, "columns"):
            named = [(str(name), data.iloc[:, at]) for at, name in enumerate(data.columns)]
        case "pyarrow" if hasattr(data, "column_names") and hasattr(data, "column"):
            named = [(name, data.column(at)) for at, name in enumerate(data.column_names)]
        case "polars" if hasattr(data, "get_columns"):
            named = [(series.name, series) for series in data.get_columns()]
        case "pandas" | "pyarrow" | "polars":
            raise NotColumns(f"rows are dicts, columns a dict of sequences or a table; this is {type(data).__name__}")
        case _:
            return None
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise NotColumns(f"two columns are called `{name}`")
    return {name: column_of_frame(column) for name, column in named}


def column_of_frame(column: Any) -> Any | None:
    """One column of one of the three libraries; None if it is something else."""
    match library(column):
        case "pandas":
            return _from_pandas(column)
        case "pyarrow":
            return _from_arrow(column)
        case "polars":
            return _from_polars(column)
        case _:
            return None


def masked_column(values: Any) -> FrameColumn:
    """An array of numpy's that has marked some of its values as missing."""
    return _frame_column(values.data, np.ma.getmaskarray(values), values.tolist)


def _frame_column(values: Any, missing: Any | None, listed: Callable[[], list[object]]) -> FrameColumn:
    gone = missing if missing is not None and missing.any() else None
    # Their own lists of times cut off or refuse what is finer than a microsecond.
    is_moment = values.dtype.kind in "mM"
    return FrameColumn(values, gone, (lambda: _moments(values, gone)) if is_moment else listed)


def _moments(values: Any, missing: Any | None) -> list[object]:
    return [None if missing is not None and missing[row] else value for row, value in enumerate(values)]


def _from_pandas(series: Any) -> Any:
    dtype = series.dtype
    if type(dtype).__name__ == "ArrowDtype":
        return _from_arrow(series.array.__arrow_array__())
    missing = series.isna().to_numpy(dtype=bool)

    def listed() -> list[object]:
        found = series.astype(object).to_numpy(copy=True)
        found[missing] = None
        return list(found.tolist())

    if dtype.kind in "mM":
        bare = series.dt.tz_convert(None) if getattr(dtype, "tz", None) is not None else series
        return _frame_column(bare.to_numpy(), missing, listed)
    if dtype.kind not in "biuf":
        return listed()
    values = series.to_numpy(dtype=getattr(dtype, "numpy_dtype", dtype.type), na_value=dtype.type(0))
    if dtype.kind == "f" and missing.any() and _are_whole(values):
        # pandas turns whole numbers into floats where some are missing.
        return FrameColumn(values.astype(np.int64), missing, lambda: [_whole(value) for value in listed()])
    return _frame_column(values, missing, listed)


def _are_whole(values: Any) -> bool:
    return bool((np.abs(values) <= FLOAT_WHOLE_MAX).all() and (np.floor(values) == values).all())


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) else value


def _from_arrow(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if not isinstance(column, pa.Array):
        return column.to_pylist()  # text too long for one array
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_decimal128(kind):
        return _from_arrow_decimals(column, missing)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        letter = "M" if pa.types.is_timestamp(kind) else "m"
        values = column.view(pa.int64()).fill_null(0).to_numpy().view(f"{letter}8[{kind.unit}]")
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        filled = column if missing is None else column.fill_null(pa.scalar(0).cast(kind))
        values = filled.to_numpy(zero_copy_only=False)
    else:
        return column.to_pylist()
    return _frame_column(values, missing, column.to_pylist)


def _from_arrow_decimals(column: Any, missing: Any | None) -> Any:
    """128 bits a number, of which canonical decimals need 64."""
    words = np.frombuffer(column.buffers()[1] or b"", "<i8")
    low, high = (words[2 * column.offset + word :: 2][: len(column)] for word in (0, 1))
    fits = high == low >> 63
    if not (fits if missing is None else fits | missing).all():
        return column.to_pylist()
    return FrameColumn(low, missing, column.to_pylist, column.type.scale)


def _from_polars(series: Any) -> Any:
    import polars as pl

    dtype = series.dtype
    missing = series.is_null().to_numpy() if series.null_count() else None
    if isinstance(dtype, pl.Decimal):
        low = series.to_physical().cast(pl.Int64, strict=False)
        if low.null_count() != series.null_count():
            return series.to_list()
        return FrameColumn(low.fill_null(0).to_numpy(), missing, series.to_list, dtype.scale)
    if isinstance(dtype, pl.Datetime | pl.Duration):
        letter = "M" if isinstance(dtype, pl.Datetime) else "m"
        values = series.to_physical().fill_null(0).to_numpy().view(f"{letter}8[{dtype.time_unit}]")
    elif dtype == pl.Boolean:
        values = series.fill_null(False).to_numpy()
    elif dtype.is_float() or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)):
        values = series.fill_null(0).to_numpy()
    else:
        return (series.cast(pl.String) if dtype in (pl.Categorical, pl.Enum) else series).to_list()
    return _frame_column(values, missing, series.to_list)


# --- out --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameField:
    """What a column of a table is called and holds."""

    name: str
    type: Type
    nullable: bool


def arrow_table(fields: Sequence[FrameField], columns: Sequence[Sequence[Value]]) -> Any:
    """A pyarrow table of canonical columns, with exact types."""
    import pyarrow as pa

    schema = pa.schema([pa.field(field.name, _arrow_type(pa, field.type), field.nullable) for field in fields])
    arrays = [_arrow_array(pa, field, values) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


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


def _arrow_array(pa: Any, field: Any, values: Any) -> Any:
    kind = field.type
    plain = np.asarray(values) if isinstance(values, np.ndarray) else list(values)
    if not (pa.types.is_decimal(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)):
        return pa.array(plain, kind)
    whole = pa.array(plain, pa.int64())
    if not pa.types.is_decimal(kind):
        return whole.cast(kind)
    wide = np.empty((len(whole), 2), "<i8")
    wide[:, 0] = whole.fill_null(0).to_numpy(zero_copy_only=False)
    wide[:, 1] = wide[:, 0] >> 63
    return pa.Array.from_buffers(kind, len(whole), [whole.buffers()[0], pa.py_buffer(wide)])


def pandas_frame(fields: Sequence[FrameField], columns: Sequence[Sequence[Value]]) -> Any:
    """A pandas frame of canonical columns. What may be null has a type that can say so without changing numbers."""
    import pandas as pd

    made = {number: _pandas_column(pd, *pair) for number, pair in enumerate(zip(fields, columns, strict=True))}
    frame = pd.DataFrame(made)
    frame.columns = pd.Index([field.name for field in fields], dtype=object)
    return frame


def _pandas_column(pd: Any, field: FrameField, values: Sequence[Value]) -> Any:
    match field.type:
        case IntType():
            whole, missing = _with_mask(values, np.int64)
            return pd.arrays.IntegerArray(whole, missing) if field.nullable else whole
        case BoolType():
            truth, missing = _with_mask(values, np.bool_)
            return pd.arrays.BooleanArray(truth, missing) if field.nullable else truth
        case FloatType():
            found, missing = _with_mask(values, np.float64)
            found[missing] = np.nan  # which no float of ours is
            return found
        case TimeType() | DurationType():
            raw, missing = _with_mask(values, np.int64)
            moments = raw.view("M8[us]" if isinstance(field.type, TimeType) else "m8[us]")
            moments[missing] = "NaT"
            series = pd.Series(moments)
            return series.dt.tz_localize("UTC") if isinstance(field.type, TimeType) else series
        case _:
            decode = decoder(field.type)
            return pd.Series(list(values) if decode is None else list(map(decode, values)), dtype=object)


def _with_mask(values: Any, dtype: Any) -> tuple[Any, Any]:
    """An array of its own with anything where values are missing, and where that is."""
    if isinstance(values, np.ndarray):
        return np.array(values, dtype), np.zeros(len(values), np.bool_)
    missing = np.fromiter((value is None for value in values), np.bool_, len(values))
    filled = [0 if value is None else value for value in values] if missing.any() else list(values)
    return np.array(filled, dtype), missing
