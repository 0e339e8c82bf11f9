"""One column of cells: a description in the header, and for all but short columns a buffer in the body.

Which form a column takes depends on its values only, never on a plan: a decoder reads columns of a relation it does not
know. Whole numbers and floats are 64-bit little-endian and become arrays again without being copied; that is why
arrays (`runtime.columns.Numbers`) are the quick way through a wire, and lists cost a look at every value.

A description is a form's number, or a list that starts with one:

    INTS, FLOATS         8 bytes a value in the body
    BOOLS                one bit a value in the body
    TICKS                the batch's ticks, which were described before
    VALUES, values       in the header: few values of any type
    RANGE, first, step   an arithmetic progression of whole numbers
    TEXTS, size          UTF-8 in the body, a zero byte between two texts
    CODES, entries, size, width   different texts as TEXTS, then the number of each row's text in `width` bytes
    NULLABLE, count, column       a bit a value that says whether it is there, and the `count` that are, as a column
    MIXED, size          msgpack values one after another in the body: for what fits nowhere else
    SAME, value          one value in all rows
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import repeat
from operator import is_not
from typing import Any, Final, cast

import msgpack
import numpy as np

from runtime.columns import Same, flags, numbers
from runtime.values import Value
from runtime.wire.errors import WireGarbage, WireTooLarge
from runtime.wire.framing import INT_MAX, Incoming, Outgoing, whole
from runtime.wire.limits import COLUMNS_MAX, INLINE_ROWS_MAX, ROWS_MAX


class Form:
    """The numbers of the forms above."""

    INTS: Final = 0
    FLOATS: Final = 1
    BOOLS: Final = 2
    TICKS: Final = 3
    VALUES: Final = 4
    RANGE: Final = 5
    TEXTS: Final = 6
    CODES: Final = 7
    NULLABLE: Final = 8
    MIXED: Final = 9
    SAME: Final = 10


Description = int | list[Any]

_VALUES: Final = Form.VALUES  # looked up for every value of a single row
_INT64: Final = np.dtype("<i8")
_FLOAT64: Final = np.dtype("<f8")
_CODES: Final[dict[int, np.dtype[Any]]] = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}
_NONE: Final = type(None)
_CELLS: Final = frozenset((int, float, str, bool, _NONE))
_INT_MIN: Final = -(2**63)
_NUMBER_BYTES: Final = 9  # the most that a number, a bool or a null takes in msgpack
_SEPARATOR: Final = "\0"
_CODED_ROWS_MIN: Final = 64
"""Shorter columns of text are not worth looking for repetitions; of longer ones so many texts are tried first."""


# Writing


def write_columns(columns: Sequence[Sequence[Value]], count: int, out: Outgoing) -> list[Description]:
    """Descriptions of columns that all have `count` values."""
    if count > ROWS_MAX:
        raise WireTooLarge(f"{count} rows, the bound is {ROWS_MAX}")
    if len(columns) > COLUMNS_MAX:
        raise WireTooLarge(f"{len(columns)} columns, the bound is {COLUMNS_MAX}")
    if count == 1:
        return write_singles(columns, out)
    return [write_column(column, count, out) for column in columns]


def write_singles(columns: Sequence[Any], out: Outgoing) -> list[Description]:
    """As `write_column` of each: single rows are what latency is about, and most of their values are numbers."""
    described: list[Description] = []
    for values in columns:
        if type(values) is list and len(values) == 1 and out.inline_bytes_left >= 2 * _NUMBER_BYTES:
            value = values[0]
            if (type(value) is int and _INT_MIN <= value <= INT_MAX) or type(value) is float:
                out.inline_bytes_left -= 2 * _NUMBER_BYTES
                described.append([Form.VALUES, values])
                continue
        described.append(write_column(values, 1, out))
    return described


def write_column(values: Any, count: int, out: Outgoing) -> Description:
    if len(values) != count:
        raise WireGarbage(f"a column of {len(values)} values among columns of {count}")
    if isinstance(values, range):
        return progression(values)
    if count <= INLINE_ROWS_MAX:
        found = _write_inline(values, out)
        if found is not None:
            return found
    if isinstance(values, np.ndarray):
        return _write_array(values, out)
    if isinstance(values, Same):
        inline = _write_inline([values.value], out)
        return _write_list(list(values), {type(values.value)}, out) if inline is None else [Form.SAME, values.value]
    kinds = set(map(type, values))
    if _NONE in kinds and len(kinds) > 1:
        present = bytes(map(is_not, values, repeat(None)))
        write_bits(present, out)
        rest = [value for value in values if value is not None]
        kinds.discard(_NONE)
        return [Form.NULLABLE, len(rest), _write_list(rest, kinds, out)]
    return _write_list(values, kinds, out)


def progression(values: range) -> Description:
    if values and not (_INT_MIN <= values[0] <= INT_MAX and _INT_MIN <= values[-1] <= INT_MAX):
        raise WireTooLarge("a whole number beyond 64 bits")
    return [Form.RANGE, values.start, values.step] if values else [Form.VALUES, []]


def _write_inline(values: Any, out: Outgoing) -> Description | None:
    """The values themselves, unless they would fill the header."""
    size = _NUMBER_BYTES * (len(values) + 1)
    if isinstance(values, np.ndarray):
        _check_array(values)
        cells: list[Any] = values.tolist()
    else:
        cells = values if type(values) is list else list(values)
        for value in cells:
            kind = type(value)
            if kind is int:
                if not _INT_MIN <= value <= INT_MAX:
                    raise WireTooLarge(f"{value}: a whole number beyond 64 bits")
            elif kind is str:
                size += 4 * len(value)
            elif kind not in _CELLS:
                raise WireGarbage(f"{kind.__name__} in a column")
    if size > out.inline_bytes_left:
        return None
    out.inline_bytes_left -= size
    return [Form.VALUES, cells]


def _check_array(values: Any) -> None:
    dtype = values.dtype
    if not ((dtype.kind in "if" and dtype.itemsize == 8) or dtype.kind == "b") or values.ndim != 1:
        raise WireGarbage(f"an array of {dtype} as a column")


def _write_array(values: Any, out: Outgoing) -> Description:
    _check_array(values)
    kind = values.dtype.kind
    if kind == "b":
        write_bits(values, out)
        return Form.BOOLS
    # A plain array: an array of a class of ours is sliced and joined through Python.
    out.add(np.ascontiguousarray(values, _INT64 if kind == "i" else _FLOAT64).view(np.ndarray), 8 * len(values))
    return Form.INTS if kind == "i" else Form.FLOATS


def _write_list(values: Sequence[Value], kinds: set[type], out: Outgoing) -> Description:
    """`kinds` has the types of the values, one unless the column is mixed."""
    if kinds == {int}:
        return _write_ints(cast("Sequence[int]", values), out)
    if kinds == {float}:
        floats = array("d", cast("Sequence[float]", values))
        out.add(np.frombuffer(floats, np.float64).astype(_FLOAT64, copy=False), 8 * len(values))
        return Form.FLOATS
    if kinds == {bool}:
        write_bits(bytes(cast("Sequence[int]", values)), out)
        return Form.BOOLS
    if kinds == {str}:
        found = _write_texts(cast("Sequence[str]", values), out)
        if found is not None:
            return found
    return _write_mixed(values, kinds, out)


def _write_ints(values: Sequence[int], out: Outgoing) -> Description:
    try:
        whole_numbers = array("q", values)  # reads a list much faster than numpy does
    except OverflowError:
        raise WireTooLarge("a whole number beyond 64 bits") from None
    out.add(np.frombuffer(whole_numbers, np.int64).astype(_INT64, copy=False), 8 * len(values))
    return Form.INTS


def _write_texts(values: Sequence[str], out: Outgoing) -> Description | None:
    count = len(values)
    if count >= _CODED_ROWS_MIN and 2 * len(set(values[:_CODED_ROWS_MIN])) <= _CODED_ROWS_MIN:
        entries = dict.fromkeys(values)
        if 2 * len(entries) <= count:
            return _write_codes(values, list(entries), out)
    size = _write_joined(values, out)
    return None if size is None else [Form.TEXTS, size]


def _write_codes(values: Sequence[str], entries: list[str], out: Outgoing) -> Description | None:
    size = _write_joined(entries, out)
    if size is None:
        return None
    numbered = dict(zip(entries, range(len(entries)), strict=True))
    width = 1 if len(entries) <= 1 << 8 else 2 if len(entries) <= 1 << 16 else 4
    if width == 1:
        out.add(bytes(map(numbered.__getitem__, values)), len(values))
    else:
        codes = np.fromiter(map(numbered.__getitem__, values), _CODES[width], len(values))
        out.add(codes, width * len(values))
    return [Form.CODES, len(entries), size, width]


def _write_joined(values: Sequence[str], out: Outgoing) -> int | None:
    """The number of bytes; None if a text has a zero character in it, which separates texts here."""
    joined = _SEPARATOR.join(values)
    if joined.count(_SEPARATOR) != len(values) - 1:
        return None
    try:
        data = joined.encode()
    except UnicodeEncodeError as broken:
        raise WireGarbage(f"a text that is not Unicode: {broken.reason}") from None
    out.add(data, len(data))
    return len(data)


def _write_mixed(values: Sequence[Value], kinds: set[type], out: Outgoing) -> Description:
    if not kinds <= _CELLS:
        names = ", ".join(sorted(kind.__name__ for kind in kinds - _CELLS))
        raise WireGarbage(f"{names} in a column")
    if int in kinds and not all(_INT_MIN <= value <= INT_MAX for value in values if type(value) is int):
        raise WireTooLarge("a whole number beyond 64 bits")
    try:
        data: bytes = b"".join(map(msgpack.Packer().pack, values))
    except UnicodeEncodeError as broken:
        raise WireGarbage(f"a text that is not Unicode: {broken.reason}") from None
    out.add(data, len(data))
    return [Form.MIXED, len(data)]


def write_bits(truths: Any, out: Outgoing) -> None:
    """One bit for each byte of a buffer, which is 0 or 1."""
    bits = np.packbits(np.frombuffer(truths, np.uint8))
    out.add(bits, len(bits))


# Reading


def read_count(value: Any) -> int:
    count = whole(value)
    if count > ROWS_MAX:
        raise WireTooLarge(f"{count} rows, the bound is {ROWS_MAX}")
    return count


def read_columns(
    descriptions: Any, count: int, incoming: Incoming, ticks: Sequence[int] | None = None
) -> tuple[Sequence[Value], ...]:
    """What `write_columns` described; `count` has been checked."""
    if type(descriptions) is not list:
        raise WireGarbage("columns are a list")
    if count == 1:
        return _read_row(descriptions, incoming, ticks)
    return tuple([read_column(description, count, incoming, ticks) for description in descriptions])


def _read_row(descriptions: list[Any], incoming: Incoming, ticks: Sequence[int] | None) -> tuple[Sequence[Value], ...]:
    """As `read_column` for each. Single rows are what latency is about, and nearly all their values are whole numbers
    in the header: those are checked here and now."""
    found: list[Sequence[Value]] = []
    for description in descriptions:
        if type(description) is list and len(description) == 2 and description[0] == _VALUES:
            values = description[1]
            if type(values) is list and len(values) == 1 and type(values[0]) is int and values[0] <= INT_MAX:
                found.append(values)
                continue
        found.append(read_column(description, 1, incoming, ticks))
    return tuple(found)


def read_column(
    description: Any, count: int, incoming: Incoming, ticks: Sequence[int] | None = None
) -> Sequence[Value]:
    if type(description) is int:
        if description == Form.INTS:
            return _read_numbers(_INT64, count, incoming)
        if description == Form.FLOATS:
            return _read_numbers(_FLOAT64, count, incoming)
        if description == Form.BOOLS:
            return flags(read_bits(count, incoming))
        if description == Form.TICKS and ticks is not None:
            return ticks
        raise WireGarbage(f"a column of form {description}")
    if type(description) is not list or not 2 <= len(description) <= 4:
        raise WireGarbage("a column is described by a number or a short list")
    if description[0] == Form.VALUES and type(description[1]) is list:  # single events: before the slower match
        return _read_inline(description[1], count)
    match description:
        case [Form.RANGE, int(first), int(step)]:
            return _read_progression(first, step, count)
        case [Form.TEXTS, int(size)]:
            return _read_joined(size, count, incoming)
        case [Form.CODES, int(entries), int(size), int(width)]:
            return _read_codes(entries, size, width, count, incoming)
        case [Form.NULLABLE, int(present), inner]:
            return _read_nullable(present, inner, count, incoming)
        case [Form.MIXED, int(size)]:
            return _read_mixed(size, count, incoming)
        case [Form.SAME, value]:
            return Same(_read_inline([value], 1)[0], count)
        case _:
            raise WireGarbage("a column of unknown form")


def _read_numbers(dtype: np.dtype[Any], count: int, incoming: Incoming) -> Sequence[Value]:
    data = incoming.take(8 * count)
    if not count:
        return []
    found = np.frombuffer(data, dtype)
    if not found.flags.aligned:  # a small frame inside a socket's buffer: compiled kernels want numbers at their place
        found = found.copy()
    return numbers(found if dtype.isnative else found.astype(dtype.newbyteorder("=")))


def _read_inline(values: list[Any], count: int) -> Sequence[Value]:
    if len(values) != count:
        raise WireGarbage(f"{len(values)} values in a column of {count}")
    for value in values:
        kind = type(value)
        if kind is int:
            if value > INT_MAX:
                raise WireGarbage("a whole number beyond 64 bits")
        elif kind not in _CELLS:
            raise WireGarbage(f"{kind.__name__} in a column")
    return values


def _read_progression(first: int, step: int, count: int) -> range:
    last = first + step * (count - 1)
    if not count or not step or not (_INT_MIN <= first <= INT_MAX and _INT_MIN <= last <= INT_MAX):
        raise WireGarbage("a progression beyond 64 bits")
    return range(first, last + (1 if step > 0 else -1), step)


def _read_joined(size: int, count: int, incoming: Incoming) -> list[str]:
    data = incoming.take(size)
    try:
        joined = str(data, "utf-8")
    except UnicodeDecodeError as broken:
        raise WireGarbage(f"a text that is not Unicode: {broken.reason}") from None
    if not count or joined.count(_SEPARATOR) != count - 1:
        raise WireGarbage(f"a buffer that does not have {count} texts")
    return joined.split(_SEPARATOR)


def _read_codes(entries: int, size: int, width: int, count: int, incoming: Incoming) -> Sequence[Value]:
    texts = _read_joined(size, entries, incoming)
    dtype = _CODES.get(width)
    if dtype is None:
        raise WireGarbage(f"codes of {width} bytes")
    data = incoming.take(width * count)
    codes: Any = data if width == 1 else np.frombuffer(data, dtype).tolist()
    try:
        return list(map(texts.__getitem__, codes))
    except IndexError:
        raise WireGarbage(f"a code beyond the {entries} entries of its dictionary") from None


def _read_nullable(present_count: int, inner: Any, count: int, incoming: Incoming) -> Sequence[Value]:
    present: list[bool] = read_bits(count, incoming).tolist()
    if present.count(True) != present_count or (type(inner) is list and inner[:1] == [Form.NULLABLE]):
        raise WireGarbage("a column with nulls that does not add up")
    values = iter(read_column(inner, present_count, incoming))
    return [next(values) if there else None for there in present]


def _read_mixed(size: int, count: int, incoming: Incoming) -> Sequence[Value]:
    data = incoming.take(size)
    if size < count:
        raise WireGarbage(f"{size} bytes cannot be {count} values")
    # Lists and maps could claim any length before they are there; cells are neither.
    reading = msgpack.Unpacker(
        max_buffer_size=max(size, 1), max_str_len=size, max_bin_len=0, max_array_len=0, max_map_len=0, max_ext_len=0
    )
    try:
        reading.feed(data)
        values = [value for value, _ in zip(reading, range(count), strict=False)]
        if len(values) != count or reading.tell() != size:
            raise WireGarbage(f"a buffer that does not have {count} values")
    except (ValueError, TypeError, msgpack.UnpackException) as broken:
        raise WireGarbage(f"values that cannot be read: {broken}") from None
    return _read_inline(values, count)


def read_bits(count: int, incoming: Incoming) -> np.ndarray[Any, np.dtype[np.bool_]]:
    data = np.frombuffer(incoming.take(-(-count // 8)), np.uint8)
    return np.unpackbits(data, count=count).view(np.bool_)
