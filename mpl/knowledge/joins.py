"""Joins: inner, left, full and as-of."""

from __future__ import annotations

from dataclasses import replace

from mpl import typed
from mpl.knowledge.closing import Closing, both_words
from mpl.knowledge.kind import (
    Cause,
    ColumnKnowledge,
    Kind,
    Nulls,
    Part,
    directed,
    dominated,
    pair,
    part_of_key,
    rising,
    versioned,
)
from mpl.knowledge.knowledge import Knowledge, Visibility, relation_knowledge
from mpl.knowledge.motion import Motion, combine
from mpl.knowledge.pairing import (
    Pairing,
    Side,
    across,
    closing_of_partners,
    fixed_columns,
    has_one_partner,
    pairing_of,
    waiting_rows,
)
from mpl.knowledge.path import Path, both, either
from mpl.knowledge.state import together
from mpl.relations.keys import identifies, may_look_paired

_PARTNER_CHANGES = "a row may get another partner, and then its columns are replaced"


def join_knowledge(node: typed.JoinNode, left: Knowledge, right: Knowledge) -> Knowledge:
    pairing = pairing_of(node, node.equal, node.rest, left, right)
    match node.side:
        case "inner":
            columns, visibility = _inner(node, pairing)
        case "left":
            columns, visibility = _left(node, pairing)
        case "full":
            columns, visibility = _full(node, pairing)
    return relation_knowledge(
        node.schema,
        (left, right),
        columns=columns,
        visibility=visibility,
        closings=_join_closings(node, pairing),
        state=together(
            [
                waiting_rows(pairing.left, pairing.right),
                waiting_rows(pairing.right, pairing.left),
            ]
        ),
        condition=pairing.rest,
    )


def _visibility(path: Path, reason: str, pairing: Pairing, span_cause: Cause) -> Visibility:
    if path is not Path.VERSIONED:
        return Visibility(path, reason)
    sides = (side.known.visibility.cause for side in pairing.sides)
    return Visibility(path, reason, next((c for c in sides if c is not None), None) or pairing.cause or span_cause)


def _pair_identity(node: typed.JoinNode, pairing: Pairing) -> tuple[bool, bool]:
    """Does a key of the result always mean the same left row, and the same right row?"""
    border = len(pairing.left.known.columns)
    back = {position: right for right, position in _positions(node, pairing).items()}
    key = node.schema.key
    left = fixed_columns(pairing.left, [c for c in key if c < border])
    right = fixed_columns(pairing.right, [back[c] for c in key if c in back])
    if pairing.match is not Path.VERSIONED:
        for _ in range(2):
            right = fixed_columns(pairing.right, right | _carried(pairing.left, pairing.right, left))
            left = fixed_columns(pairing.left, left | _carried(pairing.right, pairing.left, right))
    return left.issuperset(pairing.left.schema.key), right.issuperset(pairing.right.schema.key)


def _positions(node: typed.JoinNode, pairing: Pairing) -> dict[int, int]:
    """Where the right's columns are in the result; one that is compared may be represented by the left's."""
    border = len(pairing.left.known.columns)
    out = {right: border + position for position, right in enumerate(node.right_kept)}
    for right, lefts in pairing.right.equal.items():
        out.setdefault(right, lefts[0])
    return out


def _carried(side: Side, other: Side, fixed: frozenset[int]) -> frozenset[int]:
    """Columns of `other` that equal fixed ones, where both never change."""
    stable = (column for column in fixed if _is_stable(side, column))
    return frozenset(c for c in across(side, stable) if _is_stable(other, c))


def _is_stable(side: Side, column: int) -> bool:
    return side.known.columns[column].is_stable


def _inner(node: typed.JoinNode, pairing: Pairing) -> tuple[tuple[ColumnKnowledge, ...], Visibility]:
    left, right = pairing.left.known, pairing.right.known
    columns = (*left.columns, *(right.columns[position] for position in node.right_kept))
    changes = Cause(node.span, _PARTNER_CHANGES, "join on the key of the other side")
    path = both((left.path, right.path, pairing.match))
    same = _pair_identity(node, pairing)
    if not all(same):
        key, border = set(node.schema.key), len(left.columns)
        columns = tuple(
            column if same[position >= border] else part_of_key(column) if position in key else versioned(changes)
            for position, column in enumerate(columns)
        )
        return columns, _visibility(Path.VERSIONED, "shown while both rows are there", pairing, changes)
    return columns, _visibility(path, "shown while both rows are there and match", pairing, changes)


