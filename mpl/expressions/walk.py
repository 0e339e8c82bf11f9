"""Walks over expressions, syntax and typed, without recursion: depth is the user's to choose.

`measure` is what the limits are checked with; it counts shared parts as often as they occur, without visiting them
more than once.
"""

from __future__ import annotations

from mpl import nodes
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Const() | ColumnRef():
            return ()
        case Apply() | PythonCall():
            return expr.arguments
        case CaseOf():
            return (*(part for branch in expr.branches for part in branch), expr.otherwise)


def measure(expr: Expr) -> tuple[int, int]:
    """(number of nodes, depth) of the expression as a tree."""
    known: dict[int, tuple[int, int]] = {}
    waiting: list[tuple[Expr, bool]] = [(expr, False)]
    while waiting:
        node, ready = waiting.pop()
        if id(node) in known:
            continue
        parts = children(node)
        if parts and not ready:
            waiting.append((node, True))
            waiting.extend((part, False) for part in parts)
            continue
        sizes = [known[id(part)] for part in parts]
        known[id(node)] = (
            1 + sum(size for size, _ in sizes),
            1 + max((depth for _, depth in sizes), default=0),
        )
    return known[id(expr)]


def calls_in(expr: nodes.Expr) -> tuple[nodes.Call, ...]:
    """All calls in an expression as written."""
    found: list[nodes.Call] = []
    waiting: list[nodes.Expr] = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Call):
            found.append(node)
        waiting.extend(written_children(node))
    return tuple(found)


def written_children(node: nodes.Expr) -> tuple[nodes.Expr, ...]:
    match node:
        case nodes.Negate() | nodes.Not() | nodes.IsNull() | nodes.Cast():
            return (node.operand,)
        case nodes.Arithmetic():
            return (node.first, *(operand for _, operand in node.rest))
        case nodes.Compare():
            return (node.left, node.right)
        case nodes.Logical():
            return node.operands
        case nodes.InList():
            return (node.operand, *node.items)
        case nodes.Between():
            return (node.operand, node.low, node.high)
        case nodes.Like():
            return (node.operand, node.pattern)
        case nodes.Case():
            parts = tuple(part for branch in node.branches for part in branch)
            return (*parts, node.otherwise) if node.otherwise else parts
        case nodes.Call():
            return node.arguments
        case _:
            return ()
