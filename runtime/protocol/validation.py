"""Checks of what arrives, before anything changes. Each raises a typed refusal with the reason.

Components call these with the plan's relation and lineages. They check shape, types and ranges; whether a message fits
the protocol's state is decided by the rules themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.batch import Batch
from runtime.columns import Numbers, Same
from runtime.plan import Column, Relation, ValueType
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage
from runtime.protocol.errors import BadEpoch, BadRange, BadShape, BadType
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.values import Value

_TYPES: dict[ValueType, frozenset[type]] = {
    ValueType.INT: frozenset((int,)),
    ValueType.FLOAT: frozenset((float, int)),
    ValueType.TEXT: frozenset((str,)),
    ValueType.BOOL: frozenset((bool,)),
}
_NONE = type(None)
_ARRAY_TYPES: dict[str, type] = {"i": int, "f": float, "b": bool}


def allowed_types(column: Column) -> frozenset[type]:
    """Of the values of a column that are there."""
    return _TYPES[column.type]


def _types_of(values: Sequence[object]) -> set[type]:
    """The types of all values, at no cost per value where they are known to be of one."""
    if type(values) is list:
        return set(map(type, values))
    if isinstance(values, Numbers):
        return {_ARRAY_TYPES[values.dtype.kind]}
    if isinstance(values, range):
        return {int}
    if isinstance(values, Same):
        return {type(values.value)}
    return set(map(type, values))


def _are_ticks(values: Sequence[int]) -> bool:
    """Whole numbers in the range of ticks, NO_TICK included."""
    if isinstance(values, Numbers):
        return int(values.min()) >= NO_TICK  # the largest int64 is the largest tick
    if isinstance(values, range):
        return min(values[0], values[-1]) >= NO_TICK and max(values[0], values[-1]) <= TICK_MAX
    return min(values) >= NO_TICK and max(values) <= TICK_MAX


def _is_within_one_range(ticks: Sequence[int], lineages: Sequence[int], cover: LineageCoverage) -> bool:
    """The usual case: events of one stream, in order, inside a single range."""
    if not isinstance(lineages, Same) or not len(ticks):
        return False
    if isinstance(ticks, Numbers):
        lowest, highest = int(ticks.min()), int(ticks.max())
    elif isinstance(ticks, range) and ticks.step > 0:
        lowest, highest = ticks[0], ticks[-1]
    else:
        return False
    return cover[lineages.value].contains(Coverage.of((lowest, highest)))


def types_by_column(relation: Relation) -> tuple[frozenset[type], ...]:
    """For `is_plain_row`."""
    return tuple(_TYPES[column.type] for column in relation.columns)


def is_plain_row(rows: Batch, types: tuple[frozenset[type], ...]) -> bool:
    """Is this one row as single changes come, with nothing wrong in it? Quickly; a no means that `check_changes` has to
    look."""
    if type(rows) is not Batch or rows.lineages is not None or len(rows.columns) != len(types):
        return False
    ticks, visible = rows.max_ticks, rows.visible
    if type(ticks) is not list or len(ticks) != 1 or type(visible) is not Same or visible._count != 1:
        return False
    if type(visible.value) is not bool or type(ticks[0]) is not int or not NO_TICK <= ticks[0] <= TICK_MAX:
        return False
    for at, values in enumerate(rows.columns):
        if type(values) is not list or len(values) != 1 or type(values[0]) not in types[at]:
            return False
    return True


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
        ticks, lineages = rows.max_ticks, rows.lineages
        if not (isinstance(rows.visible, Same) and rows.visible.value) and not all(rows.visible):
            raise BadShape(self.component, self.name, "an event is visible")
        if rows.columns[0] is not ticks and list(rows.columns[0]) != list(ticks):
            raise BadShape(self.component, self.name, "an event has its own tick as max_tick")
        for lineage in {lineages[0]} if isinstance(lineages, Same) and lineages else set(lineages):
            if type(lineage) is not int or not 0 <= lineage < len(cover):
                raise BadShape(self.component, self.name, f"lineage {lineage!r} of {len(cover)}")
        if not _is_within_one_range(ticks, lineages, cover):
            for tick, lineage in zip(ticks, lineages, strict=True):
                if tick not in cover[lineage]:
                    raise BadRange(self.component, self.name, f"event at tick {tick} outside the message's cover")
        if not isinstance(ticks, range) and len(set(ticks)) != len(rows):
            raise BadRange(self.component, self.name, "two events at one tick")

    def check_changes(self, rows: Batch, relation: Relation) -> None:
        """Rows in the order in which they changed: the last one of a key is the one that counts."""
        self._check_columns(rows, relation)
        if rows.lineages is not None:
            raise BadShape(self.component, self.name, "state rows have no lineages")

    def check_rows(self, rows: Batch, relation: Relation) -> None:
        """Rows of one moment."""
        self.check_changes(rows, relation)
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
        visible, max_ticks = rows.visible, rows.max_ticks
        count = len(max_ticks)
        if len(visible) != count:
            raise BadShape(self.component, self.name, "columns of different lengths")
        if not (type(visible) is Same and type(visible.value) is bool) and not _types_of(visible) <= {bool}:
            raise BadType(self.component, self.name, "visible is not a bool")
        if count and (not _types_of(max_ticks) <= {int} or not _are_ticks(max_ticks)):
            raise BadRange(self.component, self.name, "max_tick is not a tick")
        for i, values in enumerate(rows.columns):
            if len(values) != count:
                raise BadShape(self.component, self.name, "columns of different lengths")
            self.check_values(relation.columns[i], values, None if i < relation.key_width else visible)

    def check_values(self, column: Column, values: Sequence[Value], visible: Sequence[bool] | None) -> None:
        """Types of one column; a row that is not visible may have nulls outside its key."""
        allowed = _TYPES[column.type]
        if type(values) is list and len(values) == 1 and type(values[0]) in allowed:
            return  # single events
        if isinstance(values, Numbers) and _ARRAY_TYPES[values.dtype.kind] in allowed:
            return
        strange = _types_of(values) - allowed
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
