"""Tokens: what a subscription is continued from (C7): the leaf's checkpoint, and what its reader has not seen yet.

A position alone would not do: which rows have vanished since then is known only to somebody who still has them. So a
token has the rows of the view; `TOKEN_BYTES_MAX` bounds it. It is valid for one view, in one emit mode, computed the
same way from the same logs: the component's digest says so. Users keep tokens wherever they like; a damaged one is
refused, never half understood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.plan.build import ViewPlan
from runtime.batch import Batch
from runtime.checkpoints.codec import CheckpointDamaged, decode, encode
from runtime.plan import Emit
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.leaf import Leaf
from smile.errors import SmileError, TokenRefused
from smile.subscription import Delivery

TOKEN_BYTES_MAX = 64 * 1024 * 1024
TOKEN_VERSION = 1


@dataclass(frozen=True)
class ResumeToken:
    """`unread`: told to the subscription, not to its reader. `held`: rows that the leaf has and holds back until the
    next consistent cut (`emit as of horizon`); its checkpoint does not say which those are."""

    checkpoint: Checkpoint
    unread: Delivery | None
    held: Batch | None


def held_rows(leaf: Leaf) -> Batch | None:
    slots = leaf.touched_since(leaf.delivered_step)
    return leaf.operator.rows.select(slots) if slots and leaf.emit_mode is Emit.AS_OF_HORIZON else None


def write_token(token: ResumeToken, plan: ViewPlan, mode: Emit, digest: str) -> bytes:
    data = encode(
        {
            "token": TOKEN_VERSION,
            "for": [plan.name, mode.value, digest],
            "checkpoint": token.checkpoint.to_wire(),
            "unread": None if token.unread is None else _delivery_to_wire(token.unread),
            "held": None if token.held is None else _batch_to_wire(token.held),
        }
    )
    if len(data) > TOKEN_BYTES_MAX:
        raise SmileError(
            f"`{plan.name}` is too large for a token: {len(data)} bytes of rows, at most {TOKEN_BYTES_MAX}; "
            "subscribe to a smaller view, or anew"
        )
    return data


def read_token(data: bytes, plan: ViewPlan, mode: Emit, digest: str) -> ResumeToken:
    """Raises TokenRefused."""
    if len(data) > TOKEN_BYTES_MAX:
        raise TokenRefused(f"a token has at most {TOKEN_BYTES_MAX} bytes, not {len(data)}")
    width = plan.side.layout.relation.width
    try:
        found: Any = decode(bytes(data))
        if not isinstance(found, dict) or found.get("token") != TOKEN_VERSION:
            raise ValueError(f"not a token of version {TOKEN_VERSION}")
        view, emit, made_for = found["for"]
        if (view, emit) != (plan.name, mode.value):
            raise TokenRefused(f"the token is for `{view}` emit {emit}, not `{plan.name}` emit {mode.value}")
        if made_for != digest:
            raise TokenRefused(
                f"`{plan.name}` is computed in another way, or from other logs, since this token was taken: "
                "subscribe without it"
            )
        unread = None if found["unread"] is None else _delivery_from_wire(found["unread"], width)
        held = None if found["held"] is None else _batch_from_wire(found["held"], width)
        return ResumeToken(Checkpoint.from_wire(found["checkpoint"]), unread, held)
    except (CheckpointDamaged, ValueError, TypeError, KeyError) as broken:
        raise TokenRefused(f"the token is damaged ({broken}): subscribe without it") from broken


def _batch_to_wire(rows: Batch) -> list[object]:
    return [[list(column) for column in rows.columns], list(rows.max_ticks), [bool(one) for one in rows.visible]]


def _batch_from_wire(value: Any, width: int) -> Batch:
    columns, max_ticks, visible = value
    if len(columns) != width or any(len(part) != len(visible) for part in (*columns, max_ticks)):
        raise ValueError(f"rows do not have {width} columns of one length")
    return Batch(tuple(list(column) for column in columns), list(max_ticks), list(visible))


def _delivery_to_wire(delivery: Delivery) -> list[object]:
    sides = [None if side is None else [list(row) for row in side] for side in (delivery.low, delivery.high)]
    told = [[bool(one) for one in delivery.finals()], list(delivery.horizons())]
    return [delivery.is_snapshot, _batch_to_wire(delivery.rows), *told, *sides]


def _delivery_from_wire(value: Any, width: int) -> Delivery:
    is_snapshot, rows, final, as_of, low, high = value
    batch = _batch_from_wire(rows, width)
    sides = [None if side is None else [tuple(row) for row in side] for side in (low, high)]
    if any(part is not None and len(part) != len(batch) for part in (final, as_of, *sides)):
        raise ValueError("something is not said about every row")
    return Delivery(bool(is_snapshot), batch, list(final), list(as_of), *sides)
