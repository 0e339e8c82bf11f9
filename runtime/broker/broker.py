"""The broker: a host, its sockets and one poll loop in one thread.

A round takes what has arrived, within bounds, so that no peer starves the others; lets the host work, which ends in one
commit; and sends. Everything a broker needs of the program comes in as `Hosting`; who makes that, and what happens
between two deployments, is `smile/broker.py`'s matter.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import zmq

from runtime.broker.attachments import PEER_SILENT_US, Attachments
from runtime.broker.checkpointing import Checkpointing
from runtime.broker.endpoints import Endpoints
from runtime.broker.faults import Faults
from runtime.broker.host import Host
from runtime.broker.installing import Installing
from runtime.broker.log_access import Group, Times, TrimLimit, no_limit
from runtime.broker.publishing import Columns, Gate, PublishOutcome
from runtime.broker.requests import Hosting, Requests
from runtime.broker.status import component_status
from runtime.broker.timers import Clock
from runtime.broker.traffic import Traffic
from runtime.broker.tuning import ROWS_MAX
from runtime.broker.uplink import Uplink
from runtime.log.stream_log import StreamLog
from runtime.protocol.messages import Message
from runtime.security.keys import Keys
from runtime.security.policy import Policy
from runtime.security.zap import Authenticator, sender_name
from runtime.wire.control import ControlRecord, Install
from runtime.wire.framing import Buffer

log = logging.getLogger("smile.broker")

REQUESTS_PER_ROUND = 512
ROUND_BYTES_MAX = 16 * 1024 * 1024
ROUND_ROWS_MAX = ROWS_MAX
"""A round reads until one of these is reached; the rest waits in the sockets, where ZeroMQ takes from peers in turn."""

SUBSCRIPTIONS_PER_ROUND = 512
POLL_MS_MAX = 100
"""Signals and checkpoints of other processes are looked at this often at least."""

HOUSEKEEPING_US = 1_000_000
FILL_PRODUCER = "table"
"""Rows of tables are published under this name, once: when a broker starts again they are repeats."""

RECENT_US = 10_000_000


class Broker:
    """Made for one deployment; `run` serves until `stop` is called or something new is deployed.

    `deploy` checks a deployment of somebody, and keeps it unless that was all: True if it is to be run now, False if
    not, or a code and a reason if it is refused.
    """

    def __init__(
        self,
        name: str,
        endpoints: Endpoints,
        hosting: Hosting,
        *,
        incarnation: int,
        next_epoch: Callable[[], int],
        group: Group,
        logs: dict[str, StreamLog],
        gates: dict[str, Gate],
        checkpoints: Checkpointing | None = None,
        keep_logs: bool = True,
        trim_limit: TrimLimit = no_limit,
        policy: Policy | None = None,
        authenticator: Authenticator | None = None,
        keys: Keys | None = None,
        faults: Faults | None = None,
        deploy: Callable[[Mapping[str, Any], str, bool], tuple[str, str] | bool],
        idle: Callable[[], object] = lambda: None,
        log_status: Callable[[], Mapping[str, int]] = dict,
        data_announced: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.is_redeployed = False
        self.attachments = Attachments()
        self.rounds = Times()
        self._clock = clock or Clock.system()
        self._endpoints = endpoints
        self._hosting = hosting
        self._policy = policy or Policy.local()
        self._authenticator = authenticator
        self._faults = faults
        self._checkpoints = checkpoints
        self._deploy = deploy
        self._idle = idle
        self._log_status = log_status
        self._is_stopping = False
        self._began_us = self._clock.wall_us()
        self._unfilled: dict[tuple[str, int], Columns] = {}  # rows of tables that are not surely logged yet
        self._longest_recent = (0, 0, 0)  # since when, longest before, longest since
        self.requests = Requests(
            name,
            incarnation,
            data_announced or endpoints.data_address,
            endpoints,
            self.attachments,
            hosting,
            self._policy,
            self,
            faults,
            self._clock.steady_us,
        )
        self.traffic = Traffic(endpoints, self.attachments, self._send_up, faults)
        self.host = Host(
            self.traffic,
            next_epoch,
            clock=self._clock,
            group=group,
            answer=self._published,
            checkpoints=checkpoints,
            keep_logs=keep_logs,
            trim_limit=trim_limit,
        )
        self.requests.host, self.requests.traffic = self.host, self.traffic
        digests = hosting.digests or {}
        self.installing = Installing(self.host, self, checkpoints, digests, next_epoch, self._clock)
        if checkpoints is not None:
            checkpoints.report = self.host.checkpointed
        self.uplinks: dict[str, Uplink] = {}
        self._home_of_edge: dict[str, Uplink] = {}
        self._receiver_of_edge: dict[str, str] = {}
        self._refused: dict[str, str] = {}  # edges that another broker refuses, with the code that was logged
        self._start(logs, gates, keys)

    def _start(self, logs: dict[str, StreamLog], gates: dict[str, Gate], keys: Keys | None) -> None:
        plan, here = self._hosting.plan, self._hosting.here(self.name)
        if plan is None:
            return
        homes, digests = self._hosting.homes or {}, self._hosting.digests or {}
        self.host.start(plan, here, digests=dict(digests), logs=logs, gates=gates)
        for component in here:
            for edge in plan.by_name[component].in_edges:
                home = homes[edge.sender]
                if home != self.name:
                    uplink = self.uplinks.get(home) or self._connect(home, keys)
                    self._home_of_edge[edge.name] = uplink
                    self._receiver_of_edge[edge.name] = component
                    uplink.attach(edge.name, edge.sender, "plan", digests.get(edge.sender, ""))

    def _connect(self, broker: str, keys: Keys | None) -> Uplink:
        made = Uplink(
            self._endpoints.context,
            (self._hosting.addresses or {})[broker],
            name=self.name,
            kind="broker",
            incarnation=self.incarnation,
            keys=keys,
            steady_us=self._clock.steady_us,
            listener=self,
        )
        self.uplinks[broker] = made
        return made

    def fill(self, table: str, columns: Columns) -> None:
        """The rows of a table, once: what is logged already is recognised."""
        for sequence, first in enumerate(range(0, len(columns[0]) if columns else 0, ROWS_MAX)):
            self._unfilled[table, sequence] = tuple(column[first : first + ROWS_MAX] for column in columns)
        self._fill()
        self.host.work()

    def _fill(self) -> None:
        """Again and again, as every publisher does: the disk may have been full."""
        for (table, sequence), rows in list(self._unfilled.items()):
            self.host.publish(table, FILL_PRODUCER, sequence, rows)

    def _published(self, outcome: PublishOutcome, source: bytes | None) -> None:
        if source is None and outcome.producer == FILL_PRODUCER and outcome.retry_after_ms is None:
            self._unfilled.pop((outcome.stream, outcome.sequence), None)
        else:
            self.requests.published(outcome, source)

    # The loop

    def run(self, serving: Callable[[], object] = lambda: None) -> None:
        """Serve until told to stop; `serving` is called when the first round is done."""
        poller = zmq.Poller()
        poller.register(self._endpoints.router, zmq.POLLIN)
        poller.register(self._endpoints.publisher, zmq.POLLIN)
        for uplink in self.uplinks.values():
            for socket in uplink.sockets:
                poller.register(socket, zmq.POLLIN)
        if self._authenticator is not None:
            poller.register(self._authenticator.socket, zmq.POLLIN)
        self._round(set())
        gc.collect()
        gc.freeze()  # what a start has made stays: a collection need not look at it again
        serving()
        house_us = 0
        while not self._is_stopping:
            ready = {socket for socket, _ in poller.poll(self._patience_ms())}
            began = time.perf_counter_ns()
            now_us = self._round(ready)
            if now_us >= house_us:
                house_us = now_us + HOUSEKEEPING_US
                self._housekeeping(now_us)
            self._note_round((time.perf_counter_ns() - began) // 1_000, now_us)
            if self._faults is not None:
                self._faults.stand_still()

    def _patience_ms(self) -> int:
        due_us = 0 if self.installing.is_busy else self.host.next_due_us()
        for uplink in self.uplinks.values():
            due_us = min(due_us, uplink.tick())
        if self._faults is not None and (late := self._faults.send_late()) is not None:
            due_us = min(due_us, int(late * 1e6))
        patience_ms = -(-due_us // 1_000)
        return patience_ms if patience_ms < POLL_MS_MAX else POLL_MS_MAX

    def _round(self, ready: set[Any]) -> int:
        """Take, work, send. When it began, by the steady clock."""
        now_us = self._clock.steady_us()
        if self._authenticator is not None and self._authenticator.socket in ready:
            self._authenticator.serve()
        if self._endpoints.publisher in ready:
            self._read_subscriptions()
        if self._endpoints.router in ready:
            self._read_requests(now_us)
        for uplink in self.uplinks.values():
            if uplink.monitor in ready:
                uplink.read_monitor()
            if uplink.subscriber in ready:
                uplink.read_data()  # before answers, which would overtake the changes that they sum up
            if uplink.dealer in ready:
                uplink.read_control()
        self.host.fire(now_us)
        self.host.work()
        self.installing.poll()
        self.traffic.flush()
        if self._checkpoints is not None:
            self._checkpoints.poll(self.host)
        return now_us

    def _read_requests(self, now_us: int) -> None:
        bytes_left = ROUND_BYTES_MAX
        watched = self._policy.watched
        self.requests.rows_in = 0
        for _ in range(REQUESTS_PER_ROUND):
            request = self._endpoints.next_request()
            if request is None:
                return
            sender, frames = request
            user = "" if watched is None else sender_name(frames, watched.current)
            header = frames[0].bytes  # is read once and small; the body may be large and is not copied
            buffers: list[Buffer] = [header]
            size = len(header)
            for frame in frames[1:]:
                buffers.append(frame.buffer)
                size += len(frame)
            try:
                self.requests.take(sender, user, buffers, size, now_us)
            except Exception:  # a mistake of ours must not cost everybody else the broker
                self.requests.counters["broken"] += 1
                log.exception("a request broke")
            bytes_left -= size
            if bytes_left < 0 or self.requests.rows_in >= ROUND_ROWS_MAX or not self._endpoints.has_request():
                return

    def _read_subscriptions(self) -> None:
        for _ in range(SUBSCRIPTIONS_PER_ROUND):
            found = self._endpoints.next_subscription()
            if found is None:
                return
            topic, is_new = found
            if not is_new:
                self.attachments.unsubscribed(topic)
                self._endpoints.grant(topic, is_new=False)  # also if it has said on the other socket that it leaves
            elif self.requests.may_subscribe(topic):
                self._endpoints.grant(topic, is_new=True)
                self.requests.confirm(topic)

    def _housekeeping(self, now_us: int) -> None:
        for identity in self.attachments.silent_since(now_us - PEER_SILENT_US):
            self.requests.forget_peer(identity)
        watched = self._policy.watched
        if watched is not None:
            if watched.reload_if_changed():
                self.requests.renew_topics()
            self.requests.detach_deserted()
        if self._checkpoints is not None and not self.installing.is_building:
            self._checkpoints.maybe_begin(self.host)
        self._fill()
        self._idle()

    def _note_round(self, us: int, now_us: int) -> None:
        self.rounds.note(us)
        since_us, before, longest = self._longest_recent
        if now_us - since_us > RECENT_US:
            self._longest_recent = (now_us, longest, us)
        elif us > longest:
            self._longest_recent = (since_us, before, us)

    # What uplinks tell (`Listener`)

    def arrived(self, uplink: Uplink, edge: str, message: Message, size: int) -> None:
        count = self.traffic.count(edge)
        count.messages_in += 1
        count.bytes_in += size
        self.host.arrived(self._receiver_of_edge[edge], edge, message, None)

    def confirmed(self, uplink: Uplink, edge: str) -> None:
        self._refused.pop(edge, None)
        self.host.nudge(self._receiver_of_edge[edge], edge)

    def attach_refused(self, uplink: Uplink, edge: str, code: str, reason: str) -> None:
        if self._refused.get(edge) != code:  # it is asked again every few seconds, perhaps for hours
            self._refused[edge] = code
            log.warning("cannot attach: %s", reason, extra={"edge": edge, "code": code})

    def replied(self, uplink: Uplink, record: ControlRecord) -> None:
        """A broker asks another one for nothing else."""

    def welcomed(self, uplink: Uplink, is_new: bool) -> None:
        assert uplink.welcome is not None
        log.info("connected to broker %s", uplink.welcome.broker, extra={"is_new": is_new})

    def _send_up(self, edge: str, message: Message) -> int | None:
        uplink = self._home_of_edge.get(edge)
        return None if uplink is None else uplink.send_message(edge, message)

    # What installs ask for (`Far`)

    def attach_second(self, edge: str, sender: str, receiver: str) -> None:
        uplink = self.uplinks[(self._hosting.homes or {})[sender]]
        if edge not in self._home_of_edge:
            self._home_of_edge[edge] = uplink
            self._receiver_of_edge[edge] = receiver
            uplink.attach(edge, sender, "second", (self._hosting.digests or {}).get(sender, ""))

    def detach_second(self, edge: str) -> None:
        uplink = self._home_of_edge.pop(edge, None)
        if uplink is not None:
            del self._receiver_of_edge[edge]
            uplink.detach(edge)

    def is_attached(self, edge: str) -> bool:
        return self._home_of_edge[edge].is_confirmed(edge)

    # What requests ask for (`Operations`)

    def hold(self, peer: bytes, component: str, digest: str) -> tuple[str, str] | None:
        return self.installing.hold(peer, component, digest)

    def install(self, peer: bytes, part: Install) -> tuple[str, str] | None:
        return self.installing.part(peer, part.component, part.offset, part.total, part.data)

    def release(self, peer: bytes, component: str | None) -> None:
        self.installing.release(peer, component)

    def deploy(self, deployment: Mapping[str, Any], sender: str, *, only_check: bool) -> tuple[str, str] | None:
        found = self._deploy(deployment, sender, only_check)
        if isinstance(found, tuple):
            return found
        if found:
            self.is_redeployed = True
            self._is_stopping = True
        return None

    def stop(self) -> None:
        """After this round."""
        self._is_stopping = True

    def close(self) -> None:
        """Write a last checkpoint, so that the next start is quick, and leave."""
        if self._checkpoints is not None:
            self._checkpoints.finish(self.host)
        self.installing.close()
        for uplink in self.uplinks.values():
            uplink.close()
        gc.unfreeze()

    def status(self) -> dict[str, Any]:
        plan = self._hosting.plan
        origins = {} if plan is None else plan.origins
        _, before, longest = self._longest_recent
        return {
            "broker": self.name,
            "incarnation": self.incarnation,
            "deployment": self._hosting.digest,
            "why_none": self._hosting.why_none if plan is None else "",
            "began_us": self._began_us,
            "now_us": self._clock.wall_us(),
            "components": {
                name: component_status(hosted, origins.get(name, ""))
                for name, hosted in self.host.hosted.items()
                if not hosted.stands_by
            },
            "installs": self.installing.status(),
            "edges": {
                edge: {
                    "messages_out": count.messages_out,
                    "bytes_out": count.bytes_out,
                    "messages_in": count.messages_in,
                    "bytes_in": count.bytes_in,
                    "dropped": count.dropped,
                    "quenched": self.host.events_quenched(edge),
                }
                for edge, count in self.traffic.edges.items()
            },
            "peers": self._peers(),
            "uplinks": {
                name: {
                    "connected": uplink.is_connected,
                    "address": uplink.address.partition("?")[0],
                    "counters": dict(uplink.counters),
                    "refused": {
                        edge: {"receiver": self._receiver_of_edge[edge], "reason": reason, "for_us": for_us}
                        for edge, reason, for_us in uplink.refusals()
                    },
                }
                for name, uplink in self.uplinks.items()
            },
            "log": {
                "commits": self.host.logs.commits.data(),
                "reads": self.host.logs.reads.data(),
                **self._log_status(),
            },
            "tell": {**self._endpoints.tells.data(), "total_us": self._endpoints.tells.total_us},
            "checkpoints": {} if self._checkpoints is None else self._checkpoints.status(),
            "loop": {**self.rounds.data(), "longest_recent_us": max(before, longest)},
            "counters": {
                **self.host.counters,
                **self.requests.counters,
                "drops.full": self._endpoints.drops_full,
                "drops.unroutable": self._endpoints.drops_unroutable,
                **{f"refused.{code}": n for code, n in self._policy.refusals.counts.items()},
            },
        }

    def _peers(self) -> dict[str, Any]:
        kinds: dict[str, int] = {}
        for peer in self.attachments.peers.values():
            kinds[peer.kind] = kinds.get(peer.kind, 0) + 1
        return {
            "count": len(self.attachments.peers),
            "kinds": kinds,
            "attachments": sum(len(peer.attachments) for peer in self.attachments.peers.values()),
        }
