"""How the values of a simulated relation may move: derived from a descriptor, as the checker derives it from MPL.

`graphs.py` needs it to draw only operators that make sense, `build.py` to tell the engine which rows are versioned,
`checks.py` to know what "C implies D" means for a column. Column kinds: `final`, `rising`, `falling`, `updown` (a
pair of rising numbers), `average` (sum and count), `dominated` (replaced by a later event), `provisional` (a
default until a value is known), `versioned` and `versioned_pair`. Rows: `stays` (once visible, always), `leaves`
(absent, visible, gone), `versioned`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.simulation.descriptor import (
    PAYLOAD,
    TICK,
    Aggregate,
    Distinct,
    Extend,
    Graph,
    Group,
    Join,
    Latest,
    Leaf,
    Match,
    Merge,
    Node,
    Predicate,
    Project,
    Scalar,
    Select,
    Stream,
    Top,
    Union,
    joined_name,
)

PAIRS = ("updown", "average", "versioned_pair")  # two columns in the engine
STRENGTH = ("stays", "leaves", "versioned")  # a row is as weak as the weakest row it is made of


@dataclass(frozen=True)
class Kinds:
    """The columns of a relation and how they, and its rows, may move."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: str
    is_event: bool = False

    def of(self, column: str) -> str:
        return "final" if column in self.keys else self.kinds[self.columns.index(column)]

    @property
    def cells(self) -> tuple[str, ...]:
        """The kind of each column as the engine stores them: pairs are two rising columns."""
        spread: list[str] = []
        for kind in self.kinds:
            if kind in PAIRS:
                spread += ["versioned" if kind == "versioned_pair" else "rising"] * 2
            else:
                spread.append(kind)
        return tuple(spread)

    @property
    def versioned(self) -> bool:
        """Rule section 1: a row is monotone only if its visibility and all of its values are."""
        return self.rows == "versioned" or any(
            kind in ("versioned", "versioned_pair", "provisional") for kind in self.kinds
        )


def kinds_of(graph: Graph) -> dict[str, Kinds]:
    """The kinds of every component."""
    found: dict[str, Kinds] = {}
    for node in graph.nodes:
        found[node.name] = node_kinds(node, [found[source] for source in node.inputs])
    return found


def node_kinds(node: Node, inputs: Sequence[Kinds]) -> Kinds:
    """The kinds of one component, from those of its inputs."""
    match node.operator:
        case Stream():
            return Kinds((TICK,), PAYLOAD, ("final",) * len(PAYLOAD), "stays", is_event=True)
        case Merge():
            return inputs[0]
        case Leaf():
            return replace(inputs[0], is_event=False)
        case Union():
            first = inputs[0]
            kinds = tuple(_weaker(*(side.kinds[i] for side in inputs)) for i in range(len(first.columns)))
            # A union of unions has two such columns: whoever groups by one must mean the same in engine and oracle.
            which = "input" + "_of_input" * sum(key.startswith("input") for key in first.keys)
            return Kinds((which, *first.keys), first.columns, kinds, _weakest(*(side.rows for side in inputs)))
        case Select(predicate):
            rows = _weakest(inputs[0].rows, _predicate_rows(predicate, inputs[0]))
            return replace(inputs[0], rows=rows)
        case Project(columns):
            return Kinds(inputs[0].keys, columns, tuple(inputs[0].of(c) for c in columns), inputs[0].rows)
        case Distinct(columns):
            steady = inputs[0].rows == "stays" and all(inputs[0].of(c) == "final" for c in columns)
            return Kinds(columns, (), (), "stays" if steady else "versioned")
        case Extend(column, scalar):
            kinds = (*inputs[0].kinds, _scalar_kind(scalar, inputs[0]))
            return Kinds(inputs[0].keys, (*inputs[0].columns, column), kinds, inputs[0].rows)
        case Group(by, aggregates):
            return _group_kinds(by, aggregates, inputs[0])
        case Join():
            return _join_kinds(node.name, node.operator, inputs[0], inputs[1])
        case Match(on, negated):
            return _match_kinds(on, negated, inputs[0], inputs[1])
        case Top():
            return replace(inputs[0], rows="leaves" if inputs[0].is_event else "versioned", is_event=False)
        case Latest(by, first):
            columns = tuple(c for c in (*inputs[0].keys, *inputs[0].columns) if c not in by)
            order = "falling" if first else "rising"
            return Kinds(by, columns, tuple(order if c == TICK else "dominated" for c in columns), "stays")


