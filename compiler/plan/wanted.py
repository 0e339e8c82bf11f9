"""What an edge of events wants of its sender: the selections with which its receiver begins, as a standing quench (E4).

Called where edges are made (`build.py`, `compiler/kernels/fuse.py`). Only what the receiver itself does counts, not
what its readers do: their wishes are not part of what it is, and its checkpoints would outlive them. The name of an
edge has the digest of its condition, so that two deployments that disagree about it have no edge in common: events that
one left out can never pass for silence in the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from compiler.codegen.module import NO_PYTHON, Module
from compiler.expressions import certain_part, column_ref, columns_in, conjunction, may_fail, parts_of, replaced
from compiler.graph.notation import expression_text
from compiler.identity import expression_identity
from compiler.plan.functions import Functions, Side
from mpl.typed import Apply, ColumnRef, Expr, ExtendNode, ProjectNode, RelationTree, Schema, WhereNode
from mpl.types import BoolType
from runtime.loops.scalar import Scalar
from runtime.plan import InEdge

DIGEST_LENGTH = 16
SIZE_MAX = 256
"""Parts of a condition, with what its columns are computed from put in their place; a larger one is no wish."""


class Wish(Scalar):
    """What an edge wants, and how MPL says it."""

    def __init__(self, condition: Scalar, text: str) -> None:
        super().__init__(condition.__name__, condition.inline, condition.tables)
        self.text = text


def edge_name(sender: str, receiver: str, number: int) -> str:
    return f"{sender}->{receiver}#{number}"


def plan_edge(sender: str, side: Side, receiver: str, number: int, wanted: Expr | None) -> InEdge:
    """The edge on which `receiver` reads its input `number`. `wanted` is a condition over the columns of `side`."""
    name = edge_name(sender, receiver, number)
    if wanted is None:
        return InEdge(name, sender)
    module = Module(receiver, "where", str(wanted.span))
    functions = Functions(module, [side], NO_PYTHON)
    written = functions.condition(wanted)
    said = json.dumps(module.said(), ensure_ascii=True)
    digest = hashlib.sha256(said.encode()).hexdigest()[:DIGEST_LENGTH]
    wish = Wish(functions.load()[written], expression_text(wanted, side.schema.columns))
    return InEdge(f"{name}?{digest}", sender, wants=wish)


def wanted_by_chains(chains: Sequence[Sequence[RelationTree]], schema: Schema) -> Expr | None:
    """What a receiver wants that does each of these things to every event: whatever one of them wants."""
    found: dict[object, Expr] = {}
    for chain in chains:
        wanted = _wanted_by_chain(chain, schema)
        if wanted is None:
            return None
        found.setdefault(expression_identity(wanted), wanted)
    parts = tuple(found.values())
    if len(parts) <= 1:
        return parts[0] if parts else None
    nullable = any(part.nullable for part in parts)
    return Apply("or", parts, type=BoolType(), nullable=nullable, span=parts[0].span)


def _wanted_by_chain(chain: Sequence[RelationTree], schema: Schema) -> Expr | None:
    """All conditions up to the first operator that may fail: what fails has to arrive, to be told as a failure."""
    first = chain[0].span if chain else None
    values: list[Expr] = [] if first is None else [column_ref(n, c, first) for n, c in enumerate(schema.columns)]
    wanted: list[Expr] = []
    for node in chain:
        match node:
            case WhereNode():
                certain = certain_part(node.predicate)
                condition = None if certain is None else _in_place(certain, values, schema)
                if condition is not None:
                    wanted.append(condition)
                if condition is None or certain is not node.predicate:
                    break
            case ExtendNode():
                made = [_in_place(value, values, schema) for value in node.values]
                if any(value is None for value in made):
                    break
                values = [*values, *(value for value in made if value is not None)]
            case ProjectNode():
                values = [values[position] for position in node.kept]
            case _:
                pass  # merges and other names: every event, with its columns where they were
    return conjunction(tuple(wanted))


def _in_place(expr: Expr, values: Sequence[Expr], schema: Schema) -> Expr | None:
    """The expression over the stream's own columns; None if it may fail or gets too large."""
    sizes = {position: sum(1 for _ in parts_of(values[position])) for position in columns_in(expr)}
    if sum(sizes[part.index] if isinstance(part, ColumnRef) else 1 for part in parts_of(expr)) > SIZE_MAX:
        return None
    made = replaced(expr, {position: values[position] for position in sizes}, schema)
    return None if may_fail(made) else made
