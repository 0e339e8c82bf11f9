"""What a stream (or a table) takes: from the user's rows or columns to canonical columns that keep all its rules.

One `StreamInput` per stream, owned by the system. It remembers what the rules about several events need: the values
of `unique` columns, and the newest event time. They are noted only once the log has the rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compiler.plan.build import ViewPlan
from mpl.diagnostic import did_you_mean
from mpl.typed import Schema, Stream, Table
from mpl.types import IntType, TimeType, Value
from runtime.columns import numbers
from smile.columns import columns_of, encode_column, repeated
from smile.errors import PROBLEMS_SHOWN_MAX, Problem, PublishError
from smile.frames import FrameColumn, NotColumns
from smile.values import Cell, Refused, decode

Columns = tuple[Sequence[Value], ...]
Limits = tuple[str, int | float | None, int | float | None]
"""Name of a column of whole numbers, the smallest and the largest value declared."""


@dataclass(frozen=True)
class _Unique:
    """One `unique` declaration: positions of payload columns, and the values that are taken."""

    positions: tuple[int, ...]
    taken: set[Hashable]

    def keys(self, columns: Columns) -> Sequence[Hashable]:
        if len(self.positions) == 1:
            return columns[self.positions[0]]
        return list(zip(*(columns[position] for position in self.positions), strict=True))


class StreamInput:
    """Checks and encodes what is published to one stream."""

    def __init__(self, declared: Stream | Table, plan: ViewPlan) -> None:
        self.name = declared.name
        schema: Schema = declared.schema
        order = sorted(
            (plan.side.layout.plain(position), position)
            for position, column in enumerate(schema.columns)
            if not column.is_tick
        )
        positions = [position for _, position in order]  # of the payload's columns, in physical order
        defaults = dict(declared.defaults) if isinstance(declared, Stream) else {}
        self.cells = tuple(Cell(schema.columns[position], defaults.get(position)) for position in positions)
        self._shown_defaults = {
            cell.name: decode(cell.default, cell.column.type) for cell in self.cells if cell.default is not None
        }
        self._names = {cell.name: at for at, cell in enumerate(self.cells)}
        self._tick = next((c.name for c in schema.columns if c.is_tick and not c.hidden), None)
        where = {position: at for at, position in enumerate(positions)}
        self._time: int | None = None
        self._late_us = 0
        self._until_us: int | None = None
        self._newest_us: int | None = None
        unique: tuple[tuple[int, ...], ...] = (schema.key,)
        self._twice = "is there twice: it is the `key` of the table"
        if isinstance(declared, Stream):
            self._twice = "was published before: the stream is `unique` by it"
            unique = declared.unique
            self._time = None if declared.event_time is None else where[declared.event_time]
            self._late_us, self._until_us = declared.late_us, declared.until_us
        self._unique = [_Unique(tuple(where[p] for p in positions), set()) for positions in unique]
        limits = [(cell.name, cell.column.bounds.low, cell.column.bounds.high) for cell in self.cells]
        is_whole = bool(limits) and all(isinstance(cell.column.type, IntType) for cell in self.cells)
        self._whole_numbers: tuple[Limits, ...] | None = tuple(limits) if is_whole else None

    @property
    def schema(self) -> list[tuple[str, str]]:
        """Names and types of the payload's columns, as a log remembers them."""
        return [(cell.name, str(cell)) for cell in self.cells]

    @property
    def rules(self) -> str:
        """What events were checked against besides their columns, as a log remembers it."""
        names = [", ".join(self.cells[p].name for p in unique.positions) for unique in self._unique]
        found = [f"unique {name}" for name in names]
        if self._time is not None:
            found.append(f"event time {self.cells[self._time].name}")
        return " ".join(found)

    @property
    def remembers(self) -> bool:
        """Do its rules depend on earlier events?"""
        return bool(self._unique) or self._time is not None

    @property
    def is_unique(self) -> bool:
        """Does some rule need the values of all events there ever were?"""
        return bool(self._unique)

    # One row

    def encode_row(self, row: Mapping[str, object]) -> Columns:
        """Raises PublishError."""
        if type(row) is not dict and not isinstance(row, Mapping):
            raise self._error([Problem(None, row, f"{type(row).__name__}: a row is a dict of column names and values")])
        for name in row:
            if name not in self._names:
                raise self._error([self._unknown(name, row[name])])
        columns: list[list[Value]] = []
        for cell in self.cells:
            value = row.get(cell.name)
            if type(value) is int:  # most often, and then this is all there is to check
                low, high = cell.whole
                if low <= value <= high:
                    columns.append([value])
                    continue
            if value is None and cell.name not in row:
                if cell.default is not None:
                    columns.append([cell.default])
                    continue
                if not cell.column.nullable:
                    raise self._error([Problem(None, None, f"the row: column `{cell.name}` is missing")])
            try:
                columns.append([cell.encode(value)])
            except Refused as refused:
                raise self._error([Problem(cell.name, value, str(refused))]) from None
        made = tuple(columns)
        if self.remembers:
            self.check_history(made, single=True)
        return made

    # Many rows

    def encode_many(self, data: object) -> tuple[Columns, int]:
        """Canonical columns and the number of rows. All in or all out: raises PublishError."""
        if self._whole_numbers is not None and type(data) is dict:
            arrays = self._encode_arrays(self._whole_numbers, data)
            if arrays is not None:
                self.check_history(arrays)
                return arrays, len(arrays[0])
        try:
            given = columns_of(data, self._shown_defaults)
        except NotColumns as wrong:
            raise self._error([Problem(None, data, str(wrong))]) from None
        for name, values in given.items():
            if name not in self._names:
                listed = values.listed() if isinstance(values, FrameColumn) else values
                raise self._error([self._unknown(name, listed[0] if len(listed) else None)])
        counts = {len(values) for values in given.values()}
        if len(counts) > 1:
            lengths = ", ".join(f"`{name}` {len(values)}" for name, values in given.items())
            raise self._error([Problem(None, None, f"columns of different lengths: {lengths}")])
        count = counts.pop() if counts else 0
        if count == 0:
            return (), 0
        problems: list[Problem] = []
        columns = tuple(self._column(cell, given, count, problems) for cell in self.cells)
        if problems:
            problems.sort(key=lambda problem: problem.row or 0)
            raise self._error(problems[:PROBLEMS_SHOWN_MAX])
        self.check_history(columns)
        return columns, count

    def _encode_arrays(self, limits: tuple[Limits, ...], data: dict[object, object]) -> Columns | None:
        """The shortest way, for arrays of 64-bit whole numbers; None if they are not that, or something is wrong."""
        if len(data) != len(limits):
            return None
        found: list[Sequence[Value]] = []
        for name, low, high in limits:
            values = data.get(name)
            if type(values) is not np.ndarray or values.dtype != np.int64 or values.ndim != 1 or not len(values):
                return None
            if low is not None and int(np.minimum.reduce(values)) < low:
                return None
            if high is not None and int(np.maximum.reduce(values)) > high:
                return None
            found.append(numbers(values.copy()))  # the user's array may change later
        count = len(found[0])
        return tuple(found) if all(len(values) == count for values in found) else None

    def _column(
        self, cell: Cell, given: Mapping[str, Sequence[object]], count: int, problems: list[Problem]
    ) -> Sequence[Value]:
        """Its values; what is wrong with them goes to `problems`, and then they are of no use."""
        if cell.name not in given:
            if cell.default is not None:
                return repeated(cell.default, count)
            if not cell.column.nullable:
                raise self._error([Problem(None, None, f"the rows: column `{cell.name}` is missing")])
            return [None] * count
        values, found = encode_column(cell, given[cell.name])
        problems += found
        return values

    # Rules about several events

    def check_history(self, columns: Columns, *, single: bool = False) -> None:
        """Raises PublishError if a rule about several events does not allow these rows."""
        problems: list[Problem] = []
        for unique in self._unique:
            self._check_unique(unique, columns, problems)
        if self._time is not None:
            self._check_times(self._time, columns[self._time], problems)
        if problems:
            problems.sort(key=lambda problem: problem.row or 0)
            if single:
                problems = [Problem(problem.column, problem.value, problem.rule) for problem in problems]
            raise self._error(problems)

    def _check_unique(self, unique: _Unique, columns: Columns, problems: list[Problem]) -> None:
        keys = unique.keys(columns)
        if len(keys) == len(set(keys)) and unique.taken.isdisjoint(keys):
            return
        seen: set[Hashable] = set()
        names = ", ".join(self.cells[position].name for position in unique.positions)
        for row, key in enumerate(keys):
            if key in unique.taken or key in seen:
                value = [self._shown(position, columns[position][row]) for position in unique.positions]
                shown = value[0] if len(value) == 1 else tuple(value)
                problems.append(Problem(names, shown, self._twice, row))
                if len(problems) >= PROBLEMS_SHOWN_MAX:
                    return
            seen.add(key)

    def _check_times(self, position: int, times: Sequence[Value], problems: list[Problem]) -> None:
        """`late`: no event lags more than this behind the newest, those before it in the same call included."""
        newest = self._newest_us
        present = [time for time in times if isinstance(time, int)]
        if present:
            low, high = min(present), max(present)
            latest = high if newest is None else max(high, newest)
            if low >= latest - self._late_us and (self._until_us is None or high <= self._until_us):
                return
        for row, time in enumerate(times):
            if time is None:
                continue
            assert isinstance(time, int)
            rule = None
            if newest is not None and time < newest - self._late_us:
                allowed = decode(newest - self._late_us, TimeType())
                rule = f"is too late: no event may be before {allowed} any more"
            elif self._until_us is not None and time > self._until_us:
                rule = f"is after {decode(self._until_us, TimeType())}, the end of the stream"
            elif newest is None or time > newest:
                newest = time
            if rule is not None and len(problems) < PROBLEMS_SHOWN_MAX:
                problems.append(Problem(self.cells[position].name, self._shown(position, time), rule, row))

    def note(self, columns: Columns) -> None:
        """These rows are in the log now."""
        for unique in self._unique:
            unique.taken.update(unique.keys(columns))
        if self._time is not None:
            known = [] if self._newest_us is None else [self._newest_us]
            times = [time for time in columns[self._time] if isinstance(time, int)]
            self._newest_us = max(known + times, default=None)

    def forget(self) -> None:
        """Start again from nothing: the log has to be read anew."""
        for unique in self._unique:
            unique.taken.clear()
        self._newest_us = None

    # Errors

    def _shown(self, position: int, value: Value) -> object:
        return decode(value, self.cells[position].column.type)

    def _unknown(self, name: str, value: object) -> Problem:
        if name == self._tick:
            return Problem(name, value, "cannot be given: ticks are assigned when an event is logged")
        hint = did_you_mean(str(name), self._names)
        known = ", ".join(self._names)
        return Problem(None, value, f"column `{name}`, which it does not have: {hint or f'it has {known}'}")

    def _error(self, problems: list[Problem]) -> PublishError:
        return PublishError(self.name, problems, more=len(problems) >= PROBLEMS_SHOWN_MAX)
