"""What a keyed star consists of, between recognising it and printing it. Frozen facts, and texts of our own making.

Locals of the generated code: `q0` the key's columns, `h0` whether a part has anything for the key, `s0` the state's
columns (`o0` before the event), `c0` columns of an event, `k0` and `x0` constants, `v1`, `e1`, `a1_1` what is computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from compiler.plan.layout import Form
from mpl.typed import AggregateItem, Expr, RelationTree
from runtime.kernels.spec import ROW_COLUMNS, StateColumn

ItemKind = Literal["sum", "rising_sum", "signed_sum", "count", "average", "rising_average", "min", "max"]


@dataclass(frozen=True)
class Cell:
    """A column of a relation inside the star: the locals that hold it."""

    form: Form
    locals: tuple[str, ...]

    @property
    def text(self) -> str | None:
        """The value itself, as an expression; None for an average, which is a quotient with a rule for rounding."""
        match self.form:
            case "plain":
                return self.locals[0]
            case "difference":
                return f"({self.locals[0]} - {self.locals[1]})"
            case "average":
                return None


@dataclass(frozen=True)
class Feed:
    """One way from a stream to a part: the operators on events in between, the stream's side first.

    `key` are the positions of the star's key in what comes out of them.
    """

    stream: str
    chain: tuple[RelationTree, ...]
    key: tuple[int, ...]


@dataclass
class Part:
    """State that events change directly: the aggregates of a group, or the row of a unique key.

    `id`: the transform; `source`: the events that it groups, or is. `columns`: for each column in use, the numbers of
    its state columns.
    """

    number: int
    id: str
    source: str
    feeds: tuple[Feed, ...]
    items: tuple[AggregateItem, ...] | None  # None: a row
    columns: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def is_row(self) -> bool:
        return self.items is None

    @property
    def flag(self) -> str:
        return f"h{self.number}"


@dataclass(frozen=True)
class Update:
    """What one event does to one aggregate or column of a row. `lines` compute `value`, and run if `condition`."""

    kind: ItemKind | Literal["store"]
    states: tuple[int, ...]
    value: str = ""
    lines: tuple[str, ...] = ()
    condition: str = ""
    condition_lines: tuple[str, ...] = ()
    reason: int = 0


@dataclass(frozen=True)
class FedPart:
    """One part as one in-edge changes it. `condition`: the local that says whether the event belongs to it."""

    number: int
    condition: str
    updates: tuple[Update, ...]


@dataclass(frozen=True)
class Edge:
    """The loop of one in-edge. `lines` come before the key is looked up: columns, filters, computed columns.

    `wanted`: what some part needs of the stream's events; None: all of them.
    """

    number: int
    stream: str
    columns: tuple[int, ...]
    lines: tuple[str, ...]
    key: tuple[str, ...]
    parts: tuple[FedPart, ...]
    wanted: Expr | None

    @property
    def changed_states(self) -> tuple[int, ...]:
        return tuple(sorted({n for part in self.parts for update in part.updates for n in update.states}))

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must hold for one part at least; none if some part takes every event."""
        found = tuple(part.condition for part in self.parts)
        return found if all(found) else ()


@dataclass(frozen=True)
class Computed:
    """An output column that is stored because it is neither key nor state. `is_final`: known before it is shown."""

    local: str
    is_final: bool


@dataclass(frozen=True)
class Star:
    """Everything the template prints, beside the spec's arrays. `watched`: state columns that are shown as they are.

    `recorded`: the locals that each change records. `present`, `shown`: expressions.
    """

    edges: tuple[Edge, ...]
    flags: tuple[str, ...]
    state: tuple[StateColumn, ...]
    lines: tuple[str, ...]
    present: str
    shown: str
    computed: tuple[Computed, ...]
    watched: tuple[int, ...]
    recorded: tuple[str, ...]
    can_die: bool
    is_versioned: bool
    touches_always: bool

    def loaded_flags(self, edge: Edge) -> list[int]:
        """Parts whose flag the loop of an edge reads. Machine code with bounds checks loads whatever it is told to."""
        extremes = {part.number for part in edge.parts for one in part.updates if one.kind in ("min", "max")}
        return sorted(extremes.union(self.read_flags))

    def loaded_states(self, edge: Edge) -> list[int]:
        return sorted({*edge.changed_states}.union(self.read_states))

    @property
    def read_flags(self) -> list[int]:
        """Parts whose flag the row depends on."""
        return self._read("h")

    @property
    def read_states(self) -> list[int]:
        return self._read("s")

    @property
    def read_keys(self) -> list[int]:
        return self._read("q")

    def undone(self, edge: Edge) -> tuple[str, ...]:
        """The arrays by slot that the loop of an edge can change."""
        return (
            *(f"has_{part.number}" for part in edge.parts),
            *(f"state_{number}" for number in edge.changed_states),
            *(f"computed_{number}" for number in range(len(self.computed))),
            *ROW_COLUMNS,
        )

    def _read(self, letter: str) -> list[int]:
        texts = (*self.lines, self.present, self.shown, *self.recorded, *(column.local for column in self.computed))
        return sorted({int(name[1:]) for text in texts for name in re.findall(rf"\b{letter}\d+\b", text)})
