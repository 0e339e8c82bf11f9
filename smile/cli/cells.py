"""Values of rows as text and as JSON, the same for every subcommand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smile.subscription import Change


def shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case _:
            return str(value)


def json_value(value: object) -> object:
    """Decimals stay exact, as text; times as ISO text; durations in microseconds."""
    match value:
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
        case timedelta():
            return value // timedelta(microseconds=1)
        case _:
            return value


def json_row(row: Mapping[str, object]) -> dict[str, object]:
    return {name: json_value(value) for name, value in row.items()}


def json_change(change: Change) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": change.kind,
        "key": [json_value(value) for value in change.key],
        "row": json_row(change.row),
        "final": change.final,
        "as_of": change.as_of,
    }
    if change.bounds is not None:
        told["bounds"] = {name: [json_value(end) for end in ends] for name, ends in change.bounds.items()}
    return told
