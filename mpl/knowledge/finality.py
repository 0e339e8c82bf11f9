"""Finality: when a row that is shown can no longer change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mpl.knowledge.closing import Closing, within
from mpl.knowledge.kind import ColumnKnowledge, Kind, Nulls
from mpl.knowledge.motion import Motion
from mpl.knowledge.path import Path
from mpl.typed import Schema
from mpl.types import BoolType


class FinalWhen(Enum):
    """AT_ONCE: as soon as it is shown. CLOSED: when its group has closed. SATURATED: when it reaches its bounds."""

    AT_ONCE = "at once"
    MATCHED = "when matched"
    CLOSED = "when closed"
    SATURATED = "when saturated"
    NEVER = "never"


@dataclass(frozen=True)
class Finality:
    """`words` completes "rows are final ..."."""

    when: FinalWhen
    words: str

    @property
    def can_happen(self) -> bool:
        return self.when is not FinalWhen.NEVER


def derive_finality(
    schema: Schema, columns: Sequence[ColumnKnowledge], path: Path, closings: Sequence[Closing]
) -> Finality:
    """When rows of a relation become final, from how they may move and what closes them."""
    moving = [position for position, column in enumerate(columns) if not column.is_stable]
    if path.stays and not moving:
        return Finality(FinalWhen.AT_ONCE, "as soon as they are shown: nothing about them can change")
    stable = [position for position, column in enumerate(columns) if column.is_stable]
    usable = within(closings, stable)
    if usable:
        # A row that is shown has been seen, so a closing that waits for just that asks for the least.
        return Finality(FinalWhen.CLOSED, f"once {usable[-1].words}")
    if path.stays and all(_settles_when_known(columns[position]) for position in moving):
        return Finality(FinalWhen.MATCHED, f"once {_names(schema, moving)} has been filled in")
    if path.stays and all(_can_saturate(schema, columns, position) for position in moving):
        return Finality(FinalWhen.SATURATED, f"only if {_names(schema, moving)} reaches the end of its range")
    return Finality(FinalWhen.NEVER, f"never: {_why_never(schema, columns, moving)}")


def _settles_when_known(column: ColumnKnowledge) -> bool:
    return column.kind is Kind.FINAL and column.nulls is Nulls.UNTIL_KNOWN


def _can_saturate(schema: Schema, columns: Sequence[ColumnKnowledge], position: int) -> bool:
    column, declared = columns[position], schema.columns[position]
    if column.kind not in (Kind.UP, Kind.DOWN) or column.nulls is Nulls.MIXED:
        return False
    if isinstance(declared.type, BoolType):
        return True
    end = declared.bounds.high if column.motion is Motion.RISES else declared.bounds.low
    return end is not None


def _names(schema: Schema, positions: Sequence[int]) -> str:
    names = [f"`{schema.columns[position].name}`" for position in positions if not schema.columns[position].hidden]
    return " and ".join(names[:3]) if names else "every column"


def _why_never(schema: Schema, columns: Sequence[ColumnKnowledge], moving: Sequence[int]) -> str:
    if not moving:
        return "another event can always make a row vanish"
    name = schema.columns[moving[0]].name
    return {
        Kind.UP: f"another event can always raise `{name}`",
        Kind.DOWN: f"another event can always lower `{name}`",
        Kind.DOM: f"a later event can always replace `{name}`",
    }.get(columns[moving[0]].kind, f"another event can always change `{name}`")
