"""Goal: a token says the same after it was stored, and whatever else is given for one is refused by that name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smile
from runtime.batch import Batch
from runtime.checkpoints.codec import decode, encode
from runtime.plan import Emit, Plan
from runtime.protocol.events import Restarted
from runtime.protocol.leaf import Leaf
from smile.delivery import leaf_of
from smile.remote import token as tokens
from smile.remote.token import ResumeToken, read_token, write_token
from smile.subscription import Delivery

PROGRAM = smile.compile(
    "stream S (item int, qty int); view Sold = from S |> aggregate total := sum(qty) group by item;"
)
PLAN = PROGRAM.plan.views["Sold"]
WIDTH = PLAN.side.layout.relation.width


def rows(*items: int) -> Batch:
    return Batch.of_rows(
        WIDTH, [(item, *[item] * (WIDTH - 1)) for item in items], [7] * len(items), [True] * len(items)
    )


def a_token() -> ResumeToken:
    component = leaf_of(PLAN, Emit.BOUNDS)
    leaf = Leaf(Plan((*PROGRAM.plan.needed_for([PLAN.component]), component)), component.name)
    leaf.handle(Restarted(1))
    sides = [(1, None), (2, 5)]
    unread = Delivery(False, rows(1, 2), [True, False], 9, sides, sides)
    return ResumeToken(leaf.checkpoint(), unread, rows(3))


def test_what_is_stored_is_what_is_read() -> None:
    made = a_token()
    found = read_token(write_token(made, PLAN, Emit.BOUNDS, "digest"), PLAN, Emit.BOUNDS, "digest")
    assert found.checkpoint == made.checkpoint
    assert found.unread is not None
    assert made.unread is not None
    assert (found.unread.rows.rows(), found.unread.finals()) == (made.unread.rows.rows(), [True, False])
    assert (found.unread.horizons(), found.unread.low, found.unread.is_snapshot) == ([9, 9], made.unread.low, False)
    assert found.held is not None
    assert found.held.rows() == rows(3).rows()


def test_one_for_something_else_is_refused() -> None:
    data = write_token(a_token(), PLAN, Emit.BOUNDS, "digest")
    with pytest.raises(smile.TokenRefused, match="emit bounds, not `Sold` emit changes"):
        read_token(data, PLAN, Emit.CHANGES, "digest")
    with pytest.raises(smile.TokenRefused, match="in another way"):
        read_token(data, PLAN, Emit.BOUNDS, "another")


def test_a_view_that_is_too_large_has_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_token(a_token(), PLAN, Emit.BOUNDS, "digest")
    monkeypatch.setattr(tokens, "TOKEN_BYTES_MAX", len(data) - 1)
    with pytest.raises(smile.SmileError, match="too large for a token"):
        write_token(a_token(), PLAN, Emit.BOUNDS, "digest")
    with pytest.raises(smile.TokenRefused, match="at most"):
        read_token(data, PLAN, Emit.BOUNDS, "digest")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_nonsense_that_was_stored_properly_is_refused(data: st.DataObject) -> None:
    """The checksum is right; a part of the content is not."""
    content: Any = decode(write_token(a_token(), PLAN, Emit.BOUNDS, "digest"))
    parent, at = content, data.draw(st.sampled_from(sorted(content)))
    while data.draw(st.booleans()) and isinstance(parent[at], dict | list) and parent[at]:
        parent = parent[at]
        at = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
    parent[at] = data.draw(ANYTHING)
    try:
        found = read_token(encode(content), PLAN, Emit.BOUNDS, "digest")
    except smile.TokenRefused:
        return
    assert isinstance(found, ResumeToken)


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(smile.TokenRefused):
        read_token(noise, PLAN, Emit.BOUNDS, "digest")
