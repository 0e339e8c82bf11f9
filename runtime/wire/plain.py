"""Plain data: nested dicts and lists of numbers, texts, bytes and nulls. Deployments and status reports travel so.

msgpack makes room for as many entries as a list claims and turns single bytes into whole objects, so what arrives is
first walked through without making anything: depth, number of values and every length are known before it is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgpack

from runtime.wire.errors import WireGarbage, WireTooLarge
from runtime.wire.framing import Buffer
from runtime.wire.limits import PLAIN_BYTES_MAX, PLAIN_DEPTH_MAX, PLAIN_ITEMS_MAX

# By first byte: how many bytes of length follow it, for what has a length.
_BLOBS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
# By first byte: how many bytes follow it.
_CONSTANTS: Final = {0xC0: 0, 0xC2: 0, 0xC3: 0}
_NUMBERS: Final = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_SCALARS: Final = _CONSTANTS | _NUMBERS


def pack_plain(value: Mapping[str, object]) -> bytes:
    """`WireGarbage` if something in it is not plain, `WireTooLarge` if a peer would refuse it."""
    try:
        data: bytes = msgpack.packb(value, strict_types=True)
    except (TypeError, ValueError, OverflowError) as broken:
        raise WireGarbage(f"not plain data: {broken}") from None
    _check(data)
    return data


def unpack_plain(data: Buffer) -> dict[str, Any]:
    _check(data)
    try:
        value = msgpack.unpackb(data, strict_map_key=True, max_ext_len=0)
    except (TypeError, ValueError, msgpack.UnpackException) as broken:
        raise WireGarbage(f"not plain data: {broken}") from None
    if type(value) is not dict:
        raise WireGarbage(f"plain data is a dict, not {type(value).__name__}")
    return value


def _check(data: Buffer) -> None:
    if len(data) > PLAIN_BYTES_MAX:
        raise WireTooLarge(f"{len(data)} bytes of plain data, the bound is {PLAIN_BYTES_MAX}")
    open_items = [1]  # how many values each level still lacks
    items = at = 0
    while open_items:
        if not open_items[-1]:
            open_items.pop()
            continue
        open_items[-1] -= 1
        items += 1
        if at >= len(data):
            raise WireGarbage("plain data that ends too early")
        first, at = data[at], at + 1
        size, children, at = _measure(first, data, at)
        at += size
        if children:
            if items + children > PLAIN_ITEMS_MAX:
                raise WireTooLarge(f"more than {PLAIN_ITEMS_MAX} values in plain data")
            if len(open_items) > PLAIN_DEPTH_MAX:
                raise WireTooLarge(f"plain data nested deeper than {PLAIN_DEPTH_MAX}")
            open_items.append(children)
        if items > PLAIN_ITEMS_MAX:
            raise WireTooLarge(f"more than {PLAIN_ITEMS_MAX} values in plain data")
    if at != len(data):
        raise WireGarbage(f"{len(data) - at} bytes after plain data")


def _measure(first: int, data: Buffer, at: int) -> tuple[int, int, int]:
    """(bytes that follow, values inside, where they start) of the value with this first byte."""
    if first <= 0x7F or first >= 0xE0:
        return 0, 0, at
    if first <= 0x8F:
        return 0, 2 * (first & 0x0F), at
    if first <= 0x9F:
        return 0, first & 0x0F, at
    if first <= 0xBF:
        return first & 0x1F, 0, at
    if first in _SCALARS:
        return _SCALARS[first], 0, at
    for table, children_per_entry in ((_BLOBS, 0), (_LISTS, 1), (_MAPS, 2)):
        width = table.get(first)
        if width is not None:
            length = int.from_bytes(data[at : at + width], "big")
            return (0 if children_per_entry else length), length * children_per_entry, at + width
    raise WireGarbage(f"byte {first:#x} in plain data")
