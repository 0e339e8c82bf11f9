"""Statements as layout."""

from __future__ import annotations

from collections.abc import Sequence

from mpl.formatter.expressions import enclosed, expr, listed, names, spaced, type_doc, value, word
from mpl.formatter.layout import LINE, SPACE, Doc, Group, Indent
from mpl.formatter.relations import relation
from mpl.nodes import (
    AtOption,
    BrokerDecl,
    ClosesOption,
    ColumnDecl,
    DropDecl,
    DurableOption,
    EmitOption,
    EventTimeOption,
    EveryOption,
    FunctionDecl,
    LinkDecl,
    Parameter,
    PlaceDecl,
    ProtectDecl,
    PublishDecl,
    RangeNode,
    Relation,
    RetainOption,
    SnapshotOption,
    Statement,
    StreamDecl,
    StreamOption,
    SubscribeDecl,
    SubscribeOption,
    TableDecl,
    TickOption,
    TuneCheckpoint,
    TuneDecl,
    TuneGap,
    TuneIdle,
    TuneLiveness,
    TuneOption,
    TuneQuench,
    UniqueOption,
    UntilOption,
    ViewDecl,
    WithinOption,
)


def statement(node: Statement) -> Doc:
    """The whole statement with its `;`."""
    return Group((_body(node), word(";")))


def _body(node: Statement) -> Doc:
    match node:
        case StreamDecl(columns=columns, options=options):
            head = spaced("stream", value(), enclosed(listed([_column_decl(item) for item in columns])))
            return _with_options(head, [_stream_option(option) for option in options])
        case TableDecl(columns=columns, key=key, path=path):
            head = spaced("table", value(), enclosed(listed([_column_decl(item) for item in columns])))
            rest = [spaced("key", names(key))] + ([spaced("from", value())] if path is not None else [])
            return _with_options(head, rest)
        case ViewDecl():
            return _view(node)
        case SubscribeDecl(target=target, options=options):
            inner = enclosed(relation(target)) if isinstance(target, Relation) else value()
            return _with_options(spaced("subscribe", value(), "to", inner), [_subscribe_option(o) for o in options])
        case FunctionDecl():
            return _function(node)
        case BrokerDecl() | LinkDecl() | PublishDecl() | PlaceDecl() | ProtectDecl() | TuneDecl() | DropDecl():
            return _deployment(node)


def _with_options(head: Doc, options: Sequence[Doc]) -> Doc:
    return (head, *[Indent((LINE, option)) for option in options])


# --- streams, tables, views, subscriptions ----------------------------------------------------------------------------


def _column_decl(node: ColumnDecl) -> Doc:
    kind: Doc = type_doc(node.type)
    if node.range is not None:
        kind = (kind, _range(node.range))
    default = () if node.default is None else ("default", expr(node.default))
    return spaced(value(), kind, "null" if node.nullable else "", *default)


def _range(node: RangeNode) -> Doc:
    low = () if node.low is None else expr(node.low)
    high = () if node.high is None else expr(node.high)
    return (word("["), low, word(".."), high, word("]"))


def _stream_option(node: StreamOption) -> Doc:
    match node:
        case TickOption(every=every, phase=phase):
            parts: list[Doc | str] = ["tick", value()]
            parts += ["every", value()] if every else []
            parts += ["phase", value(), "of", value()] if phase else []
            return spaced(*parts)
        case UniqueOption(columns=columns):
            return spaced("unique", names(columns))
        case EventTimeOption(late=late, live=live):
            parts = ["event time", value()]
            parts += ["late", value()] if late else []
            parts += ["live"] if live else []
            return spaced(*parts)
        case ClosesOption():
            return spaced("closes", value(), "at", value())
        case UntilOption(value=limit):
            return spaced("until", expr(limit))
        case RetainOption():
            return spaced("retain", value())


def _view(node: ViewDecl) -> Doc:
    head = spaced("view", value(), "key", names(node.key)) if node.key else spaced("view", value())
    body: Doc = relation(node.relation)
    if node.storage:
        body = (body, LINE, word(node.storage))
    return (spaced(head, "="), SPACE, Indent(body))


def _subscribe_option(node: SubscribeOption) -> Doc:
    match node:
        case EmitOption(mode=mode):
            return spaced("emit", mode)
        case AtOption():
            return spaced("at", value())
        case EveryOption():
            return spaced("every", value())
        case WithinOption():
            return spaced("within", value())
        case SnapshotOption(on=on):
            return spaced("snapshot", "on" if on else "off")
        case DurableOption():
            return word("durable")


def _function(node: FunctionDecl) -> Doc:
    parameters: Doc = listed([_parameter(item) for item in node.parameters])
    head = spaced("function", (value(), enclosed(parameters) if parameters else (word("("), word(")"))), "returns")
    result = (
        spaced(head, type_doc(node.result), "null") if node.result_nullable else spaced(head, type_doc(node.result))
    )
    body: Doc = spaced("python", value()) if node.body is None else spaced("=", expr(node.body))
    options = [body]
    if node.monotone:
        options.append(spaced("monotone", listed([word(direction) for direction in node.monotone])))
    return _with_options(result, options)


def _parameter(node: Parameter) -> Doc:
    return spaced(value(), type_doc(node.type), "null" if node.nullable else "")


# --- where things run -------------------------------------------------------------------------------------------------

Deployment = BrokerDecl | LinkDecl | PublishDecl | PlaceDecl | ProtectDecl | TuneDecl | DropDecl


def _deployment(node: Deployment) -> Doc:
    options: list[Doc] = []
    match node:
        case BrokerDecl(cpu=cpu, memory=memory, edge=edge):
            options += [spaced("cpu", value())] if cpu is not None else []
            options += [spaced("memory", value(), value())] if memory else []
            options += [word("edge")] if edge else []
            return _with_options(spaced("broker", value(), "at", value()), options)
        case LinkDecl(latency=latency, bandwidth=bandwidth, loss=loss):
            options += [spaced("latency", value())] if latency else []
            options += [spaced("bandwidth", value(), value())] if bandwidth else []
            options += [spaced("loss", (value(), word("%")))] if loss is not None else []
            return _with_options(spaced("link", value(), "-", value()), options)
        case PublishDecl():
            return spaced("publish", value(), "at", value())
        case PlaceDecl(how=how):
            return spaced("place", value(), how, value())
        case ProtectDecl(relation=target, scheme=scheme, duration=duration, broker=broker):
            parts: list[Doc | str] = ["protect", value() if target else "all", "by", scheme]
            parts += ["lag" if scheme == "semiactive" else "every", value()] if duration else []
            parts += ["on", value()] if broker else []
            return spaced(*parts)
        case TuneDecl(relation=target, options=tunes):
            return _with_options(spaced("tune", value() if target else "all"), [_tune(option) for option in tunes])
        case DropDecl(what=what):
            return spaced("drop", what, value())


def _tune(node: TuneOption) -> Doc:
    match node:
        case TuneGap():
            return spaced("gap", value())
        case TuneIdle():
            return spaced("idle", value())
        case TuneLiveness(mode=mode):
            return word(mode)
        case TuneQuench(on=on):
            return spaced("quench", "on" if on else "off")
        case TuneCheckpoint():
            return spaced("checkpoint every", value())
