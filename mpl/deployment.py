"""Brokers, links, placement, protection and tuning: checked against what the program declares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal

from mpl import nodes, typed
from mpl.codes import deployment
from mpl.declarations import report_repeated
from mpl.diagnostic import Diagnostics, Note, did_you_mean
from mpl.source import Span

ADDRESS_SCHEMES = ("tcp://", "ipc://", "inproc://")
SIZE_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
RATE_UNITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
CPU_MAX = 4096


@dataclass(frozen=True)
class Deployment:
    """What a program says about where and how it should run."""

    links: list[typed.Link] = field(default_factory=list)
    placements: list[typed.Placement] = field(default_factory=list)
    protections: list[typed.Protection] = field(default_factory=list)
    tunings: list[typed.Tuning] = field(default_factory=list)


def check_broker(decl: nodes.BrokerDecl, diagnostics: Diagnostics) -> typed.Broker | None:
    failed = False
    if not decl.address.startswith(ADDRESS_SCHEMES) or decl.address in ADDRESS_SCHEMES:
        failed = True
        diagnostics.report(
            deployment.BAD_ADDRESS,
            decl.span,
            f"`{decl.address}` is no address that a broker can listen on",
            "must begin with " + " or ".join(f"`{scheme}`" for scheme in ADDRESS_SCHEMES),
            help='write it like "tcp://host:7001"',
        )
    if decl.cpu is not None and not 1 <= decl.cpu <= CPU_MAX:
        failed = True
        diagnostics.report(
            deployment.BAD_QUANTITY, decl.span, f"a broker has 1 to {CPU_MAX} cpus, not {decl.cpu}", "out of range"
        )
    memory = decl.memory[0] * SIZE_UNITS[decl.memory[1].lower()] if decl.memory else None
    if memory == 0:
        failed = True
        diagnostics.report(deployment.BAD_QUANTITY, decl.span, "a broker needs memory", "must be above 0")
    if failed:
        return None
    return typed.Broker(decl.name.text, decl.address, decl.cpu, memory, decl.edge, span=decl.name.span)


class DeploymentChecker:
    """Checks the statements that refer to brokers and relations by name."""

    def __init__(
        self,
        brokers: Collection[str],
        streams: Collection[str],
        relations: Collection[str],
        subscriptions: Collection[str],
        diagnostics: Diagnostics,
    ) -> None:
        self.brokers = brokers
        self.streams = streams
        self.relations = relations
        self.subscriptions = subscriptions
        self.diagnostics = diagnostics
        self.result = Deployment()
        self._homes: dict[str, Span] = {}
        self._said: dict[tuple[str, str | None], Span] = {}

    def broker(self, name: nodes.Name) -> bool:
        if name.text in self.brokers:
            return True
        self.diagnostics.report(
            deployment.UNKNOWN_BROKER,
            name.span,
            f"there is no broker called `{name.text}`",
            "not declared",
            help=lambda: (
                did_you_mean(name.text, self.brokers) or f'declare it: `broker {name.text} at "tcp://host:port";`'
            ),
        )
        return False

    def positive(self, duration: nodes.DurationLiteral | None) -> bool:
        if duration is None or duration.amount > 0:
            return True
        self.diagnostics.report(
            deployment.BAD_QUANTITY, duration.span, "this duration must be longer than nothing", "must be above 0"
        )
        return False

    def _subject(self, name: nodes.Name, known: Collection[str], what: str) -> bool:
        if name.text in known:
            return True
        self.diagnostics.report(
            deployment.UNKNOWN_SUBJECT,
            name.span,
            f"there is no {what} called `{name.text}`",
            "not declared",
            help=lambda: did_you_mean(name.text, known),
        )
        return False

    def _stream(self, name: nodes.Name) -> bool:
        if name.text in self.streams or name.text not in self.relations:
            return self._subject(name, self.streams, "stream")
        self.diagnostics.report(
            deployment.UNKNOWN_SUBJECT,
            name.span,
            f"only streams are published, and `{name.text}` is none",
            "not a stream",
            help="say with `place ... on` where a view runs",
        )
        return False

    def link(self, decl: nodes.LinkDecl) -> None:
        known = [self.broker(decl.left), self.broker(decl.right)]
        failed = not all(known)
        if decl.left.text == decl.right.text:
            failed = True
            self.diagnostics.report(
                deployment.LINK_TO_ITSELF,
                decl.right.span,
                f"`{decl.right.text}` cannot be linked to itself",
                "the same broker",
            )
        if decl.loss is not None and not 0 <= decl.loss <= 100:
            failed = True
            self.diagnostics.report(
                deployment.BAD_QUANTITY, decl.span, f"a link loses 0% to 100%, not {decl.loss}%", "out of range"
            )
        if decl.bandwidth is not None and decl.bandwidth[0] == 0:
            failed = True
            self.diagnostics.report(
                deployment.BAD_QUANTITY, decl.span, "a link without bandwidth carries nothing", "must be above 0"
            )
        if failed:
            return
        bandwidth = decl.bandwidth[0] * RATE_UNITS[decl.bandwidth[1].lower()] if decl.bandwidth else None
        self.result.links.append(
            typed.Link(
                decl.left.text,
                decl.right.text,
                decl.latency.microseconds if decl.latency else None,
                bandwidth,
                int(decl.loss * Decimal(10_000)) if decl.loss is not None else None,
                span=decl.span,
            )
        )

    def publish(self, decl: nodes.PublishDecl) -> None:
        known = [self._stream(decl.stream), self.broker(decl.broker)]
        if all(known) and not self._at_home_already(decl.stream, decl.span):
            self.result.placements.append(typed.Placement(decl.stream.text, "at", decl.broker.text, span=decl.span))

    def place(self, decl: nodes.PlaceDecl) -> None:
        known = [self._subject(decl.relation, self.relations, "view, stream or table")]
        match decl.how:
            case "on" | "avoid":
                known.append(self.broker(decl.target))
            case "with":
                known.append(self._subject(decl.target, self.relations, "view, stream or table"))
            case "near":
                places = [*self.brokers, *self.relations, *self.subscriptions]
                known.append(self._subject(decl.target, places, "broker, relation or subscription"))
        if not all(known) or (decl.how == "on" and self._at_home_already(decl.relation, decl.span)):
            return
        self.result.placements.append(typed.Placement(decl.relation.text, decl.how, decl.target.text, span=decl.span))

    def _at_home_already(self, name: nodes.Name, span: Span) -> bool:
        if name.text not in self._homes:
            self._homes[name.text] = span
            return False
        self.diagnostics.report(
            deployment.PLACED_TWICE,
            span,
            f"`{name.text}` is placed twice",
            "the second place",
            note=Note("the first one is here", self._homes[name.text]),
            help="keep one of them",
        )
        return True

    def protect(self, decl: nodes.ProtectDecl) -> None:
        known = [decl.relation is None or self._subject(decl.relation, self.relations, "view, stream or table")]
        known.append(decl.broker is None or self.broker(decl.broker))
        known.append(self.positive(decl.duration))
        if all(known) and not self._said_already("protect", decl.relation, decl.span):
            self.result.protections.append(
                typed.Protection(
                    decl.relation.text if decl.relation else None,
                    decl.scheme,
                    decl.duration.microseconds if decl.duration else None,
                    decl.broker.text if decl.broker else None,
                    span=decl.span,
                )
            )

    def _said_already(self, word: str, relation: nodes.Name | None, span: Span) -> bool:
        """Reports a statement that another one of its kind has made already; True if it has."""
        first = self._said.setdefault((word, relation.text if relation else None), span)
        if first is span:
            return False
        subject = f"`{relation.text}`" if relation else "`all`"
        self.diagnostics.report(
            deployment.SAID_TWICE,
            span,
            f"`{word}` is said twice of {subject}",
            "the second time",
            note=Note("the first one is here", first),
            help="keep one of them",
        )
        return True

    def tune(self, decl: nodes.TuneDecl) -> None:
        failed = decl.relation is not None and not self._subject(decl.relation, self.relations, "view, stream or table")
        seen: dict[type[nodes.Node], Span] = {}
        gap = idle = checkpoint = liveness = quench = None
        for option in decl.options:
            word = _TUNE_WORDS[type(option)]
            failed |= report_repeated(seen, option, word, self.diagnostics) or self._said_already(
                word, decl.relation, option.span
            )
            match option:
                case nodes.TuneGap():
                    failed |= not self.positive(option.duration)
                    gap = option.duration.microseconds
                case nodes.TuneIdle():
                    failed |= not self.positive(option.duration)
                    idle = option.duration.microseconds
                case nodes.TuneLiveness():
                    liveness = option.mode
                case nodes.TuneQuench():
                    quench = option.on
                case nodes.TuneCheckpoint():
                    failed |= not self.positive(option.every)
                    checkpoint = option.every.microseconds
        if not failed:
            relation = decl.relation.text if decl.relation else None
            self.result.tunings.append(typed.Tuning(relation, gap, idle, liveness, quench, checkpoint, span=decl.span))


_TUNE_WORDS: dict[type[nodes.Node], str] = {
    nodes.TuneGap: "gap",
    nodes.TuneIdle: "idle",
    nodes.TuneLiveness: "pull or push",
    nodes.TuneQuench: "quench",
    nodes.TuneCheckpoint: "checkpoint",
}
