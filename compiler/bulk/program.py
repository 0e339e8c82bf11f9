"""The bulk program of one view: text of a function from the frames of its streams and tables to the view's frame.

Made from the graph as the user wrote it, before any pass: a mistake in an optimisation cannot be in both the live view
and the recomputation that verifies it. The text contains no word of the user's, and its syntax tree is walked against
an allow-list before it is compiled.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.bulk.expressions import Constants
from compiler.bulk.relations import RelationWriter
from compiler.codegen.comments import comment_text
from compiler.graph.build import graph_of
from compiler.graph.transform import TransformGraph, operator_word
from mpl.typed import Schema, TypedProgram
from mpl.types import Value
from runtime.loops.code import environment
from runtime.loops.safety import UnsafeCode

Bulk = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    name: str
    operator: str
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Input:
    name: str
    constant: str


@dataclass(frozen=True)
class BulkProgram:
    """`sources` are the streams and tables that the view reads, `schema` is that of the frame it makes."""

    view: str
    sources: tuple[str, ...]
    schema: Schema
    text: str
    constants: tuple[Value, ...]

    def load(self) -> Bulk:
        return load_bulk(self.text, self.view)


class ProgramWriter:
    """Steps of one bulk program: each makes a frame from others, and has a name."""

    def __init__(self, graph: TransformGraph) -> None:
        self.graph = graph
        self.constants = Constants()
        self.relations = RelationWriter(self.constants)
        self._frames: dict[str, str] = {}
        self._inputs: list[Input] = []
        self._steps: list[Step] = []

    @property
    def sources(self) -> tuple[str, ...]:
        """The streams and tables that are read."""
        return tuple(name for name in self._frames if name not in self.graph.nodes)

    def relation(self, id: str) -> str:
        """The frame of a transform, stream or table: columns c0, c1, ... in the order of its schema."""
        for name in _needed(self.graph, id):
            if name in self._frames:
                continue
            transform = self.graph.nodes.get(name)
            if transform is None:
                self._frames[name] = f"s{len(self._inputs)}"
                self._inputs.append(Input(self._frames[name], self.constants.add(name)))
            else:
                calls = self.relations.frame(transform.node, [self._frames[source] for source in transform.inputs])
                self._frames[name] = self.step(operator_word(transform.node), calls)
        return self._frames[id]

    def step(self, word: str, calls: Sequence[str]) -> str:
        """One more frame; its name."""
        name = f"r{len(self._steps)}"
        self._steps.append(Step(name, word, tuple(calls)))
        return name

    def text(self, origin: str, title: str, result: str) -> str:
        body = repr((self._inputs, self._steps, self.constants.values))
        return (
            environment()
            .get_template("bulk_view.py.j2")
            .render(
                origin=comment_text(origin),
                view=comment_text(title),
                digest=hashlib.sha256(body.encode()).hexdigest()[:16],
                inputs=self._inputs,
                steps=self._steps,
                result=result,
            )
        )


def bulk_program(program: TypedProgram, view: str, graph: TransformGraph | None = None) -> BulkProgram:
    """`NotInBulk` if Spark cannot compute it the same way."""
    graph = graph or graph_of(program)
    output = graph.outputs[view]
    writer = ProgramWriter(graph)
    text = writer.text(str(output.span), view, writer.relation(output.id))
    return BulkProgram(view, writer.sources, output.schema, text, tuple(writer.constants.values))


def load_bulk(text: str, name: str) -> Bulk:
    """The function `bulk(sources, F, X, Window, K)`; the caller has Spark, this module has not."""
    code = compile(_checked(text), f"<bulk {comment_text(name)}>", "exec")
    names: dict[str, Any] = {"__builtins__": {}}
    exec(code, names)  # noqa: S102  the tree was checked against the list of what the template can make
    return names["bulk"]  # type: ignore[no-any-return]


def _needed(graph: TransformGraph, id: str) -> list[str]:
    """This transform and all that it reads, each after its inputs; streams and tables among them."""
    wanted = {id}
    for name in reversed(list(graph.nodes)):
        if name in wanted:
            wanted.update(graph.nodes[name].inputs)
    bases = [name for name in sorted(wanted) if name not in graph.nodes]
    return [*bases, *(name for name in graph.nodes if name in wanted)]


# --- safety -----------------------------------------------------------------------------------------------------------

_NODES: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.Name, ast.Load, ast.Store),
        *(ast.Constant, ast.Subscript, ast.Call, ast.Attribute, ast.List),
        *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.BitAnd, ast.BitOr),
        *(ast.UnaryOp, ast.USub, ast.Invert),
        *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    )
)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}|[FXKW]|Window|WIDE|DAY_US|partitionBy|orderBy|groupBy|unionAll|rowNumber")
_CAMEL = frozenset(("isNull", "isNotNull", "eqNullSafe", "withColumn", "dropDuplicates"))
_TEXT = re.compile(r"[a-z%*][A-Za-z0-9_%*]{0,20}|[-: .]|")


def _checked(text: str) -> ast.Module:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if type(node) not in _NODES:
            raise UnsafeCode(f"{type(node).__name__} at line {getattr(node, 'lineno', '?')}")
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.Attribute(attr=name):
                if "__" in name or not (_NAME.fullmatch(name) or name in _CAMEL):
                    raise UnsafeCode(f"name {name!r}")
            case ast.Constant(value=str(value)):
                if not _TEXT.fullmatch(value):
                    raise UnsafeCode(f"text {value!r}")
            case ast.Call(keywords=keywords) if keywords:
                raise UnsafeCode(f"call at line {node.lineno}")
            case _:
                pass
    return tree
