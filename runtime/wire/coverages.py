"""Coverages in a message: in the header while they have few ranges, otherwise 64-bit numbers in the body.

The numbers are those of `Coverage.to_wire`, where nearly every list is a coverage in canonical form.
"""

from __future__ import annotations

from array import array
from typing import Any, Final

import numpy as np

from runtime.protocol.coverage import CoverageError
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.wire.errors import WireGarbage, WireTooLarge
from runtime.wire.framing import Incoming, Outgoing, whole
from runtime.wire.limits import INLINE_RANGES_MAX, LINEAGES_MAX, RANGES_MAX

_INT64: Final = np.dtype("<i8")


def write_coverage(coverage: LineageCoverage, out: Outgoing) -> list[object]:
    """One entry per lineage: its numbers, or how many of them are in the body."""
    wires = coverage.to_wire()
    if len(wires) > LINEAGES_MAX:
        raise WireTooLarge(f"a coverage of {len(wires)} lineages, the bound is {LINEAGES_MAX}")
    numbers = sum(map(len, wires))
    if numbers <= 2 * INLINE_RANGES_MAX and 9 * numbers <= out.inline_bytes_left:  # all of them, as nearly always
        out.inline_bytes_left -= 9 * numbers
        return [*wires]
    return [_write_part(wire, out) for wire in wires]


def _write_part(wire: list[int], out: Outgoing) -> object:
    ranges = len(wire) // 2
    size = 9 * len(wire)
    if ranges <= INLINE_RANGES_MAX and size <= out.inline_bytes_left:
        out.inline_bytes_left -= size
        return wire
    if ranges > RANGES_MAX:
        raise WireTooLarge(f"a coverage of {ranges} ranges, the bound is {RANGES_MAX}")
    out.add(np.frombuffer(array("q", wire), np.int64).astype(_INT64, copy=False), 8 * len(wire))
    return ranges


def read_coverage(value: Any, incoming: Incoming) -> LineageCoverage:
    if type(value) is not list:
        raise WireGarbage("a coverage is a list of lineages")
    for at, part in enumerate(value):
        if type(part) is int:
            value[at] = _read_long(part, incoming)
    try:
        return LineageCoverage.from_wire(value, len(value), RANGES_MAX)
    except CoverageError as broken:
        raise WireGarbage(str(broken)) from None


def _read_long(value: int, incoming: Incoming) -> list[int]:
    """The numbers of so many ranges in the body."""
    ranges = whole(value)
    if ranges > RANGES_MAX:
        raise WireTooLarge(f"a coverage of {ranges} ranges, the bound is {RANGES_MAX}")
    return np.frombuffer(incoming.take(16 * ranges), _INT64).tolist() if ranges else []
