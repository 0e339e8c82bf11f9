"""The generated functions of one component: written first, then loaded together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps

from compiler.codegen.module import NO_PYTHON, Function, Module
from compiler.plan.layout import Layout
from mpl.failures import EvaluationError
from mpl.functions.library import AVERAGE
from mpl.typed import Expr, Schema
from mpl.types import IntType, Type, Value
from runtime.operators.errors import NoValue


@dataclass(frozen=True)
class Side:
    """One input as functions see it: its columns, and where they live."""

    layout: Layout
    schema: Schema
    averages: Mapping[int, Type]
    """For columns kept as (sum, count): the type of the sum."""


class Functions:
    """Writes functions over the columns of one or two inputs, the left's first."""

    def __init__(self, module: Module, sides: Sequence[Side], python: Mapping[tuple[str, str], Function]) -> None:
        self._module = module
        self._python = python or NO_PYTHON
        self._columns: dict[int, str] = {}
        self._width = 0
        self._names = [column.name for side in sides for column in side.layout.relation.columns]
        for side in sides:
            self._add_side(side)

    def _add_side(self, side: Side) -> None:
        start = len(self._columns)
        for position, cell in enumerate(side.layout.cells):
            numbers = [f"c{self._width + number}" for number in cell.columns]
            match cell.form:
                case "plain":
                    text = numbers[0]
                case "difference":
                    text = f"({numbers[0]} - {numbers[1]})"
                case "average":
                    types = (side.averages[position], IntType())
                    result = side.schema.columns[position].type
                    function = self._module.constants.function(AVERAGE, types, result)
                    text = f"{function}({', '.join(numbers)})"
            self._columns[start + position] = text
        self._width += side.layout.relation.width

    def value(self, expr: Expr) -> str:
        """The name of a function that computes `expr`."""
        return self._module.add("value", expr, self._columns, self._width)

    def condition(self, expr: Expr) -> str:
        """The name of a function that says whether `expr` is true; null counts as false."""
        return self._module.add("condition", expr, self._columns, self._width, is_condition=True)

    def load(self) -> dict[str, Function]:
        if not self._module.functions:
            return {}
        loaded = self._module.load(self._python)
        return {
            name: _naming_the_row(function, self._module.component, self._names) for name, function in loaded.items()
        }


def _naming_the_row(function: Function, relation: str, names: Sequence[str]) -> Function:
    """The runtime knows failures of operators, not of expressions: say which row has no value."""

    @wraps(function)
    def checked(*row: Value) -> Value:
        try:
            value: Value = function(*row)
        except EvaluationError as failure:
            shown = ", ".join(f"{name}={part!r}" for name, part in zip(names, row, strict=True))
            raise NoValue(relation, f"row ({shown}): {failure.message}", failure.code.value) from failure
        return value

    return checked
