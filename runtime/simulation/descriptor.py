"""What a simulated graph computes, as plain data: the form that the oracle and the engine's plan are both made from.

`graphs.py` writes descriptors, `oracle.py` interprets them naively, `build.py` turns them into the engine's plan.
Predicates and scalar expressions are nested tuples, e.g. `("less", "v", 4)`; nobody here evaluates them, because
the oracle and the engine must not share the code that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

Predicate = tuple[object, ...]  # ("less" | "at_least" | "equal", column, constant), ("exceeds", column, column), ...
# ("column", name), ("constant", n), ("plus" | "minus" | "times", scalar, scalar), or ("difference", column, column),
# which keeps its two rising parts
Scalar = tuple[object, ...]

TICK = "tick"
PAYLOAD = ("k", "g", "v", "w")  # the columns of every stream: two small keys, a quantity >= 0, a signed quantity


QUANTITY_MAX = 9  # of a published v


@dataclass(frozen=True)
class Stream:
    """A base relation: events keyed by tick."""


@dataclass(frozen=True)
class Merge:
    """All events of several event relations."""


@dataclass(frozen=True)
class Select:
    """The rows for which a predicate holds."""

    predicate: Predicate


@dataclass(frozen=True)
class Project:
    """Fewer value columns; the key is kept."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Distinct:
    """The set of the values of some columns; the key is dropped."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Extend:
    """One more column, computed from the others."""

    column: str
    scalar: Scalar


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a group: sum, signed_sum, count, min, max, avg, count_distinct."""

    function: str
    column: str
    name: str


@dataclass(frozen=True)
class Group:
    """One row for each value of the `by` columns that occurs."""

    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Join:
    """Pairs of rows that agree on columns; `outer` keeps left rows without a partner and shows `defaults` for it."""

    on: tuple[tuple[str, str], ...]
    outer: bool = False
    defaults: tuple[int, ...] = ()


@dataclass(frozen=True)
class Match:
    """Left rows with (or, negated, without) a partner on the right."""

    on: tuple[tuple[str, str], ...]
    negated: bool = False


@dataclass(frozen=True)
class Top:
    """The `limit` rows with the largest value of `order` in each group; equal values: the smaller key first."""

    limit: int
    order: str
    group: tuple[str, ...]


@dataclass(frozen=True)
class Latest:
    """For each value of `by` the event with the highest tick, or with the lowest if `first`."""

    by: tuple[str, ...]
    first: bool = False


@dataclass(frozen=True)
class Union:
    """Rows of several relations of one shape, told apart by the number of the input."""


@dataclass(frozen=True)
class Leaf:
    """A subscriber's copy."""


Operator = Stream | Merge | Select | Project | Distinct | Extend | Group | Join | Match | Top | Latest | Union | Leaf


@dataclass(frozen=True)
class Node:
    """One component: its operator and the components that feed it (one may occur twice)."""

    name: str
    operator: Operator
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Components in an order in which every input comes first."""

    title: str
    nodes: tuple[Node, ...]

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def streams(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if isinstance(node.operator, Stream))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if isinstance(node.operator, Leaf))

    @cached_property
    def consumers(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """For every component the (component, in-edge number) pairs that it feeds."""
        found: dict[str, list[tuple[str, int]]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for edge, source in enumerate(node.inputs):
                found[source].append((node.name, edge))
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def lineages(self) -> dict[str, tuple[str, ...]]:
        """For every component the stream of each lineage: those of edge 0, then those of edge 1, ..."""
        found: dict[str, tuple[str, ...]] = {}
        for node in self.nodes:
            if isinstance(node.operator, Stream):
                found[node.name] = (node.name,)
            else:
                found[node.name] = tuple(stream for source in node.inputs for stream in found[source])
        return found

    def describe(self) -> str:
        """One line for each component, for stories and failure reports."""
        return "\n".join(
            f"  {node.name:6} = {node.operator}" + (f" of {', '.join(node.inputs)}" if node.inputs else "")
            for node in self.nodes
        )


def joined_name(node_name: str, column: str) -> str:
    """The name of a right column in a join: unique, because component names are."""
    return f"{node_name}_{column}"
