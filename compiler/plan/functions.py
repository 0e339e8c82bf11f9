"""The expressions of one component: written first, then loaded together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from compiler.codegen.module import NO_PYTHON, Function, Module
from compiler.plan.layout import Layout
from mpl.failures import EvaluationError
from mpl.functions.library import AVERAGE
from mpl.typed import Expr, Schema
from mpl.types import IntType, Type, Value
from runtime.loops.scalar import Scalar
from runtime.operators.errors import NoValue
from runtime.plan import Column
from runtime.shown import shown_row


@dataclass(frozen=True)
class Side:
    """One input as functions see it: its columns, and where they live."""

    layout: Layout
    schema: Schema
    averages: Mapping[int, Type]
    """For columns kept as (sum, count): the type of the sum."""


class Functions:
    """Writes expressions over the columns of one or two inputs, the left's first."""

    def __init__(self, module: Module, sides: Sequence[Side], python: Mapping[tuple[str, str], Function]) -> None:
        self._module = module
        self._python = python or NO_PYTHON
        self._columns: dict[int, str] = {}
        self._width = 0
        self._inputs = [column for side in sides for column in side.layout.relation.columns]
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
        """The name of an expression that computes `expr`."""
        return self._module.add("value", expr, self._columns)

    def condition(self, expr: Expr) -> str:
        """The name of an expression that says whether `expr` is true; null counts as false."""
        return self._module.add("condition", expr, self._columns, is_condition=True)

    def load(self) -> dict[str, Scalar]:
        def guard(loop: Function) -> Function:
            return _naming_the_row(loop, self._module.component, self._inputs)

        return self._module.load(self._python, guard)


def _naming_the_row(loop: Function, relation: str, columns: Sequence[Column]) -> Function:
    """The runtime knows failures of operators, not of expressions: say which row has no value."""

    @wraps(loop)
    def checked(*arguments: Any) -> Any:
        try:
            return loop(*arguments)
        except EvaluationError as failure:
            row = _row_of(failure, loop)
            known = sorted(number for number in row if number < len(columns))
            shown = shown_row([columns[number] for number in known], [row[number] for number in known])
            raise NoValue(relation, f"row ({shown}): {failure.message}", failure.code.value) from failure

    return checked


def _row_of(failure: EvaluationError, loop: Function) -> dict[int, Value]:
    """The row at which a loop failed: its local variables c0, c1, ... at that moment. Free while all is well."""
    place = failure.__traceback__
    while place is not None and place.tb_frame.f_code is not loop.__code__:
        place = place.tb_next
    found = {} if place is None else place.tb_frame.f_locals
    return {int(name[1:]): value for name, value in found.items() if name[:1] == "c" and name[1:].isdigit()}
