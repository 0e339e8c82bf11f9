"""The checker: a parsed program to a typed one.

Reports every independent error and goes on: a view with errors is left out, and whatever reads it is left unchecked
without a message of its own. Kinds and finality are derived afterwards (`mpl/knowledge/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from mpl import nodes, typed
from mpl.codes import names
from mpl.declarations import check_stream, check_table, report_repeated
from mpl.deployment import DeploymentChecker, check_broker
from mpl.diagnostic import Diagnostics, Note, did_you_mean
from mpl.expressions import FunctionTable
from mpl.order import in_reading_order, relations_read
from mpl.relations.context import Budget, Context
from mpl.relations.keys import candidates, identifies
from mpl.relations.pipeline import check_relation
from mpl.relations.sets import streams_of_events
from mpl.source import Span


def check_program(program: nodes.Program, diagnostics: Diagnostics) -> typed.TypedProgram:
    """The typed program; complete only if `diagnostics` has no error."""
    return _Checker(program, diagnostics).check()


@dataclass(frozen=True)
class _Declared:
    """What a program declares, by kind and name; of two with the same name the first counts."""

    streams: dict[str, nodes.StreamDecl]
    tables: dict[str, nodes.TableDecl]
    views: dict[str, nodes.ViewDecl]
    subscriptions: dict[str, nodes.SubscribeDecl]
    brokers: dict[str, nodes.BrokerDecl]


class _Checker:
    def __init__(self, program: nodes.Program, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.functions = FunctionTable(program.unread)
        self.budget = Budget()
        self.relations: dict[str, typed.RelationTree | None] = {}
        self.event_views: dict[str, frozenset[str]] = {}

    def check(self) -> typed.TypedProgram:
        declared = self._declare()
        self.functions.resolve(self.diagnostics)
        streams = self._streams(declared.streams)
        tables = self._tables(declared.tables)
        brokers = self._brokers(declared.brokers)
        self.relations.update(dict.fromkeys(declared.views))
        for name in self.program.unread:
            self.relations.setdefault(name, None)
        views = self._views(declared.views, streams)
        deployment = self._deployment(declared)
        subscriptions = self._subscriptions(declared, deployment)
        return typed.TypedProgram(
            streams,
            tables,
            views,
            subscriptions,
            brokers,
            tuple(deployment.result.links),
            tuple(deployment.result.placements),
            tuple(deployment.result.protections),
            tuple(deployment.result.tunings),
            self._drops(declared),
        )

    # Names

    def _declare(self) -> _Declared:
        declared = _Declared({}, {}, {}, {}, {})
        # Streams, tables and views are read by name alike, so they share one set of names; a subscription to a
        # relation of its own becomes a view of that name.
        relations: dict[str, Span] = {}
        subscriptions: dict[str, Span] = {}
        brokers: dict[str, Span] = {}
        for statement in self.program.statements:
            match statement:
                case nodes.StreamDecl() if self._new(statement.name, relations, "stream, table or view"):
                    declared.streams[statement.name.text] = statement
                case nodes.TableDecl() if self._new(statement.name, relations, "stream, table or view"):
                    declared.tables[statement.name.text] = statement
                case nodes.ViewDecl() if self._new(statement.name, relations, "stream, table or view"):
                    declared.views[statement.name.text] = statement
                case nodes.SubscribeDecl() if self._new(statement.name, subscriptions, "subscription"):
                    declared.subscriptions[statement.name.text] = statement
                case nodes.BrokerDecl() if self._new(statement.name, brokers, "broker"):
                    declared.brokers[statement.name.text] = statement
                case nodes.FunctionDecl():
                    self.functions.declare(statement, self.diagnostics)
                case _:
                    pass
        self._name_own_relations(declared, relations)
        return declared

    def _new(self, name: nodes.Name, taken: dict[str, Span], what: str) -> bool:
        first = taken.setdefault(name.text, name.span)
        if first is name.span:
            return True
        self.diagnostics.report(
            names.DUPLICATE_NAME,
            name.span,
            f"there is already a {what} called `{name.text}`",
            "declared a second time",
            note=Note("the first one is here", first),
            help="choose another name",
        )
        return False

    def _name_own_relations(self, declared: _Declared, relations: dict[str, Span]) -> None:
        """`subscribe s to (from ...)` declares a view `s`."""
        for name, subscription in declared.subscriptions.items():
            if isinstance(subscription.target, nodes.Relation) and self._new(
                subscription.name, relations, "stream, table or view"
            ):
                declared.views[name] = nodes.ViewDecl(
                    subscription.name, None, subscription.target, None, span=subscription.span
                )

    # Relations

    def _streams(self, declared: dict[str, nodes.StreamDecl]) -> dict[str, typed.Stream]:
        streams: dict[str, typed.Stream] = {}
        for name, decl in declared.items():
            stream = check_stream(decl, self.diagnostics)
            self.relations[name] = None
            if stream is not None:
                streams[name] = stream
                self.relations[name] = typed.StreamScan(name, schema=stream.schema, span=decl.name.span)
        return streams

    def _tables(self, declared: dict[str, nodes.TableDecl]) -> dict[str, typed.Table]:
        tables: dict[str, typed.Table] = {}
        for name, decl in declared.items():
            table = check_table(decl, self.diagnostics)
            self.relations[name] = None
            if table is not None:
                tables[name] = table
                self.relations[name] = typed.TableScan(name, schema=table.schema, span=decl.name.span)
        return tables

    def _views(self, declared: dict[str, nodes.ViewDecl], streams: Mapping[str, typed.Stream]) -> dict[str, typed.View]:
        reads = {name: relations_read(decl.relation) for name, decl in declared.items()}
        order, circles = in_reading_order(declared, reads)
        in_circle = {name for circle in circles for name in circle}
        for circle in circles:
            self._report_circle(circle, declared)
        views: dict[str, typed.View] = {}
        for name in order:
            if name not in in_circle:
                view = self._view(declared[name], streams)
                if view is not None:
                    views[name] = view
                    self.relations[name] = typed.ViewScan(name, schema=view.schema, span=view.span)
        return views

    def _report_circle(self, circle: tuple[str, ...], declared: Mapping[str, nodes.ViewDecl]) -> None:
        name = declared[circle[0]].name
        way = " -> ".join(f"`{part}`" for part in (*circle, circle[0]))
        self.diagnostics.report(
            names.VIEW_CYCLE,
            name.span,
            f"`{name.text}` is defined by way of itself: {way}",
            "a view cannot read itself",
            help="recursive views are not supported; break the circle",
        )

    def _view(self, decl: nodes.ViewDecl, streams: Mapping[str, typed.Stream]) -> typed.View | None:
        context = Context(self.relations, self.event_views, streams, self.functions, self.diagnostics, self.budget)
        current = check_relation(decl.relation, context)
        if current is None:
            return None
        sources = streams_of_events(current.node, context)
        if sources is not None:
            self.event_views[decl.name.text] = sources
        node = current.node
        if decl.key is not None:
            key = self._declared_key(decl.key, node.schema)
            if key is None:
                return None
            others = tuple(known for known in dict.fromkeys(candidates(node.schema)) if known != key)
            node = replace(node, schema=replace(node.schema, key=key, unique=others))
        return typed.View(decl.name.text, node, decl.storage, span=decl.name.span)

    def _declared_key(self, written: tuple[nodes.Name, ...], schema: typed.Schema) -> tuple[int, ...] | None:
        by_name = {column.name: position for position, column in enumerate(schema.columns) if not column.hidden}
        positions: list[int] = []
        for name in written:
            if name.text not in by_name:
                self.diagnostics.report(
                    names.UNKNOWN_COLUMN,
                    name.span,
                    f"there is no column `{name.text}` here",
                    "not a column of this view",
                    help=partial(_column_help, name.text, by_name),
                )
                return None
            if by_name[name.text] in positions:
                self.diagnostics.report(
                    names.DUPLICATE_COLUMN, name.span, f"`{name.text}` is listed twice", "already in the list"
                )
                return None
            positions.append(by_name[name.text])
        if identifies(schema, positions):
            return tuple(sorted(positions))
        self.diagnostics.report(
            names.KEY_NOT_UNIQUE,
            written[0].span.to(written[-1].span),
            "several rows of this view may have the same value of this key",
            "does not identify rows",
            help=_key_help(schema),
        )
        return None

    # Everything else

    def _brokers(self, declared: dict[str, nodes.BrokerDecl]) -> dict[str, typed.Broker]:
        checked = {name: check_broker(decl, self.diagnostics) for name, decl in declared.items()}
        return {name: broker for name, broker in checked.items() if broker is not None}

    def _deployment(self, declared: _Declared) -> DeploymentChecker:
        unread = self.program.unread
        checker = DeploymentChecker(
            {*declared.brokers, *unread},
            {*declared.streams, *unread},
            self.relations,
            declared.subscriptions,
            self.diagnostics,
        )
        for statement in self.program.statements:
            match statement:
                case nodes.LinkDecl():
                    checker.link(statement)
                case nodes.PublishDecl():
                    checker.publish(statement)
                case nodes.PlaceDecl():
                    checker.place(statement)
                case nodes.ProtectDecl():
                    checker.protect(statement)
                case nodes.TuneDecl():
                    checker.tune(statement)
                case _:
                    pass
        return checker

    def _subscriptions(self, declared: _Declared, deployment: DeploymentChecker) -> dict[str, typed.Subscription]:
        checked: dict[str, typed.Subscription] = {}
        for name, decl in declared.subscriptions.items():
            known = self._target_known(decl)
            subscription = _subscription(decl, deployment, self.diagnostics)
            # What a broken view offers is unknown, so its subscriptions are left out with it.
            if known and subscription is not None and self.relations[subscription.view] is not None:
                checked[name] = subscription
        return checked

    def _target_known(self, decl: nodes.SubscribeDecl) -> bool:
        target = decl.target
        if isinstance(target, nodes.Relation) or target.text in self.relations:
            return True
        self.diagnostics.report(
            names.UNKNOWN_RELATION,
            target.span,
            f"there is no view called `{target.text}`",
            "not declared",
            help=lambda: did_you_mean(target.text, self.relations) or "declare it, or check the spelling",
        )
        return False

    def _drops(self, declared: _Declared) -> tuple[typed.Drop, ...]:
        known: dict[str, Mapping[str, nodes.Node]] = {
            "view": declared.views,
            "stream": declared.streams,
            "subscribe": declared.subscriptions,
        }
        drops: list[typed.Drop] = []
        for statement in self.program.statements:
            if not isinstance(statement, nodes.DropDecl):
                continue
            if statement.name.text in known[statement.what]:
                self.diagnostics.report(
                    names.DROPPED_AND_DECLARED,
                    statement.name.span,
                    f"`{statement.name.text}` is declared in this program, so it cannot be dropped by it",
                    "declared and dropped",
                    help="remove the declaration or the `drop`",
                )
            else:
                drops.append(typed.Drop(statement.what, statement.name.text, span=statement.span))
        return tuple(drops)


def _column_help(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known) or f"the columns are {', '.join(f'`{column}`' for column in known)}"


def _key_help(schema: typed.Schema) -> str:
    if any(schema.columns[position].hidden for position in schema.key):
        return "only their ticks tell these rows apart: name the tick in the stream, or take the `latest per` a key"
    actual = ", ".join(f"`{schema.columns[position].name}`" for position in schema.key)
    return f"what identifies rows is {actual}" if actual else "this view has one row only: leave the key out"


_SUBSCRIBE_WORDS: dict[type[nodes.Node], str] = {
    nodes.EmitOption: "emit",
    nodes.AtOption: "at",
    nodes.EveryOption: "every",
    nodes.WithinOption: "within",
    nodes.SnapshotOption: "snapshot",
    nodes.DurableOption: "durable",
}


def _subscription(
    decl: nodes.SubscribeDecl, deployment: DeploymentChecker, diagnostics: Diagnostics
) -> typed.Subscription | None:
    target = decl.target.text if isinstance(decl.target, nodes.Name) else decl.name.text
    subscription = typed.Subscription(
        decl.name.text, target, "changes", None, None, None, True, False, span=decl.name.span
    )
    seen: dict[type[nodes.Node], Span] = {}
    failed = False
    for option in decl.options:
        failed |= report_repeated(seen, option, _SUBSCRIBE_WORDS[type(option)], diagnostics)
        match option:
            case nodes.EmitOption():
                subscription = replace(subscription, emit=option.mode)
            case nodes.AtOption():
                failed |= not deployment.broker(option.broker)
                subscription = replace(subscription, broker=option.broker.text)
            case nodes.EveryOption():
                failed |= not deployment.positive(option.duration)
                subscription = replace(subscription, every_us=option.duration.microseconds)
            case nodes.WithinOption():
                failed |= not deployment.positive(option.duration)
                subscription = replace(subscription, within_us=option.duration.microseconds)
            case nodes.SnapshotOption():
                subscription = replace(subscription, snapshot=option.on)
            case nodes.DurableOption():
                subscription = replace(subscription, durable=True)
    return None if failed else subscription
