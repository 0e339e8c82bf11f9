"""Timers, faults, peers and log lines of a broker, each by itself."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.batch import Batch
from runtime.broker.attachments import ATTACHMENTS_PER_PEER_MAX, REQUESTS_MAX, Attachments
from runtime.broker.broker import Broker
from runtime.broker.endpoints import TOPIC_BYTES
from runtime.broker.faults import Faults, UnknownFault
from runtime.broker.log_lines import JsonLines, PrettyLines
from runtime.broker.publishing import Publishing
from runtime.broker.timers import Timers
from runtime.broker.traffic import Traffic
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge
from runtime.wire.limits import FRAME_BYTES_MAX


def test_a_timer_fires_once_at_the_time_it_was_armed_for_last() -> None:
    timers = Timers()
    timers.arm("c", "ask", 100)
    timers.arm("c", "ask", 300)
    timers.arm("c", "idle", 200)
    timers.arm("d", "ask", 50)
    timers.arm("d", "ask", 20)
    assert timers.next_due_us() == 20
    assert list(timers.due(150)) == [("d", "ask")]
    assert list(timers.due(250)) == [("c", "idle")]
    assert list(timers.due(299)) == []
    assert list(timers.due(300)) == [("c", "ask")]
    assert list(timers.due(10_000)) == []


def test_arming_again_and_again_does_not_grow_anything() -> None:
    timers = Timers()
    for us in range(10_000):
        timers.arm("c", "ask", 1_000 + us)
    assert len(timers) == 1
    assert len(timers._heap) == 1
    timers.forget("c")
    assert list(timers.due(10**9)) == []


def test_a_subscription_counts_only_with_the_topic_that_was_handed_out() -> None:
    attachments = Attachments()
    one = attachments.meet(b"one", "", "", "client", 1, 0)
    two = attachments.meet(b"two", "", "", "client", 1, 0)
    assert one is not None
    assert two is not None
    first, second = (attachments.attach(peer, "guests:V", "V", "guest") for peer in (one, two))
    assert first is not None
    assert second is not None
    assert first.topic[:TOPIC_BYTES] == second.topic[:TOPIC_BYTES]
    assert first.topic != second.topic
    assert attachments.topic_to_tell("guests:V") is None  # nobody has subscribed yet
    assert attachments.subscribed(first.topic[:TOPIC_BYTES]) is None
    assert attachments.subscribed(first.topic[:TOPIC_BYTES] + bytes(8)) is None
    assert attachments.subscribed(first.topic) is first
    assert attachments.topic_to_tell("guests:V") == first.topic[:TOPIC_BYTES]
    attachments.forget(b"one")
    assert attachments.topic_to_tell("guests:V") is None
    assert attachments.attached("guests:V") == 1
    attachments.renew_topics()
    assert attachments.subscribed(second.topic) is None
    again = attachments.attach(two, "guests:V", "V", "guest")
    assert again is not None
    assert again.topic[:TOPIC_BYTES] != second.topic[:TOPIC_BYTES]


def test_a_peer_has_so_many_attachments_and_requests_and_no_more() -> None:
    attachments = Attachments()
    peer = attachments.meet(b"one", "", "", "client", 1, 0)
    assert peer is not None
    made = [attachments.attach(peer, f"e{n}", "V", "plan") for n in range(ATTACHMENTS_PER_PEER_MAX + 1)]
    assert [one is None for one in made[-2:]] == [False, True]
    asked = [peer.may_request(0) for _ in range(int(REQUESTS_MAX) + 1)]
    assert [asked[-2], asked[-1]] == [True, False]
    assert peer.may_request(1_000_000)


def test_a_new_incarnation_of_a_peer_has_nothing_of_the_old_one() -> None:
    attachments = Attachments()
    peer = attachments.meet(b"one", "alice", "", "client", 1, 0)
    assert peer is not None
    attachments.attach(peer, "e", "V", "plan")
    same = attachments.meet(b"one", "alice", "", "client", 1, 10)
    assert same is peer
    for user, incarnation in (("alice", 2), ("bob", 2)):
        other = attachments.meet(b"one", user, "", "client", incarnation, 20)
        assert other is not None
        assert not other.attachments
    assert attachments.attached("e") == 0


def test_faults_do_what_they_say() -> None:
    faults, sent = Faults(seed=1), []
    faults.ask("drop", {"fraction": 0.5})
    for n in range(1_000):
        faults.pass_on(lambda n=n: sent.append(n))  # type: ignore[misc]
    assert 400 < len(sent) < 600
    assert faults.dropped == 1_000 - len(sent)
    faults.ask("none", {})
    faults.ask("duplicate", {"fraction": 1.0})
    sent.clear()
    faults.pass_on(lambda: sent.append(1))
    assert sent == [1, 1]
    faults.ask("none", {})
    faults.ask("delay", {"fraction": 1.0, "ms": 60_000})
    faults.pass_on(lambda: sent.append(2))
    assert sent == [1, 1]
    assert 59 < (faults.send_late() or 0) <= 60
    for kind, arguments in (("drop", {}), ("drop", {"fraction": 2}), ("pause", {"seconds": True}), ("fire", {})):
        with pytest.raises(UnknownFault):
            faults.ask(kind, arguments)


def test_log_lines_name_the_component_and_the_edge() -> None:
    record = logging.makeLogRecord(
        {"name": "smile.host", "levelname": "WARNING", "msg": "starts %s", "args": ("again",), "component": "Sold"}
    )
    said = json.loads(JsonLines("west").format(record))
    assert (said["broker"], said["part"], said["text"], said["component"]) == ("west", "host", "starts again", "Sold")
    line = PrettyLines("west").format(record)
    assert "warning" in line
    assert line.endswith("west host: starts again  [component=Sold]")


def test_the_newest_publish_of_a_producer_stays_the_newest() -> None:
    publishing = Publishing(lambda _outcome, _source: None)
    publishing.add("s", None)
    for sequence in (4, 6, 5):
        publishing.accepted("s", "p", sequence, ([1],))
    assert publishing.reason_to_refuse("s", "p", 7, 6, ([1],)) is None
    refused = publishing.reason_to_refuse("s", "p", 7, 5, ([1],))
    assert refused is not None
    assert refused.code == "order"


def test_a_refusal_that_is_repeated_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """An attachment is asked for again every few seconds, for as long as the other broker has another deployment."""
    broker: Any = SimpleNamespace(
        _refused={}, _receiver_of_edge={"e": "c"}, host=SimpleNamespace(nudge=lambda *_: None)
    )
    for _ in range(3):
        Broker.attach_refused(broker, None, "e", "digest", "not the same")  # type: ignore[arg-type]
    Broker.attach_refused(broker, None, "e", "rights", "not allowed")  # type: ignore[arg-type]
    Broker.confirmed(broker, None, "e")  # type: ignore[arg-type]
    Broker.attach_refused(broker, None, "e", "rights", "not allowed")  # type: ignore[arg-type]
    assert [line.getMessage() for line in caplog.records] == [
        "cannot attach: not the same",
        "cannot attach: not allowed",
        "cannot attach: not allowed",
    ]


def test_a_row_that_no_message_can_hold_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Joins make such rows of texts that were small enough: who waits for one must find out why."""
    endpoints: Any = SimpleNamespace(tell=lambda *_: None)
    attachments: Any = SimpleNamespace(topic_to_tell=lambda _: b"topic")
    traffic = Traffic(endpoints, attachments, lambda *_: None, None)
    rows = Batch(([1, 2], ["x" * (FRAME_BYTES_MAX + 1), "y"]), [1, 2], [True, True])
    coverage = LineageCoverage.prefix(1, 2)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            traffic.send("V", "e", Knowledge(1, 0, 1, coverage, rows), None)
    assert [record.getMessage() for record in caplog.records] == [
        f"a row is larger than any message may be ({FRAME_BYTES_MAX} bytes): whoever reads this view waits for it"
    ]
    assert (traffic.edges["e"].dropped, traffic.edges["e"].messages_out) == (2, 2)
