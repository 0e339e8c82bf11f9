"""Goal: what was read once does not go on costing memory, here or at a broker."""

from __future__ import annotations

import pytest

import smile
from smile.errors import TooManyRows
from smile.local import LocalBrokers
from smile.remote import system as remote
from tests.measures import eventually


def test_what_nobody_reads_is_closed(brokers: LocalBrokers, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sales, sold, big = (f"{name}{number}" for name in ("Sales", "Sold", "Big"))
    with smile.connect(brokers.address) as system:
        system.publish_many(sales, [{"item": one, "qty": 90} for one in range(20)])
        assert len(system.rows(sales)) == len(system.rows(big)) == 20
        assert system._open_views() == [], "events would be collected for ever"
        assert len(system.rows(sold)) == 20
        assert [one.plan.name for one in system._open_views()] == [sold], "for the next reading"
        with pytest.raises(TooManyRows, match=f"`{sales}` has more than 19 rows"):
            system.rows_up_to(sales, 19)
        assert len(system.rows_up_to(sales, 20)) == 20
        with system.subscribe(sold) as changes:
            monkeypatch.setattr(remote, "IDLE_SECONDS", 0.0)
            assert len(system.rows(sold)) == 20
            system._close_idle()
            assert len(system._open_views()) == 1, "somebody reads it"
            changes.close()
        eventually(lambda: not system._open_views(), "the idle view to be closed")
        assert len(system.rows(sold)) == 20
