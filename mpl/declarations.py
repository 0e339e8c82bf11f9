"""Streams and tables: from their declarations to schemas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from mpl import nodes, typed
from mpl.codes import names
from mpl.codes import types as type_codes
from mpl.declared_types import declared_bounds, declared_default, declared_type, literal_value
from mpl.diagnostic import Code, Diagnostics, Note, did_you_mean
from mpl.source import Span
from mpl.types import OPEN, Bounds, ErrorType, IntType, TimeType, Value

PHASE_COUNT_MAX = 1024
"""Ticks are divided among the streams of a system by their residue; there are this many residues."""


def check_table(decl: nodes.TableDecl, diagnostics: Diagnostics) -> typed.Table | None:
    columns = _check_columns(decl.columns, diagnostics)
    for column in decl.columns:
        if column.default is not None:
            diagnostics.report(
                type_codes.DEFAULT_INVALID,
                column.default.span,
                f"`{column.name.text}` is a column of a table, which has no defaults",
                "only for streams",
                help="the rows of a table are given whole; write the value there",
            )
            columns = None
    key = _positions(decl.key, decl.columns, diagnostics)
    if columns is None or key is None:
        return None
    schema = typed.Schema(columns, tuple(sorted(key)))
    return typed.Table(decl.name.text, schema, decl.path, span=decl.name.span)


def check_stream(decl: nodes.StreamDecl, diagnostics: Diagnostics) -> typed.Stream | None:
    columns = _check_columns(decl.columns, diagnostics)
    defaults = None if columns is None else _check_defaults(decl.columns, columns, diagnostics)
    options = _gather_options(decl, diagnostics)
    if columns is None or defaults is None or options is None:
        return None
    return _Options(decl, columns, defaults, diagnostics).build(options)


def _check_columns(decls: tuple[nodes.ColumnDecl, ...], diagnostics: Diagnostics) -> tuple[typed.Column, ...] | None:
    columns: list[typed.Column] = []
    first: dict[str, Span] = {}
    failed = False
    for decl in decls:
        name = decl.name.text
        if name in first:
            failed = True
            diagnostics.report(
                names.DUPLICATE_COLUMN,
                decl.name.span,
                f"column `{name}` is declared twice",
                "the second time",
                note=Note("the first one is here", first[name]),
            )
        first.setdefault(name, decl.name.span)
        type_ = declared_type(decl.type, diagnostics)
        if isinstance(type_, ErrorType):
            failed = True
            continue
        bounds = OPEN
        if decl.range is not None:
            before = len(diagnostics)
            bounds = declared_bounds(decl.range, type_, diagnostics)
            failed |= len(diagnostics) > before
        columns.append(typed.Column(name, type_, decl.nullable, bounds))
    return None if failed else tuple(columns)


def _check_defaults(
    decls: tuple[nodes.ColumnDecl, ...], columns: tuple[typed.Column, ...], diagnostics: Diagnostics
) -> tuple[tuple[int, Value], ...] | None:
    found: list[tuple[int, Value]] = []
    before = len(diagnostics)
    for position, (decl, column) in enumerate(zip(decls, columns, strict=True)):
        if decl.default is not None:
            found.append((position, declared_default(decl, decl.default, column.type, column.bounds, diagnostics)))
    return None if len(diagnostics) > before else tuple(found)


def _positions(
    wanted: tuple[nodes.Name, ...], decls: tuple[nodes.ColumnDecl, ...], diagnostics: Diagnostics
) -> tuple[int, ...] | None:
    known = {decl.name.text: position for position, decl in enumerate(decls)}
    found: list[int] = []
    failed = False
    for name in wanted:
        position = known.get(name.text)
        if position is None:
            failed = True
            diagnostics.report(
                names.UNKNOWN_COLUMN,
                name.span,
                f"there is no column `{name.text}` here",
                "not among the declared columns",
                help=partial(_undeclared_help, name.text, known),
            )
        elif position in found:
            failed = True
            diagnostics.report(
                names.DUPLICATE_COLUMN, name.span, f"`{name.text}` is listed twice", "already in the list"
            )
        else:
            found.append(position)
    return None if failed else tuple(found)


def _undeclared_help(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known) or "declare it in the list of columns"


@dataclass(frozen=True)
class _Gathered:
    """A stream's options by kind; only `unique` and `closes` may be repeated."""

    tick: nodes.TickOption | None
    event_time: nodes.EventTimeOption | None
    until: nodes.UntilOption | None
    retain: nodes.RetainOption | None
    unique: tuple[nodes.UniqueOption, ...]
    closes: tuple[nodes.ClosesOption, ...]


