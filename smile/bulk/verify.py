"""Is a live view right? Everything that is claimed about it is compared with what Spark computes from the events.

Nothing of the live system is used for the second: not its operators, not its optimised graph, not its checkpoints;
only its log and the archive. Both directions are checked. What is live follows from the events: the rows are the view
of exactly the ticks that it includes, also where it has gaps or runs ahead of its horizon; bounds hold as of the
horizon; what is final is what the newest events give too. And it is all of it: no row is missing, and settled rows are
those as of the horizon. Exact values must be equal; floats may differ in their last digits, because their sums depend
on the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from mpl.typed import Schema
from runtime.plan import ColumnKind, Finality, Relation
from smile.bulk.behind import Behind, behind
from smile.bulk.differences import Pair, Shape, Values, is_close
from smile.bulk.live import take
from smile.bulk.progress import watched
from smile.bulk.recompute import Recomputed, recompute
from smile.bulk.sources import Sources
from smile.errors import SmileError
from smile.reading import Reading
from smile.values import decode

CUT_WAIT_S = 30.0
EXPLAINED_MAX = 20
"""For so many differences of a view the events behind them are looked up: a person reads no more."""

Row = Mapping[str, object]


class Kind(Enum):
    """What is wrong with a row. The words go into reports."""

    MISSING = "missing"
    EXTRA = "there, but should not be"
    WRONG = "has wrong values"
    NOT_AS_OF = "settled, but not as of its horizon"
    OUT_OF_BOUNDS = "outside its bounds as of its horizon"
    FALSE_FINAL = "final, but not for ever"
    WRONG_WAY = "moved against its direction"
    HORIZON = "claims a horizon that it has not reached"


@dataclass(frozen=True)
class Difference:
    """`live` is what the view shows and `truth` what it should show as of `as_of`; None where there is no row."""

    kind: Kind
    key: tuple[object, ...]
    live: Row | None
    truth: Row | None
    as_of: int
    behind: tuple[Behind, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """`rows` is how many the view should have; `unsettled` of those it shows run ahead of the horizon `as_of`."""

    view: str
    as_of: int
    rows: int
    differences: tuple[Difference, ...]
    unsettled: int = 0
    failure: str | None = None
    """Why the view has stopped, if it has: what it shows was verified all the same."""

    @property
    def is_right(self) -> bool:
        return not self.differences and self.failure is None


def cut_of(system: Any, view: str, wait_s: float = CUT_WAIT_S) -> tuple[int, list[Row]]:
    """All rows of a live view as of one tick, and that tick."""
    with system.subscribe(view, emit="as of horizon", timeout=wait_s) as changes:
        for batch in changes.batches():
            if batch.kind == "snapshot":
                as_of = batch.delivery.as_of
                assert isinstance(as_of, int), "a snapshot is of one moment"
                return as_of, [change.row for change in batch.changes()]
    raise SmileError(f"view `{view}` did not come to a consistent cut within {wait_s:g} s")


def compare(truth: Recomputed, live: Iterable[Row]) -> Verdict:
    """Rows that somebody has, against those computed: by values alone."""
    shape = Shape.of(truth.schema)
    told = _Telling(truth.schema, shape, decoded=True)
    right = [tuple(row[name] for name in shape.names) for row in truth.rows()]
    pairs = shape.differing([tuple(row[name] for name in shape.names) for row in live], right)
    return Verdict(truth.view, truth.as_of, len(right), tuple(told.pair(pair, truth.as_of) for pair in pairs))


def verify(
    spark: Any,
    system: Reading,
    view: str,
    sources: Sources,
    tables: Mapping[str, object] | None = None,
    *,
    accept_loss: bool = False,
    quiet: bool = True,
) -> Verdict:
    """`system` is a system in this process or behind a connection; its logs must be among the sources."""
    return _Check(spark, system, view, sources, tables, accept_loss=accept_loss, quiet=quiet).verdict()


@dataclass(frozen=True)
class _Telling:
    """Rows as users know them."""

    schema: Schema
    shape: Shape
    decoded: bool = False

    def row(self, values: Values | None) -> Row | None:
        if values is None:
            return None
        visible = [column for column in self.schema.columns if not column.hidden]
        parts = zip(visible, values, strict=True)
        return {column.name: value if self.decoded else decode(value, column.type) for column, value in parts}

    def pair(self, pair: Pair, as_of: int, kind: Kind | None = None) -> Difference:
        live, truth = pair
        row = self.row(live) or self.row(truth) or {}
        if kind is None:
            kind = Kind.MISSING if live is None else Kind.EXTRA if truth is None else Kind.WRONG
        names = self.shape.names if self.shape.key is None else [self.shape.names[at] for at in self.shape.key]
        return Difference(kind, tuple(row[name] for name in names), self.row(live), self.row(truth), as_of)


class _Check:
    """One view, verified once. `found` are the differences, each with the canonical row that it is about."""

    def __init__(
        self,
        spark: Any,
        system: Reading,
        view: str,
        sources: Sources,
        tables: Mapping[str, object] | None,
        *,
        accept_loss: bool,
        quiet: bool,
    ) -> None:
        self._spark = spark
        self._program = system.program
        self._view = view
        self._sources = sources
        self._tables = tables
        self._accept_loss = accept_loss
        self._quiet = quiet
        self._live = take(system, view, sources)
        self._latest = sources.latest(self._live.ticks)
        schema = self._program.relation(view).schema
        self._schema = schema
        self._shape = Shape.of(schema)
        self._told = _Telling(schema, self._shape)
        self._found: list[tuple[Difference, Values | None]] = []

    def verdict(self) -> Verdict:
        live = self._live
        right = self._rows(f"{self._view}, as it is live")
        for pair in self._shape.differing(live.rows, right):
            self._add(pair, live.horizon)
        self._check_horizon(right)
        self._check_future()
        unsettled = len(live.rows) - sum(live.settled)
        differences = self._explained()
        return Verdict(self._view, live.horizon, len(right), differences, unsettled, live.failure)

    def _rows(self, what: str, as_of: int | None = None) -> list[Values]:
        """What the view should be: of the ticks that the live one includes, or of all up to a tick."""
        truth = recompute(
            self._spark,
            self._program,
            self._view,
            self._sources,
            as_of=self._live.horizon if as_of is None else as_of,
            within=self._live.ticks if as_of is None else None,
            tables=self._tables,
            accept_loss=self._accept_loss,
        )
        with watched(self._spark, what, rows=truth.events, quiet=self._quiet):
            return truth.canonical_rows()

    def _add(self, pair: Pair, as_of: int, kind: Kind | None = None) -> None:
        self._found.append((self._told.pair(pair, as_of, kind), pair[0] or pair[1]))

    # What is claimed as of the horizon

    def _check_horizon(self, right: list[Values]) -> None:
        live, horizon = self._live, self._live.horizon
        if any(ticks.horizon() < horizon for ticks in live.ticks.values()):
            self._found.append((Difference(Kind.HORIZON, (), None, None, horizon), None))
        if not live.includes_all_up_to(horizon, self._latest):
            right = self._rows(f"{self._view}, as of its horizon", horizon)
            settled = [row for row, is_settled in zip(live.rows, live.settled, strict=True) if is_settled]
            for pair in self._shape.only_live(settled, right):
                self._add(pair, horizon, Kind.NOT_AS_OF)
        then = self._shape.by_key(right)
        for row, low, high in zip(live.rows, live.low, live.high, strict=True):
            true = then.get(self._shape.key_of(row))
            if true is not None and not all(map(_is_within, true, low, high)):
                self._add((row, true), horizon, Kind.OUT_OF_BOUNDS)

    # What is claimed for ever

    def _check_future(self) -> None:
        live, relation = self._live, self._relation
        finals = [row for row, is_final in zip(live.rows, live.final, strict=True) if is_final]
        if relation.finality is Finality.NEVER:
            for row in finals:
                self._add((row, None), live.horizon, Kind.FALSE_FINAL)
            finals = []
        ways = _directions(relation)
        newest = max(self._latest.values(), default=-1)
        if (not finals and not ways) or live.includes_all_up_to(newest, self._latest):
            return
        right = self._rows(f"{self._view}, with the newest events", newest)
        for pair in self._shape.only_live(finals, right):
            self._add(pair, newest, Kind.FALSE_FINAL)
        now = self._shape.by_key(right)
        for row in live.rows if ways else ():
            true = now.get(self._shape.key_of(row))
            if true is not None and any(not _is_onward(way, row[at], true[at]) for at, way in ways.items()):
                self._add((row, true), newest, Kind.WRONG_WAY)

    @property
    def _relation(self) -> Relation:
        return self._program.relation(self._view).side.layout.relation

    # The events behind

    def _explained(self) -> tuple[Difference, ...]:
        explained = [row for _, row in self._found[:EXPLAINED_MAX] if row is not None]
        if not explained:
            return tuple(difference for difference, _ in self._found)
        visible = [at for at, column in enumerate(self._schema.columns) if not column.hidden]
        columns = tuple(visible) if self._shape.key is None else tuple(sorted(self._schema.key))
        rows = [tuple(row[visible.index(at)] for at in columns) for row in explained]
        with watched(self._spark, f"{self._view}, the events behind", quiet=self._quiet):
            events = iter(
                behind(
                    self._spark,
                    self._program.checked.program,
                    self._view,
                    columns,
                    rows,
                    self._sources,
                    self._live.ticks,
                    accept_loss=self._accept_loss,
                )
            )
        made: list[Difference] = []
        for number, (difference, row) in enumerate(self._found):
            is_explained = row is not None and number < EXPLAINED_MAX
            made.append(replace(difference, behind=next(events)) if is_explained else difference)
        return tuple(made)


def _directions(relation: Relation) -> dict[int, ColumnKind]:
    """Columns of monotone rows that are shown as they are and move one way only, by their place in a row."""
    if relation.versioned:
        return {}
    kinds = {at: relation.columns[one.columns[0]].kind for at, one in enumerate(relation.shown) if one.form == "plain"}
    return {at: kind for at, kind in kinds.items() if kind in (ColumnKind.UP, ColumnKind.DOWN)}


def _is_onward(way: ColumnKind, before: Any, after: Any) -> bool:
    if before is None or after is None or is_close(before, after):
        return True
    return bool(before <= after if way is ColumnKind.UP else after <= before)


def _is_within(value: Any, low: Any, high: Any) -> bool:
    """None is no bound; a null lies within any."""
    if value is None:
        return True
    is_above = low is None or low <= value or is_close(low, value)
    return is_above and (high is None or value <= high or is_close(value, high))
