"""Signed deployments: only what was signed, by whom it is said, and nothing older than what runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.security.errors import BadSignature, OldDeployment
from runtime.security.keys import new_keys
from runtime.security.signatures import SERIAL_AHEAD_MAX_US, check_serial, serial_now, sign_digest, verify_digest

AUTHOR = new_keys("author")
DIGEST = "sha256:" + "ab" * 32
SIGNATURE = sign_digest(AUTHOR, "tickets.mpl", DIGEST, 1234)


def test_the_signed_digest_is_accepted_with_its_serial() -> None:
    assert verify_digest(AUTHOR.public, "tickets.mpl", DIGEST, SIGNATURE) == 1234


def test_another_signer_digest_or_name_is_refused() -> None:
    with pytest.raises(BadSignature):
        verify_digest(new_keys("author").public, "tickets.mpl", DIGEST, SIGNATURE)
    with pytest.raises(BadSignature):
        verify_digest(AUTHOR.public, "tickets.mpl", DIGEST.replace("ab", "ac", 1), SIGNATURE)
    with pytest.raises(BadSignature):
        verify_digest(AUTHOR.public, "ticket.mpl", DIGEST, SIGNATURE)
    with pytest.raises(BadSignature):  # the parts are kept apart: moving a letter between them is another statement
        verify_digest(AUTHOR.public, "tickets.mpls", DIGEST[1:], SIGNATURE)


@given(st.integers(0, len(SIGNATURE) * 8 - 1))
def test_every_bit_counts(bit: int) -> None:
    changed = bytearray(SIGNATURE)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BadSignature):
        verify_digest(AUTHOR.public, "tickets.mpl", DIGEST, bytes(changed))


@given(st.binary(max_size=200))
def test_garbage_is_a_bad_signature(data: bytes) -> None:
    with pytest.raises(BadSignature):
        verify_digest(AUTHOR.public, "tickets.mpl", DIGEST, data)


def test_an_old_deployment_cannot_come_back() -> None:
    now = serial_now()
    check_serial(now, DIGEST, 0, "")
    check_serial(now + 1, DIGEST, now, "sha256:00")
    check_serial(now, DIGEST, now, DIGEST)  # repeated, because the answer was lost
    with pytest.raises(OldDeployment, match="newer"):
        check_serial(now - 1, DIGEST, now, DIGEST)
    with pytest.raises(OldDeployment):
        check_serial(now, DIGEST, now, "sha256:00")


def test_a_serial_from_the_far_future_is_refused() -> None:
    check_serial(5 + SERIAL_AHEAD_MAX_US, DIGEST, 0, "", now=5)
    with pytest.raises(OldDeployment, match="clock"):
        check_serial(6 + SERIAL_AHEAD_MAX_US, DIGEST, 0, "", now=5)
