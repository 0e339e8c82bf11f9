"""The kinds of fields that control records have: how each is written into a header and body, and read back checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.values import Value
from runtime.wire.batches import read_ticks, write_ticks
from runtime.wire.columns import read_columns, read_count, write_columns
from runtime.wire.errors import WireGarbage, WireTooLarge
from runtime.wire.framing import Buffer, Incoming, Outgoing, name, name_out, whole
from runtime.wire.limits import (
    COMPONENTS_MAX,
    INLINE_BODY_BYTES_MAX,
    PART_BYTES_MAX,
    RANGES_MAX,
    TEXT_BYTES_MAX,
    TOPIC_BYTES_MAX,
)
from runtime.wire.plain import pack_plain, unpack_plain


@dataclass(frozen=True, slots=True)
class Field:
    write: Callable[[Any, Outgoing], object]
    read: Callable[[Any, Incoming], Any]


def _as_it_is(value: object, _out: Outgoing) -> object:
    return value


def _read_whole(value: Any, _incoming: Incoming) -> int:
    return whole(value)


def _read_previous(value: Any, _incoming: Incoming) -> int | None:
    return None if value is None else whole(value, -1)


def _read_flag(value: Any, _incoming: Incoming) -> bool:
    if type(value) is not bool:
        raise WireGarbage(f"{type(value).__name__} where yes or no is expected")
    return value


def _write_name(value: str, _out: Outgoing) -> str:
    return name_out(value)


def _read_name(value: Any, _incoming: Incoming) -> str:
    return name(value)


def _write_text(value: str, out: Outgoing) -> str | int:
    """In the header, or the number of its bytes in the body."""
    if 4 * len(value) <= INLINE_BODY_BYTES_MAX:
        return value
    try:
        data = value.encode()
    except UnicodeEncodeError as broken:
        raise WireGarbage(f"a text that is not Unicode: {broken.reason}") from None
    if len(data) > TEXT_BYTES_MAX:
        raise WireTooLarge(f"a text of {len(data)} bytes, the bound is {TEXT_BYTES_MAX}")
    out.add(data, len(data))
    return len(data)


def _read_text(value: Any, incoming: Incoming) -> str:
    if type(value) is str:
        return value
    if whole(value) > TEXT_BYTES_MAX:
        raise WireTooLarge(f"a text of {value} bytes, the bound is {TEXT_BYTES_MAX}")
    return str(incoming.take(value), "utf-8")


def _write_topic(value: bytes, _out: Outgoing) -> bytes:
    if len(value) > TOPIC_BYTES_MAX:
        raise WireTooLarge(f"a topic of {len(value)} bytes, the bound is {TOPIC_BYTES_MAX}")
    return value


def _read_topic(value: Any, _incoming: Incoming) -> bytes:
    if type(value) is not bytes:
        raise WireGarbage(f"{type(value).__name__} where a topic is expected")
    return _write_topic(value, Outgoing())


def _write_bytes(value: Buffer, out: Outgoing) -> int:
    if len(value) > PART_BYTES_MAX:
        raise WireTooLarge(f"a part of {len(value)} bytes, the bound is {PART_BYTES_MAX}")
    out.add(value, len(value))
    return len(value)


def _read_bytes(value: Any, incoming: Incoming) -> bytes:
    if whole(value) > PART_BYTES_MAX:
        raise WireTooLarge(f"a part of {value} bytes, the bound is {PART_BYTES_MAX}")
    return bytes(incoming.take(value))


def _write_plain(value: Mapping[str, object], out: Outgoing) -> int:
    data = pack_plain(value)
    out.add(data, len(data))
    return len(data)


def _read_plain(value: Any, incoming: Incoming) -> dict[str, Any]:
    return unpack_plain(incoming.take(whole(value)))


def _write_columns(columns: tuple[Sequence[Value], ...], out: Outgoing) -> list[object]:
    count = len(columns[0]) if columns else 0
    return [count, write_columns(columns, count, out)]


def _read_columns(value: Any, incoming: Incoming) -> tuple[Sequence[Value], ...]:
    count, descriptions = value
    return read_columns(descriptions, read_count(count), incoming)


def _write_ticks(ticks: Sequence[int], out: Outgoing) -> list[object]:
    return [len(ticks), write_ticks(ticks, len(ticks), out)]


def _read_ticks(value: Any, incoming: Incoming) -> range | tuple[int, ...]:
    count, description = value
    ticks = read_ticks(description, read_count(count), incoming)
    return ticks if isinstance(ticks, range) else tuple(ticks)


def _write_names(names: Sequence[str], out: Outgoing) -> list[object]:
    if len(names) > COMPONENTS_MAX:
        raise WireTooLarge(f"{len(names)} names, the bound is {COMPONENTS_MAX}")
    texts = [name_out(each) for each in names]
    return [len(texts), write_columns([texts], len(texts), out)]


def _read_names(value: Any, incoming: Incoming) -> tuple[str, ...]:
    count, descriptions = value
    if whole(count) > COMPONENTS_MAX:
        raise WireTooLarge(f"{count} names, the bound is {COMPONENTS_MAX}")
    (texts,) = read_columns(descriptions, count, incoming)
    return tuple([name(each) for each in texts])


def _write_coverages(coverages: Mapping[str, LineageCoverage], out: Outgoing) -> int:
    return _write_plain({component: coverage.to_wire() for component, coverage in coverages.items()}, out)


def _read_coverages(value: Any, incoming: Incoming) -> dict[str, LineageCoverage]:
    return {component: _coverage(wire) for component, wire in _read_plain(value, incoming).items()}


def _coverage(wire: Any) -> LineageCoverage:
    if type(wire) is not list:
        raise WireGarbage("a coverage is a list of lineages")
    return LineageCoverage.from_wire(wire, len(wire), RANGES_MAX)


def _write_failures(failures: Mapping[str, tuple[str, str]], out: Outgoing) -> int:
    return _write_plain({component: list(failure) for component, failure in failures.items()}, out)


def _read_failures(value: Any, incoming: Incoming) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for component, failure in _read_plain(value, incoming).items():
        match failure:
            case [str(code), str(reason)]:
                found[component] = code, reason
            case _:
                raise WireGarbage("a failure is a code and a reason")
    return found


WHOLE = Field(_as_it_is, _read_whole)
PREVIOUS = Field(_as_it_is, _read_previous)
FLAG = Field(_as_it_is, _read_flag)
NAME = Field(_write_name, _read_name)
TEXT = Field(_write_text, _read_text)
TOPIC = Field(_write_topic, _read_topic)
BYTES = Field(_write_bytes, _read_bytes)
PLAIN = Field(_write_plain, _read_plain)
COLUMNS = Field(_write_columns, _read_columns)
TICKS = Field(_write_ticks, _read_ticks)
NAMES = Field(_write_names, _read_names)
COVERAGES = Field(_write_coverages, _read_coverages)
FAILURES = Field(_write_failures, _read_failures)
