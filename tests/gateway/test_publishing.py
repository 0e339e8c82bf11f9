"""Goal: a repeated POST is the same publish, whatever became of the attempts before it and of their connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import smile
from smile.errors import PublishUncertain, SmileError
from smile.gateway.publishing import KeyReused, Posting
from smile.streams import StreamInput

PROGRAM = smile.compile("stream Sales (item int);")
SALES = StreamInput(PROGRAM.checked.program.streams["Sales"], PROGRAM.plan.streams["Sales"])


class Brokers:
    """A log that knows publishes by producer and number, behind connections whose answers are up to the test."""

    def __init__(self) -> None:
        self.log: dict[tuple[str, int], list[object]] = {}

    def connected(self, error: Exception | None = None, *, is_logged: bool = True) -> Any:
        async def publish_many(stream: str, rows: Sequence[object], *, once: tuple[str, int]) -> Sequence[int]:
            logged = self.log.setdefault(once, list(rows)) if is_logged else []
            if error is not None:
                raise error
            return range(len(logged))

        return SimpleNamespace(publish_many=publish_many, sync=SimpleNamespace(stream_input=lambda name: SALES))


def post(posting: Posting, system: Any, item: int, key: str) -> dict[str, object]:
    return asyncio.run(posting.post(system, "till", "Sales", json.dumps({"item": item}).encode(), key))


@pytest.mark.parametrize("key", ["abc", "till/7"])
def test_what_nobody_knows_keeps_its_number_over_the_next_connection(key: str) -> None:
    brokers, posting = Brokers(), Posting()
    for is_logged in (True, False):
        with pytest.raises(PublishUncertain):
            post(posting, brokers.connected(PublishUncertain("closed"), is_logged=is_logged), 1, key)
    with pytest.raises(KeyReused):
        post(posting, brokers.connected(), 2, key)
    with pytest.raises(SmileError, match="window"):
        post(posting, brokers.connected(SmileError("from before the window"), is_logged=False), 1, key)
    assert post(posting, brokers.connected(), 1, key)["published"] == 1
    assert list(brokers.log.values()) == [[{"item": 1}]]


def test_of_what_nobody_knows_no_rows_are_kept() -> None:
    posting = Posting()
    with pytest.raises(PublishUncertain):
        post(posting, Brokers().connected(PublishUncertain("closed")), 1, "abc")
    assert [found.outcome for found in posting._remembered.values()] == [None]


def test_what_was_surely_refused_is_free_again_under_another_number() -> None:
    brokers, posting = Brokers(), Posting()
    with pytest.raises(SmileError, match="no"):
        post(posting, brokers.connected(SmileError("no"), is_logged=False), 1, "abc")
    post(posting, brokers.connected(), 2, "abc")
    post(posting, brokers.connected(), 2, "abc")
    post(posting, brokers.connected(), 1, "def")
    assert list(brokers.log.values()) == [[{"item": 2}], [{"item": 1}]]