_OPTION_WORDS: dict[type[nodes.Node], str] = {
    nodes.TickOption: "tick",
    nodes.EventTimeOption: "event time",
    nodes.UntilOption: "until",
    nodes.RetainOption: "retain",
}


def report_repeated(
    seen: dict[type[nodes.Node], Span], option: nodes.Node, word: str, diagnostics: Diagnostics
) -> bool:
    """Reports an option that may stand once only and was seen before; True if it was."""
    if type(option) not in seen:
        seen[type(option)] = option.span
        return False
    diagnostics.report(
        names.REPEATED_OPTION,
        option.span,
        f"`{word}` is given twice",
        "the second time",
        note=Note("the first one is here", seen[type(option)]),
        help="keep one of them",
    )
    return True


def _gather_options(decl: nodes.StreamDecl, diagnostics: Diagnostics) -> _Gathered | None:
    seen: dict[type[nodes.Node], Span] = {}
    failed = False
    for option in decl.options:
        word = _OPTION_WORDS.get(type(option))
        if word is not None:
            failed |= report_repeated(seen, option, word, diagnostics)
    if failed:
        return None
    return _Gathered(
        next((option for option in decl.options if isinstance(option, nodes.TickOption)), None),
        next((option for option in decl.options if isinstance(option, nodes.EventTimeOption)), None),
        next((option for option in decl.options if isinstance(option, nodes.UntilOption)), None),
        next((option for option in decl.options if isinstance(option, nodes.RetainOption)), None),
        tuple(option for option in decl.options if isinstance(option, nodes.UniqueOption)),
        tuple(option for option in decl.options if isinstance(option, nodes.ClosesOption)),
    )