def _left(node: typed.JoinNode, pairing: Pairing) -> tuple[tuple[ColumnKnowledge, ...], Visibility]:
    left, right = pairing.left.known, pairing.right.known
    matched = both((right.path, pairing.match))
    changes = Cause(node.span, _PARTNER_CHANGES, "join on the key of the other side")
    if has_one_partner(pairing.left, pairing.right):
        filled = _filled(node, pairing.right, node.right_kept, node.defaults, matched)
        return (*left.columns, *filled), left.visibility
    parts = [right.columns[position] for position in node.right_kept]
    if identifies(pairing.right.schema, _compared(pairing.left)):
        # One partner at a time, but not always the same one: its columns are replaced.
        return (*left.columns, *(versioned(pairing.cause or changes) for _ in parts)), left.visibility
    return _unmatched(node, pairing, (*left.columns, *map(_maybe_absent, parts)), matched)


def _compared(side: Side) -> list[int]:
    return [other for partners in side.equal.values() for other in partners]


def _unmatched(
    node: typed.JoinNode, pairing: Pairing, columns: tuple[ColumnKnowledge, ...], matched: Path
) -> tuple[tuple[ColumnKnowledge, ...], Visibility]:
    """A row without a partner is shown until its first partner comes; pairs are shown from then on."""
    reason = "a row without a partner is shown until one comes"
    changes = Cause(node.span, _PARTNER_CHANGES, "join on the keys of both sides")
    key = set(node.schema.key)
    if may_look_paired(node):
        replaced = Cause(
            node.span,
            "a default or null in a key column may equal the value of a real row",
            "leave defaults of key columns away, and nulls out of the keys of both sides",
        )
        columns = tuple(part_of_key(column) if c in key else versioned(replaced) for c, column in enumerate(columns))
        return columns, _visibility(Path.VERSIONED, reason, pairing, replaced)
    stays = matched.stays and pairing.left.known.path.stays and pairing.right.known.path.stays
    settled = matched is Path.FIXED and pairing.left.known.path is Path.FIXED
    path = Path.FIXED if settled else Path.PULSE if stays else Path.VERSIONED
    return columns, _visibility(path, reason, pairing, changes)


def _full(node: typed.JoinNode, pairing: Pairing) -> tuple[tuple[ColumnKnowledge, ...], Visibility]:
    """Rows of both sides, paired where they match.

    If a column of its own in the key tells whether a side is there, that side is fixed in each row. Otherwise its key
    is among the shared columns, and it may be filled in later.
    """
    left, right = pairing.left.known, pairing.right.known
    changes = Cause(node.span, _PARTNER_CHANGES, "join on the keys of both sides")
    out = _positions(node, pairing)
    shared = {position for position_right, position in out.items() if position_right not in node.right_kept}
    key = set(node.schema.key)
    told_left = any(c in key - shared for c in pairing.left.schema.key)
    told_right = any(out.get(c, -1) in key - shared for c in pairing.right.schema.key)
    matched = both((left.path, right.path, pairing.match))
    everywhere = tuple(range(len(left.columns)))
    from_left = _side_columns(node, pairing.left, pairing.right, everywhere, node.left_defaults, told_left, matched)
    from_right = _side_columns(node, pairing.right, pairing.left, node.right_kept, node.defaults, told_right, matched)
    either_side = {position: right.columns[c] for c, position in out.items() if position in key & shared}
    columns = tuple(
        part_of_key(left.columns[c], either_side[c]) if c in either_side else column
        for c, column in enumerate(from_left)
    )
    if told_left or told_right:
        return _unmatched(node, pairing, (*columns, *from_right), matched)
    path = either((left.path, right.path)) if pairing.match.stays else Path.VERSIONED
    return (*columns, *from_right), _visibility(path, "shown from the first of both rows on", pairing, changes)


def _side_columns(
    node: typed.JoinNode,
    side: Side,
    other: Side,
    positions: tuple[int, ...],
    defaults: tuple[typed.Const, ...],
    told: bool,
    matched: Path,
) -> tuple[ColumnKnowledge, ...]:
    if told:
        return tuple(_maybe_absent(side.known.columns[position]) for position in positions)
    if has_one_partner(other, side):
        return _filled(node, side, positions, defaults, both((side.known.path, matched)))
    cause = side.known.visibility.cause or Cause(node.span, _PARTNER_CHANGES, "join on the keys of both sides")
    return tuple(versioned(cause) for _ in positions)


