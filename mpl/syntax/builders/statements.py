"""Builders of statements and their options."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from mpl.nodes import (
    AtOption,
    BrokerDecl,
    ClosesOption,
    ColumnDecl,
    DropDecl,
    DurableOption,
    DurationLiteral,
    EmitOption,
    EventTimeOption,
    EveryOption,
    Expr,
    FunctionDecl,
    LinkDecl,
    Name,
    Parameter,
    PlaceDecl,
    ProtectDecl,
    PublishDecl,
    RangeNode,
    Relation,
    RetainOption,
    SnapshotOption,
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
    TypeNode,
    UniqueOption,
    UntilOption,
    ViewDecl,
    WithinOption,
)
from mpl.syntax.builders.expressions import quoted
from mpl.syntax.builders.parts import Phrase, cover, every_second
from mpl.syntax.tokens import Token

# --- streams and tables ----------------------------------------------------------------------------------------------


def stream(
    word: Token,
    name: Name,
    _opening: Token,
    columns: tuple[ColumnDecl, ...],
    close: Token,
    options: tuple[StreamOption, ...],
) -> StreamDecl:
    return StreamDecl(name, columns, options, span=cover(word, close, *options))


def table(
    word: Token,
    name: Name,
    _opening: Token,
    columns: tuple[ColumnDecl, ...],
    _close: Token,
    _key_word: Token,
    key: tuple[Name, ...],
    _from_word: Token | None,
    path: Token | None,
) -> TableDecl:
    return TableDecl(name, columns, key, quoted(path) if path else None, span=cover(word, key[-1], path))


def column_decls(*parts: Any) -> tuple[ColumnDecl, ...]:
    return every_second(parts)


def column_decl(
    name: Name,
    type_node: TypeNode,
    column_range: RangeNode | None,
    null: Token | None,
    _default_word: Token | None,
    default: Expr | None,
) -> ColumnDecl:
    span = cover(name, type_node, column_range, null, default)
    return ColumnDecl(name, type_node, column_range, null is not None, default, span=span)


def column_range(opening: Token, low: Expr | None, _up_to: Token, high: Expr | None, close: Token) -> RangeNode:
    return RangeNode(low, high, span=cover(opening, close))


def stream_options(*options: StreamOption) -> tuple[StreamOption, ...]:
    return options


def tick_option(
    word: Token,
    name: Name,
    _every_word: Token | None,
    every: DurationLiteral | None,
    _phase_word: Token | None,
    phase: Token | None,
    _of: Token | None,
    count: Token | None,
) -> TickOption:
    owned = (int(phase.text), int(count.text)) if phase and count else None
    return TickOption(name, every, owned, span=cover(word, name, every, count))


def unique_option(word: Token, columns: tuple[Name, ...]) -> UniqueOption:
    return UniqueOption(columns, span=cover(word, columns[-1]))


def event_time_option(
    word: Token, _time: Token, column: Name, _late_word: Token | None, late: DurationLiteral | None, live: Token | None
) -> EventTimeOption:
    return EventTimeOption(column, late, live is not None, span=cover(word, column, late, live))


def closes_option(word: Token, column: Name, _at_word: Token, at: Name) -> ClosesOption:
    return ClosesOption(column, at, span=cover(word, at))


def until_option(word: Token, value: Expr) -> UntilOption:
    return UntilOption(value, span=cover(word, value))


def retain_option(word: Token, duration: DurationLiteral) -> RetainOption:
    return RetainOption(duration, span=cover(word, duration))


# --- views, subscriptions, functions ---------------------------------------------------------------------------------


def view(
    word: Token,
    name: Name,
    _key_word: Token | None,
    key: tuple[Name, ...] | None,
    _sign: Token,
    relation: Relation,
    storage: Token | None,
) -> ViewDecl:
    how = cast(Any, storage.text.lower()) if storage else None
    return ViewDecl(name, key, relation, how, span=cover(word, relation, storage))


def storage(word: Token) -> Token:
    return word


def subscribe(
    word: Token, name: Name, _to: Token, target: Phrase[Name | Relation], options: tuple[SubscribeOption, ...]
) -> SubscribeDecl:
    return SubscribeDecl(name, target.value, options, span=cover(word, target, *options))


def subscribe_target(*parts: Any) -> Phrase[Name | Relation]:
    return Phrase(parts[1] if len(parts) == 3 else parts[0], cover(parts[0], parts[-1]))


def subscribe_options(*options: SubscribeOption) -> tuple[SubscribeOption, ...]:
    return options


def emit_option(word: Token, *mode: Token) -> EmitOption:
    return EmitOption(cast(Any, " ".join(part.text.lower() for part in mode)), span=cover(word, mode[-1]))


def at_option(word: Token, broker: Name) -> AtOption:
    return AtOption(broker, span=cover(word, broker))


def every_option(word: Token, duration: DurationLiteral) -> EveryOption:
    return EveryOption(duration, span=cover(word, duration))


def within_option(word: Token, duration: DurationLiteral) -> WithinOption:
    return WithinOption(duration, span=cover(word, duration))


def snapshot_option(word: Token, on: Token) -> SnapshotOption:
    return SnapshotOption(on.type == "ON", span=cover(word, on))


def durable_option(word: Token) -> DurableOption:
    return DurableOption(span=word.span)


def on_off(word: Token) -> Token:
    return word


def function(
    word: Token,
    name: Name,
    _opening: Token,
    parameters: tuple[Parameter, ...],
    _close: Token,
    _returns: Token,
    result: TypeNode,
    null: Token | None,
    body: Phrase[Expr | str],
    monotone: Phrase[tuple[Any, ...]] | None,
) -> FunctionDecl:
    python = body.value if isinstance(body.value, str) else None
    return FunctionDecl(
        name,
        parameters,
        result,
        null is not None,
        None if isinstance(body.value, str) else body.value,
        python,
        monotone.value if monotone else (),
        span=cover(word, body, monotone),
    )


def parameters(*parts: Any) -> tuple[Parameter, ...]:
    return every_second(parts) if parts[0] is not None else ()


def parameter(name: Name, type_node: TypeNode, null: Token | None) -> Parameter:
    return Parameter(name, type_node, null is not None, span=cover(name, type_node, null))


def function_body(sign: Token, body: Expr | Token) -> Phrase[Expr | str]:
    return Phrase(quoted(body) if isinstance(body, Token) else body, cover(sign, body))


def monotone(word: Token, *parts: Token) -> Phrase[tuple[str, ...]]:
    return Phrase(tuple(part.text.lower() for part in parts[::2]), cover(word, parts[-1]))


def direction(word: Token) -> Token:
    return word


# --- where things run ------------------------------------------------------------------------------------------------


def broker(
    word: Token,
    name: Name,
    _at: Token,
    address: Token,
    _cpu_word: Token | None,
    cpu: Token | None,
    _memory_word: Token | None,
    memory: Token | None,
    memory_unit: Token | None,
    edge: Token | None,
) -> BrokerDecl:
    return BrokerDecl(
        name,
        quoted(address),
        int(cpu.text) if cpu else None,
        (int(memory.text), memory_unit.text.lower()) if memory and memory_unit else None,
        edge is not None,
        span=cover(word, address, cpu, memory_unit, edge),
    )


def memory_unit(word: Token) -> Token:
    return word


def link(
    word: Token,
    left: Name,
    _sign: Token,
    right: Name,
    _latency_word: Token | None,
    latency: DurationLiteral | None,
    _bandwidth_word: Token | None,
    bandwidth: Token | None,
    bandwidth_unit: Token | None,
    _loss_word: Token | None,
    loss: Phrase[Decimal] | None,
) -> LinkDecl:
    return LinkDecl(
        left,
        right,
        latency,
        (int(bandwidth.text), bandwidth_unit.text.lower()) if bandwidth and bandwidth_unit else None,
        loss.value if loss else None,
        span=cover(word, right, latency, bandwidth_unit, loss),
    )


def bandwidth_unit(word: Token) -> Token:
    return word


def percent(number: Token, sign: Token) -> Phrase[Decimal]:
    return Phrase(Decimal(number.text), cover(number, sign))


def publish(word: Token, stream: Name, _at: Token, broker: Name) -> PublishDecl:
    return PublishDecl(stream, broker, span=cover(word, broker))


def place(word: Token, relation: Name, how: Token, target: Name) -> PlaceDecl:
    return PlaceDecl(relation, cast(Any, how.text.lower()), target, span=cover(word, target))


def how(word: Token) -> Token:
    return word


def protect(
    word: Token,
    relation: Name | None,
    _by: Token,
    scheme: Phrase[tuple[Any, DurationLiteral | None]],
    _on: Token | None,
    broker: Name | None,
) -> ProtectDecl:
    kind, duration = scheme.value
    return ProtectDecl(relation, kind, duration, broker, span=cover(word, scheme, broker))


def name_or_all(target: Name | Token) -> Name | None:
    return None if isinstance(target, Token) else target


def scheme(
    word: Token, _duration_word: Token | None = None, duration: DurationLiteral | None = None
) -> Phrase[tuple[str, DurationLiteral | None]]:
    return Phrase((word.text.lower(), duration), cover(word, duration))


def tune(word: Token, relation: Name | None, options: tuple[TuneOption, ...]) -> TuneDecl:
    return TuneDecl(relation, options, span=cover(word, options[-1]))


def tune_options(*options: TuneOption) -> tuple[TuneOption, ...]:
    return options


def tune_gap(word: Token, duration: DurationLiteral) -> TuneGap:
    return TuneGap(duration, span=cover(word, duration))


def tune_idle(word: Token, duration: DurationLiteral) -> TuneIdle:
    return TuneIdle(duration, span=cover(word, duration))


def tune_liveness(word: Token) -> TuneLiveness:
    return TuneLiveness(cast(Any, word.text.lower()), span=word.span)


def tune_quench(word: Token, on: Token) -> TuneQuench:
    return TuneQuench(on.type == "ON", span=cover(word, on))


def tune_checkpoint(word: Token, _every: Token, duration: DurationLiteral) -> TuneCheckpoint:
    return TuneCheckpoint(duration, span=cover(word, duration))


def drop(word: Token, what: Token, name: Name) -> DropDecl:
    return DropDecl(cast(Any, what.text.lower()), name, span=cover(word, name))


def drop_kind(word: Token) -> Token:
    return word
