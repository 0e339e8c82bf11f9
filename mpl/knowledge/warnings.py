"""Warnings: what the analysis found out and an author would want to know. One per place at the most.

A degraded column or row set is reported once, where it begins, and only if a view shows it; what follows from it is
silent. Growing state is reported once per view, at the operator that causes it, and not again by views that read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mpl import typed
from mpl.codes import knowledge as codes
from mpl.diagnostic import Diagnostics
from mpl.knowledge.kind import Cause, ColumnKnowledge, Kind
from mpl.knowledge.knowledge import Knowledge
from mpl.knowledge.path import Path
from mpl.knowledge.state import Growth, StateBound, listed
from mpl.knowledge.walk import operators_of

Lookup = Callable[[typed.RelationTree], Knowledge]

_EVERY_EVENT = frozenset(("*",))


def warn(program: typed.TypedProgram, views: dict[str, Knowledge], of: Lookup, diagnostics: Diagnostics) -> None:
    """Reports warnings for all views and subscriptions."""
    reporter = _Reporter(diagnostics)
    for name, view in program.views.items():
        reporter.rows(name, views[name])
        reporter.columns(name, view.schema, views[name])
        reporter.state(name, view.relation, of)
    for subscription in program.subscriptions.values():
        subscribed = program.views.get(subscription.view)
        if subscribed is not None:
            _subscription(subscription, subscribed.schema, views[subscription.view], diagnostics)


@dataclass
class _Reporter:
    """`grown` holds, per view, the column sets with whose values its state, or that of a view it reads, grows."""

    diagnostics: Diagnostics
    causes: set[tuple[int, int]] = field(default_factory=set)
    grown: dict[str, list[frozenset[str]]] = field(default_factory=dict)

    def _is_new(self, cause: Cause) -> bool:
        place = (cause.span.start, cause.span.end)
        if place in self.causes:
            return False
        self.causes.add(place)
        return True

    def rows(self, name: str, known: Knowledge) -> None:
        cause = known.visibility.cause
        if known.path is not Path.VERSIONED or cause is None or not self._is_new(cause):
            return
        self.diagnostics.report(
            codes.ROWS_VERSIONED,
            cause.span,
            f"rows of `{name}` may vanish and come back",
            cause.why,
            help=_wait(known) or cause.help,
        )

    def columns(self, name: str, schema: typed.Schema, known: Knowledge) -> None:
        for declared, column in zip(schema.columns, known.columns, strict=True):
            cause = column.cause
            if column.kind is not Kind.VERSIONED or cause is None or declared.hidden:
                continue
            # That an average moves both ways is no surprise; that something else does may be.
            if column.domain == "average" or cause.is_average or not self._is_new(cause):
                continue
            self.diagnostics.report(
                codes.COLUMN_VERSIONED,
                cause.span,
                f"`{declared.name}` of `{name}` may be replaced by any other value",
                cause.why,
                help=cause.help or _wait(known),
            )

    def state(self, name: str, relation: typed.RelationTree, of: Lookup) -> None:
        grown = self.grown.setdefault(name, [])
        culprit: tuple[typed.RelationTree, StateBound] | None = None
        for node in operators_of(relation):
            if isinstance(node, typed.ViewScan):
                grown.extend(self.grown.get(node.view, ()))
            bound = of(node).state
            if bound.growth is not Growth.UNBOUNDED or _only_copies(node):
                continue
            names = frozenset(bound.grows_with) or _EVERY_EVENT
            if not any(names <= known for known in grown):
                culprit = culprit or (node, bound)
                grown.append(names)
        if culprit is not None:
            node, bound = culprit
            self.diagnostics.report(
                codes.STATE_GROWS,
                node.span,
                f"the state of `{name}` can grow without end",
                f"keeps {bound.growing or bound.words}",
                help=_bound_help(node),
            )


def _wait(known: Knowledge) -> str | None:
    if known.finality.can_happen:
        return f"subscribe with `emit final` to see each row once: {known.finality.words}"
    return None


def _only_copies(node: typed.RelationTree) -> bool:
    """Operators that hold no more than what they were sent; whoever sends it is to blame."""
    match node:
        case typed.WhereNode() | typed.ExtendNode() | typed.RenameNode():
            return True
        case typed.ProjectNode():
            return not node.drops_key
        case typed.WindowNode():
            return node.shape != "session"
        case _:
            return False


def _bound_help(node: typed.RelationTree) -> str:
    match node:
        case typed.JoinNode() | typed.AsofNode() | typed.MatchingNode() | typed.MinusNode():
            return "compare event times too (`R.ts between ...`), join on columns with a range, or `retain` the streams"
        case _:
            return "group by a window of event time or by columns with a range, or `retain` the streams for a while"


def _subscription(
    subscription: typed.Subscription, schema: typed.Schema, known: Knowledge, diagnostics: Diagnostics
) -> None:
    if subscription.emit == "final" and not known.finality.can_happen:
        diagnostics.report(
            codes.NEVER_FINAL,
            subscription.span,
            f"`{subscription.name}` waits for rows of `{subscription.view}` to become final, but none ever does",
            known.finality.words.removeprefix("never: "),
            help="use `emit changes`, or group by a window of event time so that groups close",
        )
    if subscription.emit == "bounds":
        shown = [
            (declared.name, column)
            for declared, column in zip(schema.columns, known.columns, strict=True)
            if not declared.hidden and not column.is_stable
        ]
        unbounded = [name for name, column in shown if _has_no_bounds(column)]
        if unbounded:
            diagnostics.report(
                codes.BOUNDS_OPEN,
                subscription.span,
                f"`emit bounds` cannot say how far {listed(unbounded)} may still go",
                "nothing limits what one event can change",
                help="declare a range such as `int[0..1000]` for the column it is computed from",
            )


def _has_no_bounds(column: ColumnKnowledge) -> bool:
    return column.open_ended or column.kind in (Kind.VERSIONED, Kind.DOM)