def _maybe_absent(column: ColumnKnowledge) -> ColumnKnowledge:
    return replace(column, nulls=Nulls.FIXED) if column.nulls is Nulls.NEVER else column


# --- defaults -------------------------------------------------------------------------------------------------------


def _filled(
    node: typed.JoinNode,
    side: Side,
    positions: tuple[int, ...],
    defaults: tuple[typed.Const, ...],
    appears: Path,
) -> tuple[ColumnKnowledge, ...]:
    """Columns of a partner that may come later, and are filled from defaults until then."""
    result: list[ColumnKnowledge] = []
    for position, default in zip(positions, defaults, strict=True):
        declared, column = side.schema.columns[position], side.known.columns[position]
        if appears is Path.FIXED:
            result.append(_maybe_absent(column) if default.value is None else column)
        elif not appears.stays:
            cause = Cause(
                node.span,
                f"`{declared.name}` falls back to its default when the row that it came from vanishes",
                "join with rows that stay",
            )
            result.append(versioned(column.cause or side.known.visibility.cause or cause))
        else:
            filled = _from_default(column, declared, default, node)
            result.append(replace(filled, open_ended=column.open_ended))
    return tuple(result)


def _from_default(
    column: ColumnKnowledge, declared: typed.Column, default: typed.Const, node: typed.JoinNode
) -> ColumnKnowledge:
    if default.value is None:
        nulls = Nulls.MIXED if column.nulls is Nulls.MIXED else Nulls.UNTIL_KNOWN
        return replace(column, nulls=nulls, reason=f"null until a partner comes; then: {column.reason}")
    if column.kind is Kind.VERSIONED:
        return column
    if column.nulls is Nulls.NEVER and column.kind in (Kind.FINAL, Kind.UP, Kind.DOWN):
        motion = combine((column.motion, _step_from(default, declared)))
        if motion.has_direction:
            text = "0" if default.value == 0 else default.span.text
            return directed(motion, f"starts at its default {text}; then: {column.reason}")
    parts = column.parts
    if parts is not None and default.value == 0 and all(part.non_negative for part in parts):
        moving = Part(rises=True, non_negative=True)
        return pair(moving, moving, f"starts at 0; then: {column.reason}", column.nulls)
    cause = Cause(
        node.span,
        f"`{declared.name}` shows its default until a partner comes and is then replaced",
        "leave the default away (null until known), or choose the lowest possible value as default",
    )
    return versioned(cause)


def _step_from(default: typed.Const, declared: typed.Column) -> Motion:
    """How the value moves when the default gives way to any value of the column."""
    value, bounds = default.value, declared.bounds
    if isinstance(value, bool):
        return Motion.FALLS if value else Motion.RISES
    if not isinstance(value, int | float):
        return Motion.MIXED
    if bounds.low is not None and value <= bounds.low:
        return Motion.RISES
    if bounds.high is not None and value >= bounds.high:
        return Motion.FALLS
    return Motion.MIXED


# --- closings -------------------------------------------------------------------------------------------------------


def _join_closings(node: typed.JoinNode, pairing: Pairing) -> list[Closing]:
    """Fixed values close pairs when they close one side, and through it the other; or when they close both."""
    out = _positions(node, pairing)
    # A row without a partner is only settled when none can come any more; seeing one is not enough.
    right_on_sight = node.side == "inner"
    left_on_sight = node.side != "full"
    # And where a column is null for want of a partner, its value closes nothing.
    usable = _never_absent(node, pairing, out)
    found: list[Closing] = []
    for closing in pairing.left.known.closings:
        if (closing.on_sight and not left_on_sight) or not closing.columns <= usable:
            continue
        fixed = fixed_columns(pairing.left, closing.columns)
        partners = closing_of_partners(pairing.left, pairing.right, fixed, on_sight=right_on_sight)
        if partners is not None:
            found.append(_joint(closing, closing.columns, partners))
    for closing in pairing.right.known.closings:
        if (closing.on_sight and not right_on_sight) or not _reach(closing, out) <= usable:
            continue
        fixed = fixed_columns(pairing.right, closing.columns)
        partners = closing_of_partners(pairing.right, pairing.left, fixed, on_sight=left_on_sight)
        if partners is not None:
            found.append(_joint(closing, frozenset(out[c] for c in closing.columns), partners))
    for one in pairing.left.known.closings:
        for other in pairing.right.known.closings:
            skipped = (one.on_sight and not left_on_sight) or (other.on_sight and not right_on_sight)
            columns = one.columns | _reach(other, out)
            if not skipped and columns <= usable:
                on_sight, at_sight = one.on_sight or other.on_sight, one.at_sight and other.at_sight
                found.append(Closing(columns, both_words(one, other), on_sight, at_sight=at_sight))
    return found


