"""Goal: when rights change and everybody has to attach again, edges to which nobody comes back are taken down."""

from __future__ import annotations

from typing import Any, cast

import smile
from runtime.broker.attachments import PEER_SILENT_US, Attachments
from runtime.broker.endpoints import Endpoints
from runtime.broker.hosted import SECOND, guests_edge
from runtime.broker.requests import Hosting, Operations, Requests
from runtime.security.policy import Policy
from runtime.wire.control import Attach, Attached, ControlRecord, Unattached, decode_control, encode_control
from tests.broker.hosts import PROGRAM, Net

HERE = {"Buys": "a", "Items": "a", "Sold": "a", "Big": "a", "Large": "a"}


class Said:
    """Stands in for the sockets."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, ControlRecord]] = []

    def answer(self, identity: bytes, frames: list[bytes]) -> None:
        self.records.append((identity, decode_control(frames)))


def attach(requests: Requests, who: bytes, edge: str, component: str, kind: str) -> None:
    requests.take(who, "", encode_control(Attach(1, edge, component, kind, "")), 0, 0)


def test_edges_that_nobody_comes_back_to_are_detached() -> None:
    net, said = Net(), Said()
    net.deploy(smile.compile(PROGRAM), HERE)
    hosting = Hosting(plan=net.plan, homes=HERE, digests={})
    requests = Requests(
        "a",
        1,
        "",
        cast(Endpoints, said),
        Attachments(),
        hosting,
        Policy.local(),
        cast(Operations, None),
        None,
        lambda: net.now_us,
    )
    host = requests.host = net.hosts["a"]
    second = SECOND + next(edge.name for edge in net.plan.out_edges["Buys"])

    def edges() -> tuple[bool, bool, set[str]]:
        hosted: Any = host.hosted
        return hosted["Sold"].has_guests, hosted["Large"].has_guests, hosted["Buys"].second_edges

    for who in (b"one", b"two"):
        attach(requests, who, guests_edge("Sold"), "Sold", "guest")
    attach(requests, b"one", guests_edge("Large"), "Large", "guest")
    attach(requests, b"one", second, "Buys", "second")
    assert [type(record) for _, record in said.records] == [Attached] * 4
    said.records.clear()
    requests.renew_topics()
    assert [type(record) for _, record in said.records] == [Unattached] * 4
    requests.detach_deserted()
    assert edges() == (True, True, {second}), "they may come back"
    attach(requests, b"two", guests_edge("Sold"), "Sold", "guest")
    net.now_us += PEER_SILENT_US
    requests.detach_deserted()
    assert edges() == (True, False, set())
    requests.renew_topics()
    net.now_us += PEER_SILENT_US
    requests.detach_deserted()
    assert edges() == (False, False, set())
