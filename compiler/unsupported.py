"""What is correct MPL but cannot run yet: refused with a code and a place, never ignored.

Called between building the graph and optimising it, while every operator still stands where the user wrote it. When
something starts to run, its case in `_refusal` goes, together with its code and its page in docs/errors/.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from compiler import codes
from compiler.expressions import parts_of
from compiler.graph import TransformGraph
from mpl.diagnostic import Code, Diagnostic, Diagnostics
from mpl.source import Span
from mpl.typed import (
    AggregateNode,
    Expr,
    ExtendNode,
    JoinNode,
    MatchingNode,
    PythonCall,
    RelationTree,
    TopNode,
    WhereNode,
    WindowNode,
)


@dataclass(frozen=True)
class _Refusal:
    code: Code
    message: str
    label: str
    help: str


def refuse_unsupported(graph: TransformGraph, python_modules: Collection[str] = ()) -> tuple[Diagnostic, ...]:
    """One diagnostic for each thing that does not run, in source order. `python_modules` may be called."""
    found = Diagnostics()
    for transform in graph.nodes.values():
        refusal = _refusal(transform.node)
        if refusal is not None:
            span = transform.origins[0]
            found.report(refusal.code, span, refusal.message, refusal.label, help=refusal.help)
        for span, module in _python_calls(transform.node):
            if module not in python_modules:
                found.report(
                    codes.PYTHON_NOT_ALLOWED,
                    span,
                    f"Python functions of the module `{module}` are not allowed here",
                    "calls Python",
                    help="allow the module where the program runs, or write the function in MPL",
                )
    return tuple(found)


def _refusal(node: RelationTree) -> _Refusal | None:
    match node:
        case WindowNode():
            return _Refusal(
                codes.WINDOW_UNSUPPORTED,
                f"`{node.shape}` windows do not run yet",
                "can be checked, but not run",
                "group by a computed time instead: `extend slot := truncate(at, 1 min)`",
            )
        case _:
            return None


def _python_calls(node: RelationTree) -> Iterator[tuple[Span, str]]:
    for expr in expressions_of(node):
        for part in parts_of(expr):
            if isinstance(part, PythonCall):
                yield part.span, part.module


def expressions_of(node: RelationTree) -> Iterator[Expr]:
    """Every scalar expression that an operator evaluates."""
    match node:
        case WhereNode():
            yield node.predicate
        case ExtendNode():
            yield from node.values
        case TopNode():
            yield from (key.value for key in node.ordering)
        case AggregateNode():
            for item in node.items:
                yield from (part for part in (item.argument, item.where) if part is not None)
        case JoinNode() | MatchingNode() if node.rest is not None:
            yield node.rest
        case _:
            pass
