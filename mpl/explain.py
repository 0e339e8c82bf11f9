"""Explanations: what the analysis knows about views and subscriptions, in words for users and as JSON for tools.

`explain` gathers plain records; `Explanation.to_text` and `to_json` print them. Both list views in reading order and
everything in source order, so that equal programs give equal bytes. Called by `smile explain`; decides nothing itself.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from mpl import typed
from mpl.knowledge import (
    ColumnKnowledge,
    Growth,
    Kind,
    Knowledge,
    Motion,
    Nulls,
    Path,
    ProgramKnowledge,
    operators_of,
)
from mpl.knowledge.fact import source_text
from mpl.knowledge.state import COPY_WORDS
from mpl.literals import literal_text
from mpl.source import Span

JSON_VERSION = 1
"""Raised when a field of the JSON form changes its meaning or goes away; new fields do not count."""

Json = str | int | bool | None | list["Json"] | dict[str, "Json"]

PATH_WORDS = {
    Path.FIXED: "visible from the start, permanently",
    Path.RISING: "temporarily invisible -> permanently visible",
    Path.FALLING: "temporarily visible -> permanently invisible",
    Path.PULSE: "temporarily invisible -> visible -> permanently invisible",
    Path.VERSIONED: "visible and invisible in turn (versioned: true as of what has been seen)",
}

TRUTH_WORDS = {
    Path.FIXED: "decided with the row",
    Path.RISING: "temporarily false -> permanently true",
    Path.FALLING: "temporarily true -> permanently false",
    Path.PULSE: "temporarily false -> temporarily true -> permanently false",
    Path.VERSIONED: "true and false in turn (versioned)",
}

EMIT_WORDS = {
    "changes": "every row as it is refined",
    "bounds": "every row as it is refined, moving numbers with the range they may still end in, and a mark when final",
    "final": "each row once, when it can no longer change",
    "as of horizon": "consistent cuts: all rows as they were when every stream was known up to the same tick",
}


@dataclass(frozen=True)
class ColumnExplanation:
    name: str
    type: str
    is_key: bool
    known: ColumnKnowledge

    @property
    def words(self) -> str:
        return kind_words(self.known)


@dataclass(frozen=True)
class Condition:
    text: str
    path: Path
    line: int


@dataclass(frozen=True)
class OperatorState:
    operator: str
    growth: Growth
    words: str
    rows_max: int | None
    line: int


@dataclass(frozen=True)
class StreamExplanation:
    """A stream with defaults: its columns that have one, with the literal."""

    name: str
    defaults: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ViewExplanation:
    name: str
    line: int
    reads: tuple[str, ...]
    columns: tuple[ColumnExplanation, ...]
    conditions: tuple[Condition, ...]
    states: tuple[OperatorState, ...]
    known: Knowledge


@dataclass(frozen=True)
class SubscriptionExplanation:
    name: str
    view: str
    emit: str
    words: str


@dataclass(frozen=True)
class Explanation:
    """What `smile explain` prints."""

    streams: tuple[StreamExplanation, ...]
    views: tuple[ViewExplanation, ...]
    subscriptions: tuple[SubscriptionExplanation, ...]

    def to_text(self, width: int = 100) -> str:
        blocks = [_stream_text(stream, width) for stream in self.streams]
        blocks += [_view_text(view, width) for view in self.views]
        blocks += [_subscription_text(subscription, width) for subscription in self.subscriptions]
        return "\n".join(blocks)

    def to_json(self) -> dict[str, Json]:
        return {
            "version": JSON_VERSION,
            "streams": [{"name": one.name, "defaults": dict(one.defaults)} for one in self.streams],
            "views": [_view_json(view) for view in self.views],
            "subscriptions": [
                {"name": one.name, "view": one.view, "emit": one.emit, "words": one.words} for one in self.subscriptions
            ],
        }


def explain(
    program: typed.TypedProgram, knowledge: ProgramKnowledge, view_names: Iterable[str] | None = None
) -> Explanation:
    """Explains the named views with the subscriptions to them and the streams they read, or everything. Unknown names
    are the caller's error."""
    wanted = list(program.views) if view_names is None else list(view_names)
    views = tuple(_explain_view(program.views[name], knowledge) for name in program.views if name in set(wanted))
    subscriptions = tuple(
        _explain_subscription(subscription, knowledge)
        for subscription in program.subscriptions.values()
        if subscription.view in wanted
    )
    read = None if view_names is None else {name for view in views for name in view.reads}
    streams = tuple(
        StreamExplanation(stream.name, _defaults(stream))
        for stream in program.streams.values()
        if stream.defaults and (read is None or stream.name in read)
    )
    return Explanation(streams, views, subscriptions)


