"""Goal: records are equal, hashed and matched by value as frozen dataclasses are, without room for anything else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from runtime.protocol.messages import Ack
from runtime.records import record


def test_records_are_values() -> None:
    ack = Ack(1, 2, 3, 4)
    assert ack == Ack(1, 2, 3, 4) != replace(ack, horizon=5)
    assert {ack: "found"}[Ack(1, 2, 3, 4)] == "found"
    assert [field.name for field in fields(ack)] == ["receiver_epoch", "adopted_epoch", "applied_step", "horizon"]
    match ack:
        case Ack(_, adopted_epoch, step, _):
            assert (adopted_epoch, step) == (2, 3)
    with pytest.raises(AttributeError):
        ack.other = 1  # type: ignore[attr-defined]


def test_a_record_is_frozen_for_the_type_checker() -> None:
    with pytest.raises(AssertionError):
        record(frozen=False, slots=True)
