"""The columns of a stream as its log and its archive remember them: how they may change, and what old events look like.

A stream may get more columns, at the end, that are nullable or have a default: events from before have nulls there, or
the default. Nothing else may change, because what was logged means the same for ever; so the default is part of what is
remembered, as the literal that `mpl/literals.py` writes: `int [0..5] default 3`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from runtime.batch import Batch
from runtime.log.stream_log import SchemaChanged
from runtime.values import Value

Columns = tuple[tuple[str, str], ...]
"""Name and type of each payload column."""

NULLABLE = " null"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT = re.compile(r"((?:enum\((?:'[^']*'|, )*\)|[^' ]+)(?: \[[^]]*\])?) default (.*)", re.DOTALL)
"""A type, perhaps with a range, and then a default. The values of an enum may have these words in them as well."""


def as_text(columns: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{name}\t{kind}" for name, kind in columns)


def as_columns(text: str) -> Columns:
    """What `as_text` wrote."""
    lines = text.split("\n") if text else []  # a default may have any other character that ends a line
    return tuple((line.partition("\t")[0], line.partition("\t")[2]) for line in lines)


@lru_cache(maxsize=1024)
def default_of(kind: str) -> Value:
    """The canonical value that events have which were logged before this column was there; None for null."""
    found = _DEFAULT.fullmatch(kind)
    if found is None:
        return None
    literal = found[2]
    match re.split(r"[ (]", kind, maxsplit=1)[0]:
        case "float":
            return float(literal)
        case "bool":
            return literal == "true"
        case "text" | "enum":
            return literal[1:-1].replace("''", "'")
        case "time":
            moment = datetime.fromisoformat(literal.removeprefix("time '").removesuffix("'")).replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=1)
        case _:  # a decimal is its digits, and those after the point are all there
            return int(literal.removesuffix(" us").replace(".", ""))


def _may_be_added(kind: str) -> bool:
    return kind.endswith(NULLABLE) or default_of(kind) is not None


def check_growth(stream: str, had: Columns, has: Columns) -> None:
    """Raises SchemaChanged unless `has` is `had`, perhaps with columns added at the end that events from before have
    too: as null, or as their default."""
    if has[: len(had)] == had and all(_may_be_added(kind) for _, kind in has[len(had) :]):
        return
    raise SchemaChanged(f"stream `{stream}`: {_difference(dict(had), dict(has))}")


def _difference(had: dict[str, str], has: dict[str, str]) -> str:
    """The first column that differs, in words."""
    for name, kind in had.items():
        if name not in has:
            return f"the log has a column `{name}` ({kind}) that the program no longer declares"
        if has[name] != kind:
            is_other_default = default_of(kind) not in (None, default_of(has[name]))
            reason = ": events that were logged without it would change" if is_other_default else ""
            return f"column `{name}` is {kind} in the log and {has[name]} in the program{reason}"
    for name, kind in has.items():
        if name not in had and not _may_be_added(kind):
            return (
                f"column `{name}` ({kind}) is new, and the log has events without it: declare it `{kind} null`, so that"
                " they have nulls there, or give it a `default`"
            )
    return "its columns are in another order in the log; new ones come last"


def padded(batch: Batch, columns: Columns) -> Batch:
    """Events as they are read now: what was added later is null, or the default. ValueError if they have more columns
    than these, besides the tick."""
    given = len(batch.columns) - 1
    if given == len(columns):
        return batch
    if given > len(columns):
        raise ValueError(f"{given} columns, not {len(columns)}")
    added = [[default_of(kind)] * len(batch) for _, kind in columns[given:]]
    return Batch((*batch.columns, *added), batch.max_ticks, batch.visible, batch.lineages)
