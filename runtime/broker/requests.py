"""What a broker does with what peers say: control records, publishes, and messages on edges they are attached to.

Everything a peer may ask for is judged here by the name that its connection proved, never by what it says about itself.
Whatever is wrong with a request costs the asker an answer and nobody else anything.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runtime.broker.attachments import PEER_SILENT_US, Attachment, Attachments, Peer
from runtime.broker.endpoints import Endpoints
from runtime.broker.faults import Faults, UnknownFault
from runtime.broker.host import Host
from runtime.broker.hosted import SECOND, guests_edge
from runtime.broker.publishing import PublishOutcome
from runtime.broker.status import failures_of
from runtime.broker.traffic import Traffic
from runtime.plan import Plan
from runtime.protocol.messages import Message, Upstream
from runtime.security.policy import Action, Policy
from runtime.wire.control import (
    Acknowledged,
    Attach,
    Attached,
    Check,
    Confirmed,
    ControlRecord,
    CoverageOf,
    Coverages,
    Deploy,
    Describe,
    Described,
    Detach,
    Done,
    Fault,
    Hello,
    Hold,
    Install,
    Publish,
    PublishRefused,
    Refused,
    Release,
    Status,
    StatusReply,
    Stop,
    Unattached,
    Welcome,
    encode_control,
)
from runtime.wire.errors import WireError, WireVersion
from runtime.wire.frames import decode_frames
from runtime.wire.framing import Buffer

log = logging.getLogger("smile.broker")

NAME_MARK = "/"
"""Between the name of a peer that proved it and the producer that it names: nobody uses up another one's numbers."""


@dataclass(frozen=True)
class Hosting:
    """What a deployment makes of one broker. Without one it only waits: everything is empty. One that it has and
    does not run comes without a plan, and `why_none` says why."""

    deployment: Mapping[str, Any] | None = None
    digest: str = ""
    plan: Plan | None = None
    homes: Mapping[str, str] | None = None  # component -> broker
    addresses: Mapping[str, str] | None = None  # broker -> address
    digests: Mapping[str, str] | None = None  # component -> digest
    shown_as: Mapping[str, tuple[str, ...]] | None = None  # component -> views, streams, tables that it is
    tables: frozenset[str] = frozenset()  # filled by brokers themselves: nobody publishes there
    table_files: Mapping[str, tuple[str, str]] | None = (
        None  # table -> file of the deployment with its rows, its digest
    )
    why_none: str = "nothing has been deployed to this broker yet"

    def names_of(self, component: str) -> tuple[str, ...]:
        return (self.shown_as or {}).get(component, ())

    def here(self, broker: str) -> list[str]:
        if self.plan is None:
            return []
        return [one.name for one in self.plan.components if (self.homes or {}).get(one.name) == broker]


class Operations(Protocol):
    """What the broker process itself does."""

    def deploy(self, deployment: Mapping[str, Any], sender: str, *, only_check: bool) -> tuple[str, str] | None:
        """Check it and, unless that is all, keep it, to be run at once; (code, reason) if it is refused."""

    def stop(self) -> None: ...

    def hold(self, peer: bytes, component: str, digest: str) -> tuple[str, str] | None:
        """Get ready for a bulk install; (code, reason) if it is refused. So for its parts."""

    def install(self, peer: bytes, part: Install) -> tuple[str, str] | None: ...

    def release(self, peer: bytes, component: str | None) -> None: ...

    def status(self) -> dict[str, Any]: ...


