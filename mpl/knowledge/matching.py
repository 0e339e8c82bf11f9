"""Operators that keep or drop left rows by what the right side holds: matching, not matching, minus, union."""

from __future__ import annotations

from mpl import typed
from mpl.knowledge.closing import Closing, both_words
from mpl.knowledge.kind import Cause, part_of_key
from mpl.knowledge.knowledge import Knowledge, Visibility, relation_knowledge
from mpl.knowledge.pairing import (
    Pairing,
    Side,
    closing_of_partners,
    fixed_columns,
    has_one_partner,
    pairing_of,
    waiting_rows,
)
from mpl.knowledge.path import Path, both, either, exists
from mpl.knowledge.state import NO_STATE, Growth, StateBound, bound_per_value, together

_NEGATED = {Path.FIXED: Path.FIXED, Path.RISING: Path.FALLING, Path.FALLING: Path.RISING}


def matching_knowledge(node: typed.MatchingNode, left: Knowledge, right: Knowledge) -> Knowledge:
    pairing = pairing_of(node, node.equal, node.rest, left, right)
    return _filtered(node, pairing, negated=node.negated)


def minus_knowledge(node: typed.MinusNode, left: Knowledge, right: Knowledge) -> Knowledge:
    equal = tuple(zip(node.left_compared, node.right_order, strict=True))
    return _filtered(node, pairing_of(node, equal, None, left, right), negated=True)


def _filtered(node: typed.MatchingNode | typed.MinusNode, pairing: Pairing, *, negated: bool) -> Knowledge:
    left, right = pairing.left.known, pairing.right.known
    one = has_one_partner(pairing.left, pairing.right)
    partner = exists(both((right.path, pairing.match)), at_most_one=one)
    wanted = _NEGATED.get(partner, Path.VERSIONED) if negated else partner
    path = both((left.path, wanted))
    cause = None
    if path is Path.VERSIONED:
        cause = (
            left.visibility.cause
            or right.visibility.cause
            or pairing.cause
            or Cause(
                node.span,
                "rows come and go as the rows that they are compared with vanish or change",
                "compare with rows that stay",
            )
        )
    reason = "shown until a partner comes" if negated else "shown once a partner has come"
    return relation_knowledge(
        node.schema,
        (left, right),
        columns=left.columns,
        visibility=Visibility(path, reason, cause),
        closings=_filtered_closings(pairing, negated=negated),
        state=together(
            [waiting_rows(pairing.left, pairing.right, first_partner_suffices=not negated), _partners(pairing)]
        ),
        condition=wanted,
    )


def _filtered_closings(pairing: Pairing, *, negated: bool) -> list[Closing]:
    """Left rows are settled when they are complete and no partner can come any more (or, wanted, one has come)."""
    found: list[Closing] = []
    for closing in pairing.left.known.closings:
        fixed = fixed_columns(pairing.left, closing.columns)
        partners = closing_of_partners(pairing.left, pairing.right, fixed, on_sight=not negated)
        if partners is None:
            continue
        on_sight = closing.on_sight or partners.on_sight
        at_sight = closing.at_sight and (partners.at_sight or not partners.words)
        words = both_words(closing, partners)
        found.append(Closing(closing.columns, words, on_sight, None if on_sight else closing.clock, at_sight))
    return found


def _partners(pairing: Pairing) -> StateBound:
    """The right side is kept as the set of values that left rows can ask for."""
    right: Side = pairing.right
    if not right.known.streams:
        return NO_STATE
    waiting = waiting_rows(right, pairing.left)
    if not right.known.is_event:
        return waiting
    if waiting.growth is Growth.BOUNDED:
        return waiting
    return bound_per_value(right.schema, tuple(right.equal), (), right.known.retained)


def union_knowledge(node: typed.UnionNode, left: Knowledge, right: Knowledge) -> Knowledge:
    inputs = ((left, node.left_kept), (right, node.right_order))
    stable = all(known.columns[position].is_stable for known, kept in inputs for position in kept)
    path = either(exists(known.path, at_most_one=False) for known, _ in inputs) if stable else Path.VERSIONED
    cause = None
    if path is Path.VERSIONED:
        cause = (
            left.visibility.cause
            or right.visibility.cause
            or Cause(
                node.span,
                "a row vanishes when the last row that it stands for changes or vanishes",
                "unite relations whose rows stay and whose columns are fixed",
            )
        )
    positions = [{old: new for new, old in enumerate(kept)} for _, kept in inputs]
    closings = [
        Closing(
            frozenset(positions[0][c] for c in one.columns) | frozenset(positions[1][c] for c in other.columns),
            both_words(one, other),
        )
        for one in left.closings
        for other in right.closings
        if not (one.on_sight or other.on_sight)
        and one.columns <= set(positions[0])
        and other.columns <= set(positions[1])
    ]
    has_state = bool(left.streams or right.streams)
    knowledge = relation_knowledge(
        node.schema,
        (left, right),
        columns=tuple(
            part_of_key(left.columns[one], right.columns[other])
            for one, other in zip(node.left_kept, node.right_order, strict=True)
        ),
        visibility=Visibility(path, "shown while either side has this row", cause),
        closings=closings,
        state=NO_STATE,
    )
    if not has_state:
        return knowledge
    return relation_knowledge(
        node.schema,
        (left, right),
        columns=knowledge.columns,
        visibility=knowledge.visibility,
        closings=closings,
        state=knowledge.extent,
    )
