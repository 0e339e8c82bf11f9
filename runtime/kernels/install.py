"""The state of a kernel made outside (rule C6): from the parts that Spark has computed to what a checkpoint holds.

Everything stays in arrays: a million keys are a few of them. Only the rows themselves are computed key by key, in the
generated settling loop, which does what the kernel does at the end of each event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runtime.kernels.operator import KernelOperator
from runtime.kernels.rows import Array, Integers, distinct_keys
from runtime.kernels.spec import Function, Meta
from runtime.operators.errors import Overflow
from runtime.protocol.coverage import NO_TICK
from runtime.shown import shown_group


@dataclass(frozen=True)
class Texts:
    """A column of texts: the number of each row's text in a list."""

    codes: Integers
    texts: Sequence[str]


@dataclass(frozen=True)
class PartState:
    """One part of a kernel: for each key that it has anything for, the key and the state columns by number."""

    number: int
    keys: Sequence[Array | Texts]
    states: Mapping[int, Array | Texts]


def install_parts(kernel: KernelOperator, parts: Sequence[PartState], settle: Function) -> None:
    """Give a fresh kernel the state of these parts. `settle` is the loop of the kernel's settling module."""
    table, spec = kernel.table, kernel.spec
    coded = [[_coded(kernel, column) for column in part.keys] for part in parts]
    keys, places = distinct_keys([np.concatenate(columns) for columns in zip(*coded, strict=True)])
    count = len(keys[0])
    columns: dict[str, Array] = {
        name: np.full(count, NO_TICK if name.endswith("tick") else 0, np.dtype(kind)) for name, kind in spec.columns
    }
    for number, column in enumerate(spec.state):
        columns[f"state_{number}"][:] = column.initial
    for number, key in enumerate(keys):
        columns[f"key_{number}"] = key
    first = 0
    for part, own_keys in zip(parts, coded, strict=True):
        own = places[first : first + len(own_keys[0])]
        first += len(own)
        columns[f"has_{part.number}"][own] = 1
        for number, values in part.states.items():
            columns[f"state_{number}"][own] = _coded(kernel, values)
    kernel.restore({"kernel": spec.digest, "rows": {"columns": columns, "texts": kernel.dictionary.texts}})
    arrays = [table.arrays[name].data for name, _ in spec.arguments]
    settle(*arrays, table.meta.data)
    failed = table.numbers[Meta.FAILED]
    if failed:
        where = table.key_at(table.numbers[Meta.FAILED_ROW])
        raise Overflow(kernel.relation.name, f"{shown_group(kernel.relation, where)}: {spec.reasons[failed - 1]}")
    table.refresh()


def _coded(kernel: KernelOperator, column: Array | Texts) -> Array:
    """Whole numbers or floats, as the kernel keeps them."""
    if not isinstance(column, Texts):
        return column
    codes: Integers = np.array(kernel.dictionary.encode(column.texts), np.int64)
    return codes[column.codes] if len(codes) else column.codes
