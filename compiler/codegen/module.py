"""The expressions of one component and the tables that they need: what its generated loop is made of.

Constants, library functions and Python functions are reached through tables, so that nothing of a user's text is in the
code. The loop itself is printed by `runtime/loops/`, from a template in `codegen_templates/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

from compiler.codegen.scalars import Constants, ScalarWriter
from mpl.evaluate import is_value_of
from mpl.failures import EvaluationError, Failure
from mpl.functions.library import bound_function
from mpl.typed import Expr
from mpl.types import Type, Value
from runtime.loops.scalar import Guard, Inline, Scalar, Tables

Function = Callable[..., Any]
NO_PYTHON: Mapping[tuple[str, str], Function] = MappingProxyType({})


@dataclass
class Module:
    """What a component's loop will contain. `origin` is a place (`tickets.mpl:12`)."""

    component: str
    operator: str
    origin: str
    constants: Constants = field(default_factory=Constants)
    expressions: dict[str, Inline] = field(default_factory=dict)

    def add(self, role: str, expr: Expr, columns: Mapping[int, str], *, is_condition: bool = False) -> str:
        """Write `expr` over these columns; returns its name."""
        number = len(self.expressions)
        writer = ScalarWriter(self.constants, columns, f"v{number}_")
        result = writer.truth(expr) if is_condition else writer.value(expr)
        name = f"{role}_{number}"
        nullable = expr.nullable and not is_condition
        self.expressions[name] = Inline.of(writer.lines, result, nullable=nullable)
        return name

    def said(self) -> list[object]:
        """Plain data that is the same if and only if the expressions do the same: what digests are made of."""
        constants = self.constants
        return [
            [[name, list(one.lines), one.result] for name, one in self.expressions.items()],
            [repr(value) for value in constants.values],
            [[name, [str(one) for one in arguments], str(result)] for name, arguments, result in constants.functions],
            [str(one) for one in constants.python],
        ]

    def load(
        self, python: Mapping[tuple[str, str], Function] = NO_PYTHON, guard: Guard | None = None
    ) -> dict[str, Scalar]:
        """All expressions written so far, by name, with what they need."""
        tables = Tables(
            tuple(self.constants.values),
            tuple(bound_function(*wanted) for wanted in self.constants.functions),
            tuple(_python_function(wanted, python) for wanted in self.constants.python),
            overflow,
            guard,
        )
        return {name: Scalar(name, inline, tables) for name, inline in self.expressions.items()}


def overflow(type: str) -> NoReturn:
    raise EvaluationError(Failure.OVERFLOW, f"the result is too large for {type}")


def _python_function(wanted: tuple[str, str, Type, bool], python: Mapping[tuple[str, str], Function]) -> Function:
    """A declared Python function that checks what it is given back."""
    module, name, result_type, nullable = wanted
    function = python.get((module, name))

    def call(*values: Value) -> Value:
        if function is None:
            raise EvaluationError(Failure.PYTHON, f"the Python function {module}:{name} is not allowed here")
        try:
            result: Value = function(*values)
        except Exception as error:
            raise EvaluationError(Failure.PYTHON, f"{module}:{name} raised {error!r}") from error
        if not (nullable if result is None else is_value_of(result, result_type)):
            raise EvaluationError(Failure.PYTHON, f"{module}:{name} did not return {result_type}")
        return result

    return call
