"""Pairs of rows from two relations: what decides whether they match, who can be whose partner, and what closes them.

Shared by joins, as-of joins, `matching` and `minus`. Positions: left columns as they are, right columns counted from 0
on their own side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpl import typed
from mpl.knowledge.closing import Closing, both_words, within
from mpl.knowledge.expressions import infer, rising_column
from mpl.knowledge.fact import source_text
from mpl.knowledge.kind import Cause, ColumnKnowledge, Nulls
from mpl.knowledge.knowledge import Knowledge
from mpl.knowledge.motion import Motion, combine
from mpl.knowledge.path import Path, both
from mpl.knowledge.state import NO_STATE, Growth, StateBound, bound_per_value
from mpl.relations.conditions import conjuncts
from mpl.relations.keys import candidates, closure


@dataclass(frozen=True)
class Band:
    """`time` (a column of the other side) is limited by an expression over this side's `columns`.

    `limit` says what event time has to pass: "`A.expires`".
    """

    time: int
    columns: frozenset[int]
    limit: str


@dataclass(frozen=True)
class Side:
    """One input of a pairing. `equal` maps its columns to those of the other side that must be equal.

    `bands` bound time columns of the *other* side by columns of this one.
    """

    schema: typed.Schema
    known: Knowledge
    equal: dict[int, tuple[int, ...]]
    bands: tuple[Band, ...]


@dataclass(frozen=True)
class Pairing:
    left: Side
    right: Side
    match: Path
    rest: Path | None
    cause: Cause | None

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right


def pairing_of(
    node: typed.JoinNode | typed.MatchingNode | typed.AsofNode | typed.MinusNode,
    equal: Sequence[tuple[int, int]],
    rest: typed.Expr | None,
    left: Knowledge,
    right: Knowledge,
) -> Pairing:
    fact = infer(rest, (*left.columns, *right.columns)) if rest is not None else None
    paths = [_equal_path(left.columns[one], right.columns[other]) for one, other in equal]
    cause = fact.column.cause if fact is not None else None
    if any(path is not Path.FIXED for path in paths):
        cause = cause or Cause(
            node.span, "rows find other partners while the compared columns change", "compare columns that are fixed"
        )
    if fact is not None:
        paths.append(fact.when_true)
    border = len(left.columns)
    left_equal: dict[int, tuple[int, ...]] = {}
    right_equal: dict[int, tuple[int, ...]] = {}
    for one, other in equal:
        left_equal[one] = (*left_equal.get(one, ()), other)
        right_equal[other] = (*right_equal.get(other, ()), one)
    bands = _bands(rest, border) if rest is not None else ((), ())
    return Pairing(
        Side(node.left.schema, left, left_equal, bands[0]),
        Side(node.right.schema, right, right_equal, bands[1]),
        both(paths),
        fact.when_true if fact is not None else None,
        cause,
    )


def _equal_path(one: ColumnKnowledge, other: ColumnKnowledge) -> Path:
    """Two values that approach or pass each other are equal once at the most."""
    if one.is_stable and other.is_stable:
        return Path.FIXED
    gap = combine((one.motion, other.motion.flipped))
    if not gap.has_direction or Nulls.MIXED in (one.nulls, other.nulls):
        return Path.VERSIONED
    return Path.RISING if gap is Motion.FIXED else Path.PULSE


def _bands(rest: typed.Expr, border: int) -> tuple[tuple[Band, ...], tuple[Band, ...]]:
    """Comparisons `time <= expression over the other side`, as seen from the left and from the right."""
    from_left: list[Band] = []
    from_right: list[Band] = []
    for part in conjuncts(rest):
        if not isinstance(part, typed.Apply) or len(part.arguments) != 2:
            continue
        small, large = part.arguments
        if part.function in ("greater", "greater_equal"):
            small, large = large, small
        elif part.function not in ("less", "less_equal"):
            continue
        time = rising_column(small)
        columns = _column_indexes(large)
        if time is None or not columns:
            continue
        limit = f"`{source_text(large)}`"
        if not isinstance(small, typed.ColumnRef):
            limit = f"all times for which `{source_text(part)}`"
        if time >= border and max(columns) < border:
            from_left.append(Band(time - border, frozenset(columns), limit))
        elif time < border and min(columns) >= border:
            from_right.append(Band(time, frozenset(index - border for index in columns), limit))
    return tuple(from_left), tuple(from_right)


def _column_indexes(expr: typed.Expr) -> set[int]:
    found: set[int] = set()
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        match part:
            case typed.ColumnRef():
                found.add(part.index)
            case typed.Apply() | typed.PythonCall():
                waiting.extend(part.arguments)
            case typed.CaseOf():
                waiting.append(part.otherwise)
                for condition, value in part.branches:
                    waiting += [condition, value]
            case typed.Const():
                pass
    return found


def fixed_columns(side: Side, known: Iterable[int]) -> frozenset[int]:
    """All columns of a side whose values are fixed once those at `known` are."""
    found = closure(known, side.schema.determined)
    identities = [side.schema.key]
    if side.known.path.stays:
        identities = [
            candidate
            for candidate in candidates(side.schema)
            if candidate == side.schema.key or all(side.known.columns[c].is_stable for c in candidate)
        ]
    if any(found.issuperset(identity) for identity in identities):
        stable = (position for position, column in enumerate(side.known.columns) if column.is_stable)
        found = found.union(stable)
    return found


def across(side: Side, fixed: Iterable[int]) -> frozenset[int]:
    """Columns of the other side that are fixed because they equal fixed ones of this side."""
    return frozenset(other for column in fixed for other in side.equal.get(column, ()))


def has_one_partner(side: Side, other: Side) -> bool:
    """Is it always the same row of `other`, if any, that a row of `side` can be paired with?"""
    stable = all(
        side.known.columns[column].is_stable and all(other.known.columns[c].is_stable for c in partners)
        for column, partners in side.equal.items()
    )
    if not stable:
        return False
    fixed = fixed_columns(other, across(side, side.equal))
    return fixed.issuperset(other.schema.key)


def closing_of_partners(side: Side, other: Side, fixed: Iterable[int], *, on_sight: bool) -> Closing | None:
    """What tells that no further row of `other` can match rows of `side` with these columns fixed.

    The closing's columns are meaningless here (they are the other side's); its words count.
    """
    known = frozenset(fixed)
    # What a unique partner has in its other columns is fixed too, but known only when it is seen.
    compared = closure(across(side, known), other.schema.determined)
    seen = fixed_columns(other, compared)
    for closing in sorted(other.known.closings, key=lambda c: c.on_sight):
        if closing.columns <= compared and (on_sight or not closing.on_sight):
            return closing
        if closing.columns <= seen and on_sight:
            return Closing(closing.columns, closing.words, on_sight=True, at_sight=closing.at_sight)
        if closing.clock is None:
            continue
        for band in side.bands:
            stable = all(side.known.columns[column].is_stable for column in band.columns)
            if closing.columns == frozenset((band.time,)) and band.columns <= known and stable:
                return Closing(frozenset(), f"{closing.clock} has passed {band.limit}", clock=closing.clock)
    return None


def waiting_rows(side: Side, other: Side, *, first_partner_suffices: bool = False) -> StateBound:
    """The bound of keeping this side's rows for partners that may still come.

    `first_partner_suffices`: a row is done with its first partner, however many there are (a semijoin).
    """
    known = side.known
    if not known.streams:
        return NO_STATE
    rows = _side_rows(side)
    if not other.known.streams:
        return NO_STATE if known.is_final_at_once else known.extent
    if rows.growth is Growth.BOUNDED:
        return rows
    stable = [position for position, column in enumerate(known.columns) if column.is_stable]
    closed = closing_of_partners(side, other, stable, on_sight=False)
    settled = within(known.closings, stable)
    if closed is not None and known.is_final_at_once:
        return StateBound(Growth.BOUNDED, f"{rows.words}, dropped once {closed.words}")
    if closed is not None and settled:
        return StateBound(Growth.BOUNDED, f"{rows.words}, dropped once {both_words(settled[0], closed)}")
    both_final = known.is_final_at_once and other.known.is_final_at_once
    if both_final and (first_partner_suffices or has_one_partner(side, other)):
        return StateBound(Growth.BOUNDED, f"{rows.words}, only until its partner has come")
    return rows


def _side_rows(side: Side) -> StateBound:
    """What keeping all rows of a side costs. That they are final does not help: a partner may still come."""
    known, schema = side.known, side.schema
    shown = [
        identity
        for identity in candidates(schema)
        if not any(schema.columns[c].hidden or schema.columns[c].is_tick for c in identity)
    ]
    names = " and ".join(f"`{stream}`" for stream in known.streams)
    if not known.is_event:
        return bound_per_value(schema, shown[0] if shown else schema.key, (), known.retained)
    if shown:
        return bound_per_value(schema, shown[0], (), known.retained, each=f"one row of {names}")
    bound = bound_per_value(schema, schema.key, (), known.retained)
    return StateBound(bound.growth, f"one row per event of {names}", bound.rows_max)