class Requests:
    def __init__(
        self,
        name: str,
        incarnation: int,
        data_address: str,
        endpoints: Endpoints,
        attachments: Attachments,
        hosting: Hosting,
        policy: Policy,
        operations: Operations,
        faults: Faults | None,
        steady_us: Callable[[], int],
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.rows_in = 0
        self.host: Host
        self.traffic: Traffic
        self._name, self._incarnation, self._data_address = name, incarnation, data_address
        self._endpoints = endpoints
        self._attachments = attachments
        self._hosting = hosting
        self._policy = policy
        self._operations = operations
        self._faults = faults
        self._steady_us = steady_us
        self._renewed: dict[str, tuple[int, Attachment]] = {}  # edge -> when somebody should be back, who was there
        self._receivers = (
            {}
            if hosting.plan is None
            else {edge.name: (edge.sender, one.name) for one in hosting.plan.components for edge in one.in_edges}
        )

    def take(self, identity: bytes, user: str, frames: Sequence[Buffer], size: int, now_us: int) -> None:
        """One request or message; answers what has to be answered at once."""
        if not self._policy.knows(user):
            self.counters["refused.not-listed"] += 1
            self._reply(identity, Refused(0, "not-listed", "your key is no longer on the allow-list"))
            return
        try:
            found = decode_frames(frames)
        except WireError as error:
            self.counters[f"refused.{error.code}"] += 1
            if isinstance(error, WireVersion):
                self._reply(identity, Refused(0, error.code, str(error)))
            return
        peer = self._attachments.peers.get(identity)
        if peer is not None and peer.user == user:
            peer.heard_us = now_us
        elif not isinstance(found, Hello):
            peer = self._attachments.meet(identity, user, "", "client", 0, now_us)
        if peer is None:
            if isinstance(found, Hello):
                self._hello(identity, user, found)
            else:
                self.counters["refused.too_many_peers"] += 1
            return
        peer.messages_in += 1
        peer.bytes_in += size
        if type(found) is Publish:
            self._publish(peer, found)
        elif isinstance(found, tuple):
            self._message(peer, *found, size)
        elif isinstance(found, Hello):
            self._hello(identity, user, found)
        else:
            self._record(peer, found)

    def _reply(self, identity: bytes, record: ControlRecord) -> None:
        self._endpoints.answer(identity, encode_control(record))

    def _hello(self, identity: bytes, user: str, hello: Hello) -> None:
        refusal = self._policy.may(user, Action.PEER) if hello.kind == "broker" else None
        if refusal is not None:
            self._reply(identity, Refused(hello.request, refusal.code, refusal.reason))
            return
        known = self._attachments.peers.get(identity)
        if known is not None and (known.incarnation != hello.incarnation or known.user != user):
            self.forget_peer(identity)
        peer = self._attachments.meet(identity, user, hello.name, hello.kind, hello.incarnation, self._steady_us())
        if peer is None:
            self._reply(identity, Refused(hello.request, "too-many-peers", "this broker has as many as it can serve"))
            return
        self._reply(
            identity,
            Welcome(hello.request, self._name, self._incarnation, self._data_address, self._hosting.digest),
        )

    # Messages of the protocol

    def _message(self, peer: Peer, edge: str, message: Message, size: int) -> None:
        attachment = peer.attachments.get(edge)
        if attachment is None:
            self.counters["not_attached"] += 1
            self._reply(peer.identity, Unattached(edge))
            return
        if not isinstance(message, Upstream):
            self.counters["refused.direction"] += 1
            return
        count = self.traffic.count(edge)
        count.messages_in += 1
        count.bytes_in += size
        self.host.arrived(attachment.component, edge, message, peer.identity)

    # Publishing

    def _publish(self, peer: Peer, publish: Publish) -> None:
        code, reason = "", ""
        refusal = self._policy.may(peer.user, Action.PUBLISH, publish.stream)
        if refusal is not None:
            code, reason = "not-allowed", refusal.reason
        elif publish.stream not in self.host.hosted or publish.stream in self._hosting.tables:
            code, reason = "unknown-stream", f"no stream `{publish.stream}` on broker `{self._name}`"
        if code:
            self.counters[f"publish_refused.{code}"] += 1
            refused = PublishRefused(publish.producer, publish.sequence, code, reason, False, 0)
            self._reply(peer.identity, refused)
            return
        self.rows_in += len(publish.columns[0]) if publish.columns else 1
        producer = f"{peer.user}{NAME_MARK}{publish.producer}" if peer.user else publish.producer
        self.host.publish(
            publish.stream,
            producer,
            publish.sequence,
            publish.columns,
            previous=publish.previous,
            source=peer.identity,
        )

    def published(self, outcome: PublishOutcome, source: bytes | None) -> None:
        """What became of a publish, for whoever sent it last."""
        if source is None:
            return
        peer = self._attachments.peers.get(source)
        producer = outcome.producer
        if peer is not None:
            producer = producer.removeprefix(f"{peer.user}{NAME_MARK}") if peer.user else producer
        record: Acknowledged | PublishRefused
        if not outcome.code:
            ticks = outcome.ticks if type(outcome.ticks) is range else tuple(outcome.ticks)
            record = Acknowledged(producer, outcome.sequence, ticks, outcome.repeated)
        else:
            record = PublishRefused(
                producer,
                outcome.sequence,
                outcome.code,
                outcome.reason,
                outcome.uncertain,
                0 if outcome.retry_after_ms is None else max(1, outcome.retry_after_ms),
            )
        if self._faults is not None and self._faults.is_active:
            self._faults.pass_on(lambda: self._reply(source, record))
        else:
            self._reply(source, record)

    # Requests

    def _record(self, peer: Peer, record: ControlRecord) -> None:
        answer: ControlRecord | None
        if not peer.may_request(self._steady_us()):
            self.counters["refused.busy"] += 1
            self._reply(peer.identity, Refused(getattr(record, "request", 0), "busy", "too many requests"))
            return
        match record:
            case Attach():
                answer = self._attach(peer, record)
            case Detach(edge):
                self._detached(self._attachments.detach(peer, edge))
                answer = None
            case Describe(request):
                answer = self._described(peer, request)
            case CoverageOf(request, components):
                coverages = self.host.coverages(components)
                answer = Coverages(request, coverages, failures_of(self.host.hosted, components))
            case Status(request):
                answer = StatusReply(request, self._operations.status())
            case Check() | Deploy() | Fault() | Stop():
                answer = self._operate(peer, record)
            case Hold() | Install() | Release():
                answer = self._install(peer, record)
            case _:
                self.counters["refused.direction"] += 1
                answer = None
        if answer is not None:
            try:
                self._reply(peer.identity, answer)
            except WireError as error:
                request = getattr(record, "request", 0)
                self._reply(peer.identity, Refused(request, error.code, str(error)))

    def _described(self, peer: Peer, request: int) -> Described | Refused:
        """Also what is stored and not run: whoever deploys goes on from there, everybody else is told why. Of tables
        that the peer may not read it gets the digests only."""
        hosting = self._hosting
        if hosting.deployment is None:
            return Refused(request, "no-deployment", hosting.why_none)
        not_run = {} if hosting.plan is not None else {"not_run": hosting.why_none}
        withheld = self._withheld(peer, hosting.deployment)
        files = {path: content for path, content in hosting.deployment["files"].items() if path not in withheld}
        return Described(request, {**hosting.deployment, **not_run, "files": files, "withheld": withheld})

    def _withheld(self, peer: Peer, deployment: Mapping[str, Any]) -> dict[str, str]:
        tables = self._hosting.table_files or {}
        declared = [*deployment["residues"], *deployment["placement"]]
        if tables and self._policy.allows(peer.user, Action.DEPLOY, deployment["name"], declared):
            return {}
        may_read = {table for table in tables if self._policy.allows(peer.user, Action.SUBSCRIBE, table, (table,))}
        return {path: digest for table, (path, digest) in tables.items() if table not in may_read}

    def _operate(self, peer: Peer, record: Check | Deploy | Fault | Stop) -> ControlRecord:
        if isinstance(record, Check | Deploy):
            only_check = isinstance(record, Check)
            refused = self._operations.deploy(record.deployment, peer.user, only_check=only_check)
            return Done(record.request) if refused is None else Refused(record.request, *refused)
        refusal = self._policy.may(peer.user, Action.OPERATE)
        if refusal is not None:
            return Refused(record.request, refusal.code, refusal.reason)
        if isinstance(record, Stop):
            self._operations.stop()
            return Done(record.request)
        if self._faults is None:
            return Refused(record.request, "no-faults", "this broker was not started with --allow-faults")
        try:
            self._faults.ask(record.kind, record.arguments)
        except UnknownFault as error:
            return Refused(record.request, "unknown-fault", str(error))
        return Done(record.request)

    def _install(self, peer: Peer, record: Hold | Install | Release) -> ControlRecord:
        """Whoever may replace the program may replace what it has computed."""
        deployment = self._hosting.deployment
        if deployment is None or self._hosting.plan is None:
            return Refused(record.request, "no-deployment", self._hosting.why_none)
        declared = [*deployment["residues"], *deployment["placement"]]
        refusal = self._policy.may(peer.user, Action.DEPLOY, deployment["name"], declared)
        refused = None if refusal is None else (refusal.code, refusal.reason)
        if refused is None and isinstance(record, Hold):
            refused = self._operations.hold(peer.identity, record.component, record.digest)
        elif refused is None and isinstance(record, Install):
            refused = self._operations.install(peer.identity, record)
        elif refused is None:
            self._operations.release(peer.identity, record.component)
        return Done(record.request) if refused is None else Refused(record.request, *refused)

    # Attaching

    def _attach(self, peer: Peer, attach: Attach) -> ControlRecord | None:
        refused = self._reason_to_refuse(peer, attach)
        if refused is not None:
            return Refused(attach.request, *refused)
        made = self._attachments.attach(peer, attach.edge, attach.component, attach.kind)
        if made is None:
            return Refused(attach.request, "too-many-attachments", "this client has as many as it may have")
        if attach.kind == "guest":
            self.host.attach_guests(attach.component)
        elif attach.kind == "second":
            self.host.attach_second(attach.component, attach.edge)
        self._reply(
            peer.identity,
            Attached(attach.request, attach.edge, made.topic, self.host.hosted[attach.component].component.epoch),
        )
        return Confirmed(attach.edge, made.topic) if made.is_subscribed else None

    def _reason_to_refuse(self, peer: Peer, attach: Attach) -> tuple[str, str] | None:
        component = attach.component
        if component not in self.host.hosted or component.startswith(SECOND):
            return "unknown-component", f"broker `{self._name}` does not host `{component}`"
        if attach.digest != (self._hosting.digests or {}).get(component, ""):
            return "other-deployment", f"`{component}` is another one here: the deployment has changed"
        if attach.kind in ("plan", "second"):
            refusal = self._policy.may(peer.user, Action.PEER)
            edge = attach.edge.removeprefix(SECOND) if attach.kind == "second" else attach.edge
            if refusal is None and self._receivers.get(edge, ("",))[0] != component:
                return "unknown-edge", f"`{attach.edge}` is no edge of `{component}`"
            return None if refusal is None else (refusal.code, refusal.reason)
        if attach.kind != "guest" or attach.edge != guests_edge(component):
            return "unknown-edge", f"guests of `{component}` attach to `{guests_edge(component)}`"
        return self._may_read(peer, component)

    def _may_read(self, peer: Peer, component: str) -> tuple[str, str] | None:
        assert self._hosting.plan is not None
        streams = tuple(dict.fromkeys(self._hosting.plan.lineages[component]))
        last: tuple[str, str] | None = ("unknown-view", f"`{component}` is not a view")
        # What is no view has no name that a grant could mean: `Total*` is about views, not about what is below them.
        for name in self._hosting.names_of(component) or ("",):
            refusal = self._policy.may(peer.user, Action.SUBSCRIBE, name, streams)
            if refusal is None:
                return None
            last = (refusal.code, refusal.reason)
        return last

    def may_subscribe(self, topic: bytes) -> bool:
        """Was this topic handed out? The subscription is noted."""
        if self._attachments.subscribed(topic) is None:
            self.counters["refused.topic"] += 1
            return False
        return True

    def confirm(self, topic: bytes) -> None:
        """The subscription is in force: say so to the one who made it."""
        attachment = self._attachments.of_topic(topic)
        if attachment is not None:
            self._reply(attachment.peer, Confirmed(attachment.edge, attachment.topic))

    def renew_topics(self) -> None:
        """Somebody's rights have changed: everybody attaches again, and gets only what it may have now.

        Edges stay meanwhile: otherwise everybody who comes back would need all rows again, and logs could be trimmed.
        """
        due_us = self._steady_us() + PEER_SILENT_US
        for peer in self._attachments.peers.values():
            for edge, attachment in peer.attachments.items():
                self._reply(peer.identity, Unattached(edge))
                self._renewed[edge] = (due_us, attachment)
        self._attachments.renew_topics()

    def detach_deserted(self) -> None:
        """Edges to which nobody has come back since their topics were renewed."""
        now_us = self._steady_us()
        for edge, (due_us, attachment) in list(self._renewed.items()):
            if now_us >= due_us:
                del self._renewed[edge]
                self._detached(attachment)

    def forget_peer(self, identity: bytes) -> None:
        self._operations.release(identity, None)
        for attachment in self._attachments.forget(identity):
            self._detached(attachment)

    def _detached(self, attachment: Attachment | None) -> None:
        """The last guest takes the edge with it. Edges of the plan stay: their receiver will be back."""
        if attachment is None or attachment.kind == "plan" or self._attachments.attached(attachment.edge):
            return
        if attachment.component in self.host.hosted:
            if attachment.kind == "second":
                self.host.detach_second(attachment.component, attachment.edge)
            else:
                self.host.detach_guests(attachment.component)