class _Options:
    """Checks the options of one stream against its columns and builds it."""

    def __init__(
        self,
        decl: nodes.StreamDecl,
        columns: tuple[typed.Column, ...],
        defaults: tuple[tuple[int, Value], ...],
        diagnostics: Diagnostics,
    ) -> None:
        self.decl = decl
        self.columns = columns
        self.defaults = defaults
        self.diagnostics = diagnostics
        self.failed = False

    def build(self, options: _Gathered) -> typed.Stream | None:
        unique = tuple(self._unique(option) for option in options.unique)
        event_time = self._event_time(options.event_time)
        closes = tuple(self._closes(option, event_time) for option in options.closes)
        until = self._until(options.until, event_time)
        phase = self._phase(options.tick)
        tick = self._tick(options.tick)
        if options.retain is not None:
            self._positive(options.retain.duration)
        if options.tick is not None and options.tick.every is not None:
            self._positive(options.tick.every)
        if self.failed:
            return None
        columns = tuple(
            replace(column, is_event_time=True) if position == event_time else column
            for position, column in enumerate(self.columns)
        )
        tick_position = len(columns)
        key = unique[0] if unique else (tick_position,)
        others = (*unique[1:], (tick_position,)) if unique else ()
        late = options.event_time.late if options.event_time else None
        every = options.tick.every if options.tick else None
        return typed.Stream(
            self.decl.name.text,
            typed.Schema((*columns, tick), key, others),
            options.tick.name.text if options.tick else None,
            every.microseconds if every else None,
            phase,
            unique,
            event_time,
            late.microseconds if late else 0,
            options.event_time.live if options.event_time else False,
            closes,
            until,
            options.retain.duration.microseconds if options.retain else None,
            self.defaults,
            span=self.decl.name.span,
        )

    def _report(self, code: Code, span: Span, message: str, label: str, help: str | None = None) -> None:
        self.failed = True
        self.diagnostics.report(code, span, message, label, help=help)

    def _column(self, name: nodes.Name) -> int:
        positions = _positions((name,), self.decl.columns, self.diagnostics)
        if positions is None:
            self.failed = True
            return -1
        return positions[0]

    def _not_null(self, name: nodes.Name, position: int, word: str) -> None:
        if position >= 0 and self.columns[position].nullable:
            self._report(
                names.BAD_STREAM_OPTION,
                name.span,
                f"`{name.text}` may be null, so it cannot be used for `{word}`",
                "declared `null`",
                help=f"remove `null` from the column `{name.text}`",
            )

    def _time(self, name: nodes.Name, word: str) -> int:
        position = self._column(name)
        if position < 0:
            return position
        self._not_null(name, position, word)
        if not isinstance(self.columns[position].type, TimeType):
            self._report(
                names.BAD_STREAM_OPTION,
                name.span,
                f"`{word}` needs a time column, but `{name.text}` is {self.columns[position].type}",
                f"this is {self.columns[position].type}",
                help=f"declare `{name.text} time`",
            )
        return position

    def _unique(self, option: nodes.UniqueOption) -> tuple[int, ...]:
        positions = _positions(option.columns, self.decl.columns, self.diagnostics)
        if positions is None:
            self.failed = True
            return ()
        for name, position in zip(option.columns, positions, strict=True):
            self._not_null(name, position, "unique")
        return tuple(sorted(positions))

    def _event_time(self, option: nodes.EventTimeOption | None) -> int | None:
        return self._time(option.column, "event time") if option else None

    def _closes(self, option: nodes.ClosesOption, event_time: int | None) -> tuple[int, int]:
        column = self._column(option.column)
        at = self._time(option.at, "closes ... at")
        if event_time is None:
            self._report(
                names.BAD_STREAM_OPTION,
                option.span,
                f"`closes {option.column.text}` needs an event time",
                "nothing says how far event time has come",
                help="declare which column is the `event time`",
            )
        return column, at

    def _until(self, option: nodes.UntilOption | None, event_time: int | None) -> int | None:
        if option is None:
            return None
        if event_time is None:
            self._report(
                names.BAD_STREAM_OPTION,
                option.span,
                "`until` needs an event time",
                "nothing says how far event time has come",
                help="declare which column is the `event time`",
            )
        before = len(self.diagnostics)
        value = literal_value(option.value, TimeType(), self.diagnostics)
        if len(self.diagnostics) > before or not isinstance(value, int):
            self.failed = True
            return None
        return value

    def _phase(self, option: nodes.TickOption | None) -> tuple[int, int] | None:
        if option is None or option.phase is None:
            return None
        phase, count = option.phase
        if not 1 <= count <= PHASE_COUNT_MAX or not 0 <= phase < count:
            self._report(
                names.BAD_TICK_PHASE,
                option.span,
                f"there is no phase {phase} of {count}",
                f"phases count from 0, and there are at most {PHASE_COUNT_MAX:,}",
                help="the first of two streams is `phase 0 of 2`, the second `phase 1 of 2`",
            )
        return option.phase

    def _tick(self, option: nodes.TickOption | None) -> typed.Column:
        if option is None:
            name = f"{self.decl.name.text}.tick"
            return typed.Column(name, IntType(), bounds=Bounds(0, None), hidden=True, is_tick=True)
        if any(decl.name.text == option.name.text for decl in self.decl.columns):
            self._report(
                names.DUPLICATE_COLUMN,
                option.name.span,
                f"the tick is called `{option.name.text}`, like a column",
                "the system assigns the tick, so it is not declared as a column",
                help="remove the column, or name the tick otherwise",
            )
        return typed.Column(option.name.text, IntType(), bounds=Bounds(0, None), is_tick=True)

    def _positive(self, duration: nodes.DurationLiteral) -> None:
        if duration.amount <= 0:
            self._report(
                names.BAD_STREAM_OPTION, duration.span, "this duration must be longer than nothing", "must be above 0"
            )