def _defaults(stream: typed.Stream) -> tuple[tuple[str, str], ...]:
    columns = [(stream.schema.columns[position], value) for position, value in stream.defaults]
    return tuple((column.name, literal_text(value, column.type)) for column, value in columns)


def _explain_view(view: typed.View, knowledge: ProgramKnowledge) -> ViewExplanation:
    known = knowledge.views[view.name]
    key = set(view.schema.key)
    nodes = list(operators_of(view.relation))
    columns = tuple(
        ColumnExplanation(declared.name, _type_text(declared), position in key, column)
        for position, (declared, column) in enumerate(zip(view.schema.columns, known.columns, strict=True))
        if not declared.hidden
    )
    return ViewExplanation(
        view.name,
        _line(view.span),
        tuple(dict.fromkeys(name for node in nodes for name in _read_by(node))),
        columns,
        tuple(_conditions(nodes, knowledge)),
        tuple(_states(nodes, knowledge)),
        known,
    )


def _type_text(column: typed.Column) -> str:
    low, high = column.bounds.low, column.bounds.high
    bounds = ""
    if not column.bounds.is_open and str(column.type) == "int":
        bounds = f"[{'' if low is None else low}..{'' if high is None else high}]"
    return f"{column.type}{bounds}{' null' if column.nullable else ''}"


def _line(span: Span) -> int:
    return span.source.position(span.start)[0]


def _read_by(node: typed.RelationTree) -> tuple[str, ...]:
    match node:
        case typed.StreamScan():
            return (node.stream,)
        case typed.TableScan():
            return (node.table,)
        case typed.ViewScan():
            return (node.view,)
        case _:
            return ()


def _conditions(nodes: list[typed.RelationTree], knowledge: ProgramKnowledge) -> Iterable[Condition]:
    for node in nodes:
        path = knowledge.of(node).condition
        if path is None:
            continue
        match node:
            case typed.WhereNode():
                yield Condition(source_text(node.predicate), path, _line(node.span))
            case typed.JoinNode() if node.rest is not None:
                yield Condition(source_text(node.rest), path, _line(node.span))
            case typed.MatchingNode() | typed.MinusNode():
                yield Condition(textwrap.shorten(node.span.text, 60, placeholder=" ..."), path, _line(node.span))
            case _:
                pass


def _states(nodes: list[typed.RelationTree], knowledge: ProgramKnowledge) -> Iterable[OperatorState]:
    for node in nodes:
        state = knowledge.of(node).state
        if state.growth is not Growth.NONE:
            name = type(node).__name__.removesuffix("Node").lower()
            yield OperatorState(name, state.growth, state.words, state.rows_max, _line(node.span))


def _explain_subscription(subscription: typed.Subscription, knowledge: ProgramKnowledge) -> SubscriptionExplanation:
    known = knowledge.views[subscription.view]
    words = EMIT_WORDS[subscription.emit]
    if subscription.emit == "final":
        words += f"; rows are final {known.finality.words}"
    elif known.path is Path.PULSE:
        words += "; a row that has vanished never returns"
    elif known.rows_versioned:
        words += "; rows are true as of the coverage they carry, and may be replaced"
    if subscription.every_us is not None:
        words += "; at the most one update per interval, with the latest state"
    return SubscriptionExplanation(subscription.name, subscription.view, subscription.emit, words)


# --- words ----------------------------------------------------------------------------------------------------------


def kind_words(column: ColumnKnowledge) -> str:
    """The kind of a column as a user would say it."""
    words = _kind_words(column)
    if column.nulls is Nulls.UNTIL_KNOWN:
        return f"null until known, then {words}"
    return words


def _kind_words(column: ColumnKnowledge) -> str:
    match column.kind:
        case Kind.FINAL:
            return "fixed"
        case Kind.UP:
            return "rising (a lower bound that only grows)"
        case Kind.DOWN:
            return "falling (an upper bound that only shrinks)"
        case Kind.INTERVAL:
            return "an interval whose ends close in"
        case Kind.PN:
            return _pair_words(column)
        case Kind.DOM:
            return f"the {column.domain} value so far, replaced as a whole"
        case Kind.VERSIONED if column.domain == "average":
            return "an average (its sum and count are refined; what is shown moves both ways)"
        case Kind.VERSIONED:
            return "versioned (true as of what has been seen, may be replaced by any other value)"


