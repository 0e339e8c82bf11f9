"""Columns that are not lists: numbers that stay an array from publisher to kernel, and one value for all rows.

Generic operators go through a column value by value and expect Python's own numbers, which do not overflow silently;
kernels want the array itself. So `Numbers` is an array whose elements come out as Python's. Lists remain the usual
columns: whoever makes one of these has an array already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from runtime.values import Value

T = TypeVar("T")

if TYPE_CHECKING:
    _Array = np.ndarray[Any, np.dtype[Any]]
    _Column = Sequence
else:  # an abstract class would make every `isinstance` of a column several times as slow
    _Array = np.ndarray
    _Column = Generic


class Numbers(_Array):
    """One-dimensional, int64, float64 or bool, never changed once it is in a batch."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return found.item() if isinstance(found, np.generic) else found


def numbers(values: _Array) -> Sequence[Value]:
    """A column of these int64 or float64 values; the array is not copied and must not be changed afterwards."""
    dtype = values.dtype
    assert dtype.kind in "if" and dtype.itemsize == 8  # comparing types takes longer than all the rest  # noqa: PT018
    return cast("Sequence[Value]", values.view(Numbers))


def ticks(values: _Array) -> Sequence[int]:
    """The same for ticks."""
    return cast("Sequence[int]", numbers(values))


def flags(values: _Array) -> Sequence[bool]:
    """The same for truths, which are one byte each."""
    return cast("Sequence[bool]", values.view(np.bool_).view(Numbers))


class Same(_Column[T]):
    """One value so many times: what costs nothing to make, keep and send."""

    __slots__ = ("_count", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: T, count: int) -> None:
        self.value = value
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Same(self.value, len(range(self._count)[at]))
        range(self._count)[at]  # IndexError, and what is no index at all
        return self.value

    def __iter__(self) -> Iterator[T]:
        return repeat(self.value, self._count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence | np.ndarray) or len(other) != self._count:
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(value == self.value for value in other)

    def __repr__(self) -> str:
        return f"Same({self.value!r}, {self._count})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array:
        if dtype is None:
            return np.full(self._count, self.value)
        made = np.empty(self._count, dtype)
        made.fill(self.value)
        return made


Sequence.register(Same)


def taken(column: Sequence[Any], indices: Sequence[int]) -> Sequence[Any]:
    """The values at these positions, in this order."""
    if isinstance(column, Same):
        return Same(column.value, len(indices))
    if isinstance(column, Numbers):
        return cast("Sequence[Any]", column[np.asarray(indices, np.int64)])
    if not isinstance(column, list):
        column = list(column)
    return [column[i] for i in indices]


def joined(columns: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """One column after the other: no dearer than they are, a list only if one of them is."""
    first = columns[0]
    if isinstance(first, Same):
        if all(isinstance(column, Same) and column.value == first.value for column in columns):
            return Same(first.value, sum(map(len, columns)))
    elif isinstance(first, Numbers | range):
        arrays = [_array(column) for column in columns if isinstance(column, Numbers | range)]
        if len(arrays) == len(columns) and len({array.dtype for array in arrays}) == 1:
            return cast("Sequence[Any]", np.concatenate(arrays).view(Numbers))
    return [value for column in columns for value in column]


def _array(column: Numbers | range) -> _Array:
    if isinstance(column, range):
        return np.arange(column.start, column.stop, column.step, dtype=np.int64)
    return column
