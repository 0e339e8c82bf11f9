"""The analysis of a whole program: knowledge of every relation, views in order, operators from the inside out.

Called after the checker; the compiler reads the result. Does not change the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from mpl import typed
from mpl.diagnostic import Diagnostics
from mpl.knowledge.groups import aggregate_knowledge, distinct_knowledge, latest_knowledge, top_knowledge
from mpl.knowledge.joins import asof_knowledge, join_knowledge
from mpl.knowledge.keyed import as_keyed
from mpl.knowledge.knowledge import Knowledge
from mpl.knowledge.matching import matching_knowledge, minus_knowledge, union_knowledge
from mpl.knowledge.rows import (
    extend_knowledge,
    project_knowledge,
    rename_knowledge,
    where_knowledge,
    window_knowledge,
)
from mpl.knowledge.scans import merge_knowledge, stream_knowledge, table_knowledge, view_scan_knowledge
from mpl.knowledge.walk import operators_of
from mpl.knowledge.warnings import warn


@dataclass(frozen=True)
class ProgramKnowledge:
    """What is known about every relation of a program, whole views and the operators inside them."""

    program: typed.TypedProgram
    streams: dict[str, Knowledge]
    tables: dict[str, Knowledge]
    views: dict[str, Knowledge]
    _by_node: dict[int, Knowledge] = field(repr=False)

    def of(self, node: typed.RelationTree) -> Knowledge:
        """By identity: nodes compare by structure, which would walk whole trees. `program` keeps them alive."""
        return self._by_node[id(node)]


def analyse(program: typed.TypedProgram, diagnostics: Diagnostics, *, tables_arrive: bool = False) -> ProgramKnowledge:
    """Derives knowledge for every view and reports what users should know as warnings.

    `tables_arrive`: the rows of tables come one by one, like events, instead of being there from the start.
    """
    result = ProgramKnowledge(
        program,
        {name: stream_knowledge(stream) for name, stream in program.streams.items()},
        {name: table_knowledge(table, arrives=tables_arrive) for name, table in program.tables.items()},
        {},
        {},
    )
    for name, view in program.views.items():
        for node in operators_of(view.relation):
            if id(node) not in result._by_node:
                result._by_node[id(node)] = as_keyed(node, _derive(node, result))
        result.views[name] = result.of(view.relation)
    warn(program, result.views, result.of, diagnostics)
    return result


def _derive(node: typed.RelationTree, result: ProgramKnowledge) -> Knowledge:
    match node:
        case typed.StreamScan():
            return result.streams[node.stream]
        case typed.TableScan():
            return result.tables[node.table]
        case typed.ViewScan():
            return view_scan_knowledge(result.views[node.view])
        case typed.MergeNode():
            return merge_knowledge(node, [result.of(source) for source in node.inputs])
        case typed.JoinNode() | typed.AsofNode() | typed.MatchingNode() | typed.UnionNode() | typed.MinusNode():
            return _derive_binary(node, result.of(node.left), result.of(node.right))
        case _:
            return _derive_unary(node, result.of(node.input))


def _derive_unary(
    node: typed.WhereNode
    | typed.ProjectNode
    | typed.ExtendNode
    | typed.RenameNode
    | typed.WindowNode
    | typed.AggregateNode
    | typed.TopNode
    | typed.LatestNode
    | typed.DistinctNode,
    source: Knowledge,
) -> Knowledge:
    match node:
        case typed.WhereNode():
            return where_knowledge(node, source)
        case typed.ProjectNode():
            return project_knowledge(node, source)
        case typed.ExtendNode():
            return extend_knowledge(node, source)
        case typed.RenameNode():
            return rename_knowledge(node, source)
        case typed.WindowNode():
            return window_knowledge(node, source)
        case typed.AggregateNode():
            return aggregate_knowledge(node, source)
        case typed.TopNode():
            return top_knowledge(node, source)
        case typed.LatestNode():
            return latest_knowledge(node, source)
        case typed.DistinctNode():
            return distinct_knowledge(node, source)
        case _:
            assert_never(node)


def _derive_binary(
    node: typed.JoinNode | typed.AsofNode | typed.MatchingNode | typed.UnionNode | typed.MinusNode,
    left: Knowledge,
    right: Knowledge,
) -> Knowledge:
    match node:
        case typed.JoinNode():
            return join_knowledge(node, left, right)
        case typed.AsofNode():
            return asof_knowledge(node, left, right)
        case typed.MatchingNode():
            return matching_knowledge(node, left, right)
        case typed.UnionNode():
            return union_knowledge(node, left, right)
        case typed.MinusNode():
            return minus_knowledge(node, left, right)
        case _:
            assert_never(node)
