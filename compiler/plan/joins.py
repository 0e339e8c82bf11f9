"""Joins: which runtime operator, over which physical columns of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.plan.layout import Layout, Shape, passed_on
from compiler.plan.orders import are_final, by_tick
from compiler.plan.planner import Planned, Planner
from mpl.knowledge import Path
from mpl.relations.keys import may_look_paired
from mpl.typed import AsofNode, Const, JoinNode
from mpl.types import Type, Value
from runtime.operators.asof import AsofSpec
from runtime.operators.join import JoinSpec
from runtime.operators.match import MatchSpec
from runtime.operators.outer_join import OuterJoinSpec
from runtime.plan import OperatorSpec


def plan_match(
    planner: Planner,
    equal: Sequence[tuple[int, int]],
    *,
    negated: bool,
    condition: str | None = None,
    null_matches: bool = False,
) -> Planned:
    spec = MatchSpec(
        _compared(planner, equal), negated, planner.functions.load()[condition] if condition else None, null_matches
    )
    # The operator takes the first witness for good, unless its rows are versioned.
    partners_stay = planner.knowledge.condition in (Path.FIXED, Path.FALLING if negated else Path.RISING)
    return planner.done(spec, planner.same_columns(versioned=not partners_stay))


def plan_join(planner: Planner, node: JoinNode) -> Planned:
    left, right = (source.layout for source in planner.inputs)
    border = len(left.cells)
    origins = [(left, position) for position in range(border)] + [(right, other) for other in node.right_kept]
    shapes = passed_on(planner.schema, planner.knowledge, origins)
    if node.side != "inner":
        shapes = _without_leaps(node, shapes)
    key = [position for position in planner.schema.key if shapes[position].form == "plain"]
    others = [position for position in range(len(shapes)) if position not in key]
    order = (*key, *others)
    numbers: list[int] = []
    for position in order:
        source, index = origins[position]
        offset = 0 if position < border else left.relation.width
        numbers += [offset + number for number in source.cells[index].columns]
    layout = planner.lay_out(shapes, order, len(key))
    return planner.done(_join_spec(planner, node, tuple(numbers)), layout, _averages(planner, node))


def _join_spec(planner: Planner, node: JoinNode, columns: tuple[int, ...]) -> OperatorSpec:
    left, right = (source.layout for source in planner.inputs)
    on = _compared(planner, node.equal)
    name = planner.functions.condition(node.rest) if node.rest is not None else None
    condition = planner.functions.load()[name] if name else None
    if node.side == "inner":
        return JoinSpec(on, columns, condition)
    right_default = _default_row(right, node.right_kept, node.defaults)
    has_left_key = any(position < len(left.cells) for position in planner.schema.key)
    if node.side == "left" and has_left_key and not may_look_paired(node):
        return JoinSpec(on, columns, condition, right_default)
    if node.side == "left":
        return OuterJoinSpec(on, columns, right_default, condition=condition)
    left_default = _default_row(left, range(len(left.cells)), node.left_defaults)
    shared = [(one, other) for one, other in node.equal if other not in node.right_kept]
    return OuterJoinSpec(on, columns, right_default, left_default, _compared(planner, shared), condition)


def _compared(planner: Planner, equal: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    left, right = (source.layout for source in planner.inputs)
    return tuple((left.plain(one), right.plain(other)) for one, other in equal)


def _averages(planner: Planner, node: JoinNode | AsofNode) -> dict[int, Type]:
    left, right = (source.side.averages for source in planner.inputs)
    border = len(node.left.schema.columns)
    kept = enumerate(node.right_kept, start=border)
    return {**left, **{position: right[other] for position, other in kept if other in right}}


def _default_row(layout: Layout, positions: Sequence[int], defaults: Sequence[Const]) -> tuple[Value, ...]:
    row: list[Value] = [None] * layout.relation.width
    for position, default in zip(positions, defaults, strict=True):
        row[layout.plain(position)] = default.value
    return tuple(row)


def _without_leaps(node: JoinNode, shapes: Sequence[Shape]) -> list[Shape]:
    """One tick may bring a partner that has risen already, unless it comes with its first contribution, from 0."""
    defaults = (*(node.left_defaults or (None,) * len(node.left.schema.columns)), *node.defaults)
    return [
        shape
        if node.rest is None and (default is None or default.value in (None, 0))
        else replace(shape, parts=tuple(replace(part, contribution_max=None) for part in shape.parts))
        for shape, default in zip(shapes, defaults, strict=True)
    ]


def plan_asof(planner: Planner, node: AsofNode) -> Planned:
    left, right = (source.layout for source in planner.inputs)
    border = len(left.cells)
    origins = [(left, position) for position in range(border)] + [(right, other) for other in node.right_kept]
    shapes = passed_on(planner.schema, planner.knowledge, origins)
    ties = by_tick(right, node.right.schema, descending=True)
    times = (left.plain(node.left_time), right.plain(node.right_time))
    is_steady = are_final(right, [times[1], *(part.column for part in ties)])
    width = left.relation.width
    columns = (*range(width), *(width + number for number in right.flat(node.right_kept)))
    spec = AsofSpec(_compared(planner, node.equal), times, ties, columns, node.keep_unmatched)
    return planner.done(spec, planner.like(left, shapes, versioned=not is_steady), _averages(planner, node))
