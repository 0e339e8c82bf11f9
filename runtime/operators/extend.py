"""Extend: the input row and further columns computed from it.

Domain: that of each function's result, which the checker derives from its arguments; knowledge, gap and curiosity: as
the input's. A row is final when the arguments are. Quench: none of its own.

Functions are of all columns of the input row. An invisible row may lack values that were never known, so only final
columns are computed for it: somebody downstream may find its group by them. If that fails the row was never visible
here, so nobody looks for it; it has nulls, and only what is visible can stop a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.loops.scalar import Inline, Scalar, inlined
from runtime.operators.errors import INT_MAX, INT_MIN, Overflow
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.row_operator import RowOperator, Table, names_of
from runtime.plan import ColumnKind, OperatorSpec, PlanError, Relation
from runtime.values import Value

Function = Callable[..., Value]


@dataclass(frozen=True)
class _Added:
    """`always`: computed for invisible rows too."""

    number: int
    value: Inline
    always: bool


@dataclass(frozen=True)
class _Loop:
    is_event: bool
    may_fail: bool
    added: tuple[_Added, ...]
    read: tuple[int, ...]
    """Columns that the functions need."""
    columns: tuple[int, ...]
    key: tuple[str, ...]
    values: tuple[str, ...]
    made: str
    """The names of the further columns, and where they come from if they were computed before."""
    sources: str
    table: Table


@dataclass(frozen=True, slots=True)
class ExtendSpec(OperatorSpec):
    """One function for each column that the output has beyond the input's."""

    functions: tuple[Function, ...]

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        columns = tuple(range(inputs[0].width))
        texts, tables = inlined(self.functions, inputs[0].width)
        if not any(isinstance(function, Scalar) for function in self.functions):
            tables = replace(tables, python=tuple(_checked(output, function) for function in self.functions))
        kinds = [column.kind for column in output.columns[inputs[0].width :]]
        added = tuple(
            _Added(number, text, output.is_event or kind is ColumnKind.FINAL)
            for number, (text, kind) in enumerate(zip(texts, kinds, strict=True))
            if text is not None
        )
        made = tuple(f"x{one.number}" for one in added)
        loop = _Loop(
            output.is_event,
            any(one.value.may_fail or (one.always and _may_lack(inputs[0], one.value)) for one in added),
            added,
            tuple(sorted({number for one in added for number in one.value.columns})),
            columns,
            names_of(columns[: output.key_width]),
            (*names_of(columns[output.key_width :]), *made),
            ", ".join(made),
            ", ".join(f"more[{one.number}]" for one in added),
            Table.of(output),
        )
        return Code("extend.py.j2", loop, tables)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        if inputs[0].width + len(self.functions) != output.width or inputs[0].key_width != output.key_width:
            raise PlanError(f"{output.name}: is not {inputs[0].name} and {len(self.functions)} columns more")
        code = self.code(inputs, output)
        count = len(self.functions)
        return EventExtend(code, count, inputs, output) if output.is_event else Extend(code, count, inputs, output)


class EventExtend(EventOperator):
    """Events with further columns."""

    def __init__(self, code: Code, count: int, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._compute = code.load()["compute"]
        self._count = count

    def map(self, edge: int, batch: Batch) -> Batch:
        made: tuple[list[Value], ...] = tuple([] for _ in range(self._count))
        self._compute(batch.columns, batch.visible, *(column.append for column in made))
        return Batch((*batch.columns, *made), batch.max_ticks, batch.visible, batch.lineages)


class Extend(RowOperator):
    """State rows with further columns."""

    def __init__(self, code: Code, count: int, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        functions = code.load()
        self._apply = functions["apply"]
        self._compute = functions.get("compute")
        self._count = count

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        if self._compute is None:
            self._apply(batch.columns, batch.visible, batch.max_ticks, self.table(), touched.append)
            return touched
        made = self._computed(batch)
        self._apply(batch.columns, batch.visible, batch.max_ticks, made, self.table(), touched.append)
        return touched

    def _computed(self, batch: Batch) -> tuple[list[Value], ...]:
        """The further columns, of all rows at once unless that fails: then each invisible one on its own."""
        try:
            return self._run(batch)
        except Exception:
            if all(batch.visible):
                raise
        made: tuple[list[Value], ...] = tuple([] for _ in range(self._count))
        for i, visible in enumerate(batch.visible):
            try:
                row: Sequence[Sequence[Value]] = self._run(batch.take([i]))
            except Exception:
                if visible:
                    raise
                row = [[None]] * self._count
            for column, values in zip(made, row, strict=True):
                column.extend(values)
        return made

    def _run(self, batch: Batch) -> tuple[list[Value], ...]:
        assert self._compute is not None
        made: tuple[list[Value], ...] = tuple([] for _ in range(self._count))
        self._compute(batch.columns, batch.visible, *(column.append for column in made))
        return made


def _may_lack(relation: Relation, value: Inline) -> bool:
    """May an invisible row have null where the expression wants a value?"""
    return not relation.is_event and any(relation.columns[number].nullable for number in value.columns)


def _checked(relation: Relation, function: Function) -> Function:
    """What the compiler writes checks itself; a function written by hand may leave the 64 bits."""

    def checked(*row: Value) -> Value:
        value = function(*row)
        if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
            raise Overflow(relation.name, f"a computed column has the value {value}")
        return value

    return checked
