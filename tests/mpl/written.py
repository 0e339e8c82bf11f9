"""Checks and evaluates expressions written as text, without the relation checker: for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mpl import nodes
from mpl.declared_types import declared_bounds, declared_type
from mpl.diagnostic import Diagnostic, Diagnostics
from mpl.evaluate import evaluate
from mpl.expressions import FunctionTable, check_expression, check_predicate
from mpl.parser import parse
from mpl.scope import Scope
from mpl.source import Source
from mpl.typed import Column, Expr, Schema
from mpl.types import OPEN, Value


class Written:
    """One expression over declared columns, with declared functions before it."""

    def __init__(
        self, text: str, columns: str = "nothing int", functions: str = "", *, predicate: bool = False
    ) -> None:
        source = Source("t.mpl", f"{functions} stream S ({columns}); view V = from S |> extend x := {text};")
        self._diagnostics = Diagnostics()
        program = parse(source, self._diagnostics)
        table = FunctionTable()
        self.expr: Expr | None = None
        for statement in program.statements:
            if isinstance(statement, nodes.FunctionDecl):
                table.declare(statement, self._diagnostics)
        table.resolve(self._diagnostics)
        if self._diagnostics.has_errors:
            return
        stream, view = program.statements[-2:]
        assert isinstance(stream, nodes.StreamDecl)
        assert isinstance(view, nodes.ViewDecl)
        operator = view.relation.operators[0]
        assert isinstance(operator, nodes.Extend)
        check = check_predicate if predicate else check_expression
        self.expr = check(operator.definitions[0].value, self._scope(stream), table, self._diagnostics)

    def _scope(self, stream: nodes.StreamDecl) -> Scope:
        columns = []
        for decl in stream.columns:
            shape = declared_type(decl.type, self._diagnostics)
            bounds = declared_bounds(decl.range, shape, self._diagnostics) if decl.range else OPEN
            columns.append(Column(decl.name.text, shape, decl.nullable, bounds))
        return Scope.of_schema(Schema(columns=tuple(columns), key=()), None)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return list(self._diagnostics)

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code.name for diagnostic in self._diagnostics]

    @property
    def typed(self) -> Expr:
        """The expression; there must be no error."""
        assert self.expr is not None
        assert not self._diagnostics.has_errors, [f"{d.code.name}: {d.message}" for d in self._diagnostics]
        return self.expr

    def value(self, *row: Value) -> Value:
        return evaluate(self.typed, row)


@lru_cache(maxsize=1000)
def written(text: str, columns: str = "nothing int", functions: str = "") -> Written:
    """As `Written`, kept for the next example of a property."""
    return Written(text, columns, functions)


def value_of(text: str, columns: str = "nothing int", row: Sequence[Value] = (0,)) -> Value:
    return written(text, columns).value(*row)


def type_of(text: str, columns: str = "nothing int") -> str:
    """The type as written, with ` null` when it may be null."""
    expr = written(text, columns).typed
    return f"{expr.type}{' null' if expr.nullable else ''}"
