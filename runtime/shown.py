"""Rows in messages to people: names of columns, and values as a user writes them.

The runtime computes with whole numbers where the language has decimals and times; `Column.unit` says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal

from runtime.plan import Column, Relation, Unit
from runtime.values import Key, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = Context(prec=400)  # sums that are too large have more digits than any column


def shown_row(columns: Sequence[Column], values: Sequence[Value]) -> str:
    return ", ".join(
        f"{column.name}={_shown(column.unit, value)}" for column, value in zip(columns, values, strict=True)
    )


def shown_group(relation: Relation, group: Key) -> str:
    """The row of this key, in words."""
    key = relation.columns[: relation.key_width]
    return f"group ({shown_row(key, group)})" if key else "the group of all rows"


def _shown(unit: Unit | None, value: Value) -> str:
    if not isinstance(value, int) or unit is None:
        return repr(value)
    try:
        match unit:
            case "time":
                return str(_EPOCH + timedelta(microseconds=value))
            case "duration":
                return str(timedelta(microseconds=value))
            case digits:
                return str(Decimal(value).scaleb(-digits, _EXACT))
    except OverflowError:  # no value of the column, but the one that does not fit it
        return repr(value)
