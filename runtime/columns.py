"""Numbers: a column that stays an array on its way from a publisher to a kernel.

Generic operators go through a column value by value and expect Python's own numbers, which do not overflow silently;
kernels want the array itself. So this is an array whose elements come out as Python numbers. Lists remain the usual
columns: whoever makes one of these has an array already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from runtime.values import Value

if TYPE_CHECKING:
    _Array = np.ndarray[Any, np.dtype[Any]]
else:
    _Array = np.ndarray


class Numbers(_Array):
    """One-dimensional, int64 or float64, never changed once it is in a batch."""

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
