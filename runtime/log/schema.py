"""The columns of a stream as its log and its archive remember them: how they may change, and what old events look like.

A stream may get more columns, at the end and nullable: events from before have nulls there. Nothing else may change,
because what was logged means the same for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.batch import Batch
from runtime.log.stream_log import SchemaChanged

Columns = tuple[tuple[str, str], ...]
"""Name and type of each payload column."""

NULLABLE = " null"


def as_text(columns: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{name}\t{kind}" for name, kind in columns)


def as_columns(text: str) -> Columns:
    """What `as_text` wrote."""
    return tuple((line.partition("\t")[0], line.partition("\t")[2]) for line in text.splitlines())


def check_growth(stream: str, had: Columns, has: Columns) -> None:
    """Raises SchemaChanged unless `has` is `had`, perhaps with nullable columns added at the end."""
    if has[: len(had)] == had and all(kind.endswith(NULLABLE) for _, kind in has[len(had) :]):
        return
    raise SchemaChanged(f"stream `{stream}`: {_difference(dict(had), dict(has))}")


def _difference(had: dict[str, str], has: dict[str, str]) -> str:
    """The first column that differs, in words."""
    for name, kind in had.items():
        if name not in has:
            return f"the log has a column `{name}` ({kind}) that the program no longer declares"
        if has[name] != kind:
            return f"column `{name}` is {kind} in the log and {has[name]} in the program"
    for name, kind in has.items():
        if name not in had and not kind.endswith(NULLABLE):
            return (
                f"column `{name}` ({kind}) is new, and the log has events without it: declare it `{kind} null`, so that"
                " they have nulls there"
            )
    return "its columns are in another order in the log; new ones come last"


def padded(batch: Batch, width: int) -> Batch:
    """Events as they are read now, `width` counting all columns: what was added later is null. ValueError if they have
    more columns than that."""
    missing = width - len(batch.columns)
    if missing == 0:
        return batch
    if missing < 0:
        raise ValueError(f"{len(batch.columns)} columns, not {width}")
    nulls = [[None] * len(batch) for _ in range(missing)]
    return Batch((*batch.columns, *nulls), batch.max_ticks, batch.visible, batch.lineages)
