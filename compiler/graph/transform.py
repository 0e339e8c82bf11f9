"""Transforms and the graph that holds them: frozen facts, made by `build.py` and by the passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from mpl.diagnostic import Diagnostics
from mpl.knowledge import FinalWhen, Knowledge, analyse
from mpl.source import Span
from mpl.typed import (
    AggregateNode,
    AsofNode,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RelationTree,
    RenameNode,
    Schema,
    StreamScan,
    Subscription,
    TableScan,
    TopNode,
    TypedProgram,
    UnionNode,
    View,
    ViewScan,
    WhereNode,
    WindowNode,
    inputs_of,
)

Scan = StreamScan | TableScan | ViewScan


@dataclass(frozen=True)
class Keeping:
    """What a transform has to keep, and for how long; derived once, after everything else (`passes/keeping.py`).

    `vanished_for_good`: a row that was visible and no longer is never comes back, so its state may go.
    `rejected_for_good`: a row that a `where` rejects once is rejected for ever, so its key may be quenched upstream.
    `final`, `final_words`: when a visible row can no longer change; it may then be sent once and be compacted.
    `wanted`: for each input, the only rows that are asked for, as a predicate over its columns; None is all of them.
    Events are quenched by it on edges between brokers.
    """

    vanished_for_good: bool
    rejected_for_good: bool
    final: FinalWhen
    final_words: str
    wanted: tuple[Expr | None, ...]


@dataclass(frozen=True)
class Transform:
    """One operator and the relation it makes. The inputs of `node` are scans: references to streams, tables, others.

    `view` is where it was first written; `origins` are all places it came from, several after sharing.
    """

    id: str
    view: str
    node: RelationTree
    origins: tuple[Span, ...]
    keeping: Keeping | None = None

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(source_of(scan) for scan in references_of(self.node))

    @property
    def schema(self) -> Schema:
        return self.node.schema


@dataclass(frozen=True)
class Output:
    """What users call a view: a transform's rows under the view's own column names, hidden ones included."""

    id: str
    schema: Schema
    span: Span


@dataclass(frozen=True)
class TransformGraph:
    """`nodes` come in an order in which each follows its inputs. An input is a node, a stream or a table.

    `outputs` are the views that can be subscribed to or queried, by name. `program` has all the other declarations;
    its own views are not looked at any more.
    """

    program: TypedProgram
    nodes: Mapping[str, Transform]
    outputs: Mapping[str, Output]

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        return self.program.subscriptions

    def schema_of(self, id: str) -> Schema:
        if id in self.nodes:
            return self.nodes[id].schema
        return base_schema(self.program, id)

    @cached_property
    def readers(self) -> Counter[str]:
        """How many edges leave each node, stream and table; being an output counts as one for each view."""
        counted: Counter[str] = Counter()
        for transform in self.nodes.values():
            counted.update(transform.inputs)
        counted.update(output.id for output in self.outputs.values())
        return counted

    @cached_property
    def output_ids(self) -> frozenset[str]:
        return frozenset(output.id for output in self.outputs.values())

    def is_private(self, id: str) -> bool:
        """Is it a transform that one other transform reads and nobody can ask for? Then the two may be rewritten."""
        return id in self.nodes and id not in self.output_ids and self.readers[id] == 1

    def as_program(self) -> TypedProgram:
        """The graph as a program again, one view per transform, for everything that is defined on programs."""
        views = {one.id: View(one.id, one.node, None, span=one.origins[0]) for one in self.nodes.values()}
        subscriptions = {
            name: replace(subscription, view=self.outputs[subscription.view].id)
            if subscription.view in self.outputs
            else subscription
            for name, subscription in self.program.subscriptions.items()
        }
        return replace(self.program, views=views, subscriptions=subscriptions)

    @cached_property
    def knowledge(self) -> Mapping[str, Knowledge]:
        """What the monotonic analysis says of every transform, stream and table."""
        # Warnings were given when the program was checked; here they would be about places nobody wrote.
        # Who computes with a table is sent its rows like events, perhaps after events that they have to do with.
        found = analyse(self.as_program(), Diagnostics(), tables_arrive=True)
        return {**found.streams, **found.tables, **found.views}

    @cached_property
    def event_ids(self) -> frozenset[str]:
        """Transforms and streams whose rows are events, each final and keyed by its own tick."""
        found = set(self.program.streams)
        for transform in self.nodes.values():
            if _keeps_events(transform.node) and all(source in found for source in transform.inputs):
                found.add(transform.id)
        return frozenset(found)


def _keeps_events(node: RelationTree) -> bool:
    match node:
        case StreamScan() | ViewScan() | MergeNode() | WhereNode() | ExtendNode() | RenameNode():
            return True
        case ProjectNode():
            return not node.drops_key
        case WindowNode():
            return node.shape == "tumble"
        case _:
            return False


def base_schema(program: TypedProgram, name: str) -> Schema:
    return program.streams[name].schema if name in program.streams else program.tables[name].schema


def references_of(node: RelationTree) -> tuple[Scan, ...]:
    """The scans that a normal-form node reads; a node that is a scan itself copies what it names."""
    if isinstance(node, Scan):
        return (node,)
    found = inputs_of(node)
    assert all(isinstance(scan, Scan) for scan in found), "a node in normal form reads scans only"
    return tuple(scan for scan in found if isinstance(scan, Scan))


def source_of(scan: Scan) -> str:
    match scan:
        case StreamScan():
            return scan.stream
        case TableScan():
            return scan.table
        case ViewScan():
            return scan.view


def with_inputs(node: RelationTree, inputs: tuple[RelationTree, ...]) -> RelationTree:
    """The same operator on other inputs; its schema is not touched."""
    match node:
        case StreamScan() | TableScan() | ViewScan():
            (scan,) = inputs
            assert isinstance(scan, Scan)
            return replace(scan, span=node.span)
        case MergeNode():
            return replace(node, inputs=inputs)
        case JoinNode() | AsofNode() | MatchingNode() | UnionNode() | MinusNode():
            left, right = inputs
            return replace(node, left=left, right=right)
        case _:
            (only,) = inputs
            return replace(node, input=only)


_WORDS: dict[type[RelationTree], str] = {
    StreamScan: "copy",
    TableScan: "copy",
    ViewScan: "copy",
    MergeNode: "merge",
    WhereNode: "where",
    ProjectNode: "project",
    ExtendNode: "extend",
    RenameNode: "rename",
    WindowNode: "window",
    AggregateNode: "aggregate",
    JoinNode: "join",
    AsofNode: "asof",
    MatchingNode: "matching",
    TopNode: "top",
    LatestNode: "latest",
    DistinctNode: "distinct",
    UnionNode: "union",
    MinusNode: "minus",
}


def operator_word(node: RelationTree) -> str:
    """The operator's name in ids: `latest` also for `first`, `join` for every side."""
    return _WORDS[type(node)]
