"""Checks of what arrives, before anything changes. Each raises a typed refusal with the reason.

Components call these with the plan's relation and lineages. They check shape, types and ranges; whether a message fits
the protocol's state is decided by the rules themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.batch import Batch
from runtime.plan import Column, Relation, ValueType
from runtime.protocol.coverage import NO_TICK, TICK_MAX, LineageCoverage
from runtime.protocol.errors import BadEpoch, BadRange, BadShape, BadType
from runtime.values import Value

_TYPES: dict[ValueType, frozenset[type]] = {
    ValueType.INT: frozenset((int,)),
    ValueType.FLOAT: frozenset((float, int)),
    ValueType.TEXT: frozenset((str,)),
    ValueType.BOOL: frozenset((bool,)),
}
_NONE = type(None)


class Place:
    """Who is checking, for the error's text."""

    __slots__ = ("component", "name")

    def __init__(self, component: str, name: str) -> None:
        self.component = component
        self.name = name

    def check_epoch(self, epoch: object, *, none_allowed: bool = False) -> None:
        if type(epoch) is not int or epoch < (0 if none_allowed else 1):
            raise BadEpoch(self.component, self.name, f"{epoch!r} is not an epoch")

    def check_step(self, step: object) -> None:
        if type(step) is not int or step < 0:
            raise BadRange(self.component, self.name, f"{step!r} is not a step")

    def check_tick(self, tick: object) -> None:
        if type(tick) is not int or not NO_TICK <= tick <= TICK_MAX:
            raise BadRange(self.component, self.name, f"{tick!r} is not a tick")

    def check_coverage(self, coverage: object, lineages_count: int) -> None:
        if not isinstance(coverage, LineageCoverage):
            raise BadType(self.component, self.name, f"{type(coverage).__name__} is not a coverage")
        if len(coverage) != lineages_count:
            raise BadShape(self.component, self.name, f"{len(coverage)} lineages, the plan has {lineages_count}")

    def check_events(self, rows: Batch, cover: LineageCoverage, relation: Relation) -> None:
        """Exactly the events in `cover`, as far as the receiver can know: inside it, and none twice (E1)."""
        self._check_columns(rows, relation)
        if rows.lineages is None or len(rows.lineages) != len(rows):
            raise BadShape(self.component, self.name, "events without lineages")
        if not all(rows.visible) or list(rows.columns[0]) != list(rows.max_ticks):
            raise BadShape(self.component, self.name, "an event is visible and has its own tick as max_tick")
        for tick, lineage in zip(rows.max_ticks, rows.lineages, strict=True):
            if type(lineage) is not int or not 0 <= lineage < len(cover):
                raise BadShape(self.component, self.name, f"lineage {lineage!r} of {len(cover)}")
            if tick not in cover[lineage]:
                raise BadRange(self.component, self.name, f"event at tick {tick} outside the message's cover")
        if len(set(rows.max_ticks)) != len(rows):
            raise BadRange(self.component, self.name, "two events at one tick")

    def check_rows(self, rows: Batch, relation: Relation) -> None:
        self._check_columns(rows, relation)
        if rows.lineages is not None:
            raise BadShape(self.component, self.name, "state rows have no lineages")
        if len(rows) > 1 and len(set(rows.keys(relation.key_width))) != len(rows):
            raise BadShape(self.component, self.name, "one key twice in one message")

    def check_keys(self, keys: Sequence[object], relation: Relation) -> None:
        for key in keys:
            if not isinstance(key, tuple) or len(key) != relation.key_width:
                raise BadShape(self.component, self.name, f"{key!r} is not a key of {relation.name}")
            for column, value in zip(relation.columns, key, strict=False):
                if type(value) not in _TYPES[column.type] and not (value is None and column.nullable):
                    raise BadType(self.component, self.name, f"{value!r} in key column {column.name}")

    def _check_columns(self, rows: object, relation: Relation) -> None:
        if not isinstance(rows, Batch):
            raise BadType(self.component, self.name, f"{type(rows).__name__} is not a batch")
        if len(rows.columns) != relation.width:
            raise BadShape(
                self.component, self.name, f"{len(rows.columns)} columns, {relation.name} has {relation.width}"
            )
        count = len(rows.max_ticks)
        if len(rows.visible) != count or any(len(column) != count for column in rows.columns):
            raise BadShape(self.component, self.name, "columns of different lengths")
        if not set(map(type, rows.visible)) <= {bool}:
            raise BadType(self.component, self.name, "visible is not a bool")
        if count and (
            not set(map(type, rows.max_ticks)) <= {int}
            or min(rows.max_ticks) < NO_TICK
            or max(rows.max_ticks) > TICK_MAX
        ):
            raise BadRange(self.component, self.name, "max_tick is not a tick")
        for i, (column, values) in enumerate(zip(relation.columns, rows.columns, strict=True)):
            self.check_values(column, values, None if i < relation.key_width else rows.visible)

    def check_values(self, column: Column, values: Sequence[Value], visible: Sequence[bool] | None) -> None:
        """Types of one column; a row that is not visible may have nulls outside its key."""
        strange = set(map(type, values)) - _TYPES[column.type]
        if not strange:
            return
        if column.nullable:
            strange.discard(_NONE)
        if strange == {_NONE} and visible is not None:
            if any(value is None and seen for value, seen in zip(values, visible, strict=True)):
                raise BadType(self.component, self.name, f"null in column {column.name}")
        elif strange:
            names = ", ".join(sorted(kind.__name__ for kind in strange))
            raise BadType(self.component, self.name, f"{names} in column {column.name} of type {column.type.value}")