def _pair_words(column: ColumnKnowledge) -> str:
    assert column.parts is not None
    positive, negative = column.parts
    names = f" ({positive.text} less {negative.text})" if positive.text and negative.text else ""
    direction = {
        Motion.FALLS: f"; falls once {positive.text or 'p'} is known",
        Motion.RISES: f"; rises once {negative.text or 'n'} is known",
    }.get(column.motion, "")
    return f"a pair, shown as p - n{names}{direction}"


# --- text -----------------------------------------------------------------------------------------------------------


def _stream_text(stream: StreamExplanation, width: int) -> str:
    lines = [f"stream {stream.name}"]
    said = ", ".join(f"{name} {literal}" for name, literal in stream.defaults)
    _field(lines, "default", f"{said}, where it was not published", width)
    return "\n".join(lines) + "\n"


def _view_text(view: ViewExplanation, width: int) -> str:
    known = view.known
    lines = [f"view {view.name}" + (" (events)" if known.is_event else "")]
    _field(lines, "reads", ", ".join(view.reads), width)
    _field(lines, "rows", PATH_WORDS[known.path], width)
    if known.path is not Path.RISING:
        _field(lines, "", known.visibility.reason, width)
    for condition in view.conditions:
        _field(lines, "where", f"{condition.text}: {TRUTH_WORDS[condition.path]}", width)
    _field(lines, "final", known.finality.words, width)
    for state in _own_states(view):
        end = ": grows without end" if state.growth is Growth.UNBOUNDED else ""
        _field(lines, "state", f"{state.operator} keeps {state.words}{end}", width)
    if not view.states:
        _field(lines, "state", "none", width)
    name_width = max((len(column.name) for column in view.columns), default=0)
    type_width = min(24, max((len(column.type) for column in view.columns), default=0))
    for column in view.columns:
        head = f"    {column.name:<{name_width}}  {column.type:<{type_width}}  "
        words = ("key, " if column.is_key else "") + column.words
        wrapped = textwrap.wrap(words, max(24, width - len(head))) or [""]
        lines.append((head + wrapped[0]).rstrip())
        lines += [" " * len(head) + more for more in wrapped[1:]]
    return "\n".join(lines) + "\n"


def _own_states(view: ViewExplanation) -> list[OperatorState]:
    """Without operators that merely hold a copy of what they were sent, unless there is nothing else."""
    own = [state for state in view.states if not state.words.startswith(COPY_WORDS)]
    return own or list(view.states[-1:])


def _field(lines: list[str], name: str, words: str, width: int) -> None:
    head = f"  {name:<6} "
    wrapped = textwrap.wrap(words, max(24, width - len(head))) or [""]
    lines.append((head + wrapped[0]).rstrip())
    lines += [" " * len(head) + more for more in wrapped[1:]]


def _subscription_text(subscription: SubscriptionExplanation, width: int) -> str:
    lines = [f"subscribe {subscription.name} to {subscription.view}"]
    _field(lines, "emit", f"{subscription.emit}: {subscription.words}", width)
    return "\n".join(lines) + "\n"


# --- JSON -----------------------------------------------------------------------------------------------------------


def _view_json(view: ViewExplanation) -> dict[str, Json]:
    known = view.known
    return {
        "name": view.name,
        "line": view.line,
        "is_event": known.is_event,
        "reads": list(view.reads),
        "streams": list(known.streams),
        "columns": [_column_json(column) for column in view.columns],
        "visibility": {
            "path": known.path.value,
            "words": PATH_WORDS[known.path],
            "reason": known.visibility.reason,
        },
        "rows_versioned": known.rows_versioned,
        "conditions": [
            {"text": one.text, "path": one.path.value, "words": TRUTH_WORDS[one.path], "line": one.line}
            for one in view.conditions
        ],
        "finality": {"when": known.finality.when.value, "words": known.finality.words},
        "state": [
            {
                "operator": one.operator,
                "growth": one.growth.value,
                "words": one.words,
                "rows_max": one.rows_max,
                "line": one.line,
            }
            for one in view.states
        ],
    }


def _column_json(column: ColumnExplanation) -> dict[str, Json]:
    known = column.known
    return {
        "name": column.name,
        "type": column.type,
        "is_key": column.is_key,
        "kind": known.kind.value,
        "direction": known.motion.value,
        "nulls": known.nulls.value,
        "domain": known.domain,
        "words": column.words,
        "reason": known.reason,
    }