def _weakest(*rows: str) -> str:
    return max(rows, key=STRENGTH.index)


def _weaker(*kinds: str) -> str:
    return kinds[0] if all(kind == kinds[0] for kind in kinds) else "versioned"


def _predicate_rows(predicate: Predicate, kinds: Kinds) -> str:
    comparison, column, _ = predicate
    kind = kinds.of(str(column))
    if kind == "final" and comparison != "exceeds":
        return "stays"
    rises = (kind, comparison) in (("rising", "at_least"), ("falling", "less"))
    falls = (kind, comparison) in (("rising", "less"), ("falling", "at_least"))
    if comparison == "exceeds" or not (rises or falls):
        return "versioned"
    return "stays" if rises else "leaves"


def _scalar_kind(scalar: Scalar, kinds: Kinds) -> str:
    match scalar:
        case ("column", str(column)):
            return kinds.of(column)
        case ("constant", int()):
            return "final"
        case ("plus" | "times", tuple(a), tuple(b)):
            first, second = _scalar_kind(a, kinds), _scalar_kind(b, kinds)
            if second == "final" and first in ("final", "rising", "falling"):
                return first
            return first if first == second and first in ("rising", "falling") else "versioned"
        case ("difference", str(a), str(b)):
            return "updown" if {kinds.of(a), kinds.of(b)} <= {"final", "rising"} else "versioned"
        case ("minus", tuple(a), tuple(b)):
            first, second = _scalar_kind(a, kinds), _scalar_kind(b, kinds)
            return "final" if first == second == "final" else "versioned"
        case _:
            raise AssertionError(scalar)


def _group_kinds(by: tuple[str, ...], aggregates: tuple[Aggregate, ...], source: Kinds) -> Kinds:
    steady = source.rows == "stays" and all(source.of(column) == "final" for column in by)
    kinds = tuple(_aggregate_kind(aggregate, source) for aggregate in aggregates)
    if not steady:
        kinds = tuple("versioned_pair" if kind in PAIRS else "versioned" for kind in kinds)
    return Kinds(by, tuple(aggregate.name for aggregate in aggregates), kinds, "stays" if steady else "versioned")


def _aggregate_kind(aggregate: Aggregate, source: Kinds) -> str:
    if aggregate.function == "count":
        return "rising"
    kind = source.of(aggregate.column)
    of_final = {
        "sum": "rising",
        "signed_sum": "updown",
        "avg": "average",
        "min": "falling",
        "max": "rising",
        "count_distinct": "rising",
    }
    if kind == "final":
        return of_final[aggregate.function]
    if aggregate.function in ("signed_sum", "avg"):
        return "versioned_pair"
    if kind == "rising" and aggregate.function in ("sum", "max"):
        return "rising"
    return "falling" if kind == "falling" and aggregate.function == "min" else "versioned"


def _join_kinds(name: str, join: Join, left: Kinds, right: Kinds) -> Kinds:
    matched = [there for _, there in join.on]
    keys = (*left.keys, *(joined_name(name, c) for c in right.keys if c not in matched))
    rest = [c for c in right.columns if c not in matched]
    columns = (*left.columns, *(joined_name(name, c) for c in rest))
    steady = all(left.of(a) == "final" and right.of(b) == "final" for a, b in join.on)
    rows = left.rows if join.outer else _weakest(left.rows, right.rows)
    if not steady or (join.outer and len(keys) > len(left.keys)):
        rows = "versioned"
    kinds = [right.of(c) for c in rest]
    if join.outer and right.rows != "stays":
        kinds = ["versioned_pair" if kind in PAIRS else "versioned" for kind in kinds]
    elif join.outer:
        kinds = [kind if kind == "rising" else "provisional" for kind in kinds]
    return Kinds(keys, columns, (*left.kinds, *kinds), rows)


def _match_kinds(on: tuple[tuple[str, str], ...], negated: bool, left: Kinds, right: Kinds) -> Kinds:
    steady = right.rows == "stays" and all(left.of(a) == "final" and right.of(b) == "final" for a, b in on)
    rows = _weakest(left.rows, "leaves" if negated else "stays") if steady else "versioned"
    return replace(left, rows=rows, is_event=False)