def _reach(closing: Closing, out: dict[int, int]) -> frozenset[int]:
    """Where a right closing's columns are in the result; -1 for one that is not there."""
    return frozenset(out.get(column, -1) for column in closing.columns)


def _never_absent(node: typed.JoinNode, pairing: Pairing, out: dict[int, int]) -> frozenset[int]:
    """Columns of the result that always come from a row, never from want of one."""
    border = len(pairing.left.known.columns)
    match node.side:
        case "inner":
            return frozenset((*range(border), *out.values()))
        case "left":
            return frozenset(range(border))
        case "full":
            return frozenset(position for right, position in out.items() if right not in node.right_kept)


def _joint(closing: Closing, columns: frozenset[int], partners: Closing) -> Closing:
    on_sight = closing.on_sight or partners.on_sight
    clock = closing.clock if partners.is_time else None
    at_sight = closing.at_sight and (partners.at_sight or not partners.words)
    return Closing(columns, both_words(closing, partners), on_sight, None if on_sight else clock, at_sight)


# --- as-of ----------------------------------------------------------------------------------------------------------


def asof_knowledge(node: typed.AsofNode, left: Knowledge, right: Knowledge) -> Knowledge:
    pairing = pairing_of(node, node.equal, None, left, right)
    steady = (
        right.path.stays
        and pairing.match is Path.FIXED
        and left.columns[node.left_time].is_stable
        and right.columns[node.right_time].is_stable
    )
    cause = (
        right.visibility.cause
        or pairing.cause
        or Cause(node.span, "the row that was the latest may vanish or change its time", "join with events")
    )
    parts: list[ColumnKnowledge] = []
    for position in node.right_kept:
        column, declared = right.columns[position], node.right.schema.columns[position]
        nulls = Nulls.UNTIL_KNOWN if node.keep_unmatched else Nulls.NEVER
        if column.nulls is not Nulls.NEVER:
            # The row that takes over may have null here.
            nulls = Nulls.MIXED
        if not steady or not column.is_stable:
            parts.append(versioned(column.cause or cause))
        elif position == node.right_time and not declared.nullable:
            parts.append(rising("later rows, up to the time asked for, replace earlier ones", nulls))
        else:
            parts.append(dominated("latest", "the value of the latest row up to the time asked for", nulls))
    path = left.path
    if not node.keep_unmatched:
        path = both((left.path, right.path)) if steady else Path.VERSIONED
    return relation_knowledge(
        node.schema,
        (left, right),
        columns=(*left.columns, *parts),
        visibility=Visibility(path, "shown with the latest partner so far", cause if path is Path.VERSIONED else None),
        closings=_asof_closings(node, pairing) if steady else [],
        state=together(
            [
                waiting_rows(pairing.left, pairing.right),
                waiting_rows(pairing.right, pairing.left),
            ]
        ),
    )


def _asof_closings(node: typed.AsofNode, pairing: Pairing) -> list[Closing]:
    """Settled when nothing that is not later than the left row can come any more on the right."""
    clocks = [
        closing.clock
        for closing in pairing.right.known.closings
        if closing.clock is not None and closing.columns == frozenset((node.right_time,))
    ]
    found: list[Closing] = []
    for closing in pairing.left.known.closings:
        fixed = fixed_columns(pairing.left, closing.columns)
        partners = closing_of_partners(pairing.left, pairing.right, fixed, on_sight=False)
        if partners is not None:
            found.append(_joint(closing, closing.columns, partners))
        elif clocks:
            name = node.left.schema.columns[node.left_time].name
            passed = Closing(frozenset(), f"{clocks[0]} has passed `{name}`", clock=clocks[0])
            found.append(_joint(closing, closing.columns | {node.left_time}, passed))
    return found
