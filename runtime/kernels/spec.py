"""What the runtime is told about one kernel: its functions and which arrays they work on.

Made by the compiler. The order of `KernelSpec.arguments` is the order of the parameters of every generated function,
between the input columns and `meta`; the template prints its parameters from the same list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from runtime.operators.operator import EventOperator, Operator
from runtime.plan import OperatorSpec, Relation, ValueType

Function = Callable[..., None]


class Meta:
    """Positions in `meta`, through which a kernel and its wrapper tell each other numbers."""

    COUNT = 0  # slots in use, in and out
    REACHED = 1  # rows reached by the batch
    TOUCHED = 2  # rows touched by the batch
    CHANGES = 3  # entries of the list of changes
    HIDDEN = 4  # how often a row was touched that is not seen then
    BARE = 5  # touched rows without any change
    FAILED_ROW = 6  # number of the row that could not be applied
    FAILED = 7  # 0, or 1 + the number of the reason
    WIDTH = 8


ROW_COLUMNS = ("present", "visible", "dead", "reach_tick", "max_tick")
"""What every slot has: is there a row, is it seen, can it come back; the largest tick that reached the key, and the one
that the row depends on."""


class Where(Enum):
    """Where an output column is found."""

    KEY = "key"
    STATE = "state"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class StateColumn:
    """A column of the state, with what it holds before anything arrived. Whole numbers unless it is FLOAT."""

    type: ValueType
    initial: int | float = 0


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One physical column of the relation. `recorded`: its number among the columns that every change records; None
    if it is the same in all changes of a row."""

    where: Where
    number: int
    type: ValueType
    recorded: int | None = None


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A physical column of an in-edge's batches that the kernel reads."""

    number: int
    type: ValueType


@dataclass(frozen=True, slots=True)
class KernelSpec(OperatorSpec):
    """`functions` are the loops of the module `text`, which `digest` names; `loops` says which one an in-edge uses.
    `undone`: for each loop the arrays by slot that it changes, and that are put back if a batch cannot be applied.

    `integers`, `floats`: the constants table. `texts`: constants that are texts, as (position in `integers`, text);
    their code takes that place. `reasons`: what it means that a row cannot be applied, by number.
    """

    text: str
    digest: str
    functions: tuple[Function, ...]
    loops: tuple[int, ...]
    undone: tuple[tuple[str, ...], ...]
    inputs: tuple[tuple[InputColumn, ...], ...]
    keys: tuple[ValueType, ...]
    parts: int
    state: tuple[StateColumn, ...]
    computed: tuple[ValueType, ...]
    outputs: tuple[OutputColumn, ...]
    integers: tuple[int, ...]
    floats: tuple[float, ...]
    texts: tuple[tuple[int, str], ...]
    reasons: tuple[str, ...]

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        from runtime.kernels.operator import KernelOperator  # it needs this file

        return KernelOperator(self, inputs, output)

    @property
    def arguments(self) -> tuple[tuple[str, str], ...]:
        """(name, element type) of every array that a function gets after its input columns, `meta` excluded."""
        return (
            ("integers", "int64"),
            ("floats", "float64"),
            ("table", "int32"),
            *self.columns,
            ("at", "int64"),
            ("reached", "int64"),
            ("is_touched", "uint8"),
            ("undo_integers", "int64"),
            ("undo_floats", "float64"),
            ("touched", "int64"),
            ("hidden", "int64"),
            ("change_slot", "int64"),
            ("change_visible", "uint8"),
            *((f"change_{number}", element(kind)) for number, kind in enumerate(self.recorded)),
        )

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(name, element type) of every array by slot: keys, then all that a batch can change."""
        return (*((f"key_{number}", "int64") for number in range(len(self.keys))), *self.changing)

    @property
    def changing(self) -> tuple[tuple[str, str], ...]:
        """The arrays by slot that batches change."""
        return (
            *((f"has_{number}", "uint8") for number in range(self.parts)),
            *((f"state_{number}", element(column.type)) for number, column in enumerate(self.state)),
            *((f"computed_{number}", element(kind)) for number, kind in enumerate(self.computed)),
            *((name, "int64" if name.endswith("tick") else "uint8") for name in ROW_COLUMNS),
        )

    @property
    def recorded(self) -> tuple[ValueType, ...]:
        """Types of the columns that every change records."""
        found = {column.recorded: column.type for column in self.outputs if column.recorded is not None}
        return tuple(found[number] for number in range(len(found)))

    def signature(self, loop: int) -> tuple[str, ...]:
        """The types of all parameters of one function, as numba writes them."""
        edge = self.loops.index(loop)
        return (
            "int64",
            "int64",
            *(f"{element(column.type)}[::1]" for column in self.inputs[edge]),
            *(f"{kind}[::1]" for _, kind in self.arguments),
            "int64[::1]",
        )


def element(kind: ValueType) -> str:
    """The element type of an array that holds such values: texts are codes, truth is 0 or 1."""
    return "float64" if kind is ValueType.FLOAT else "int64"
