"""From a checked program to its transform graph, without changing anything but the form.

Every operator of every view becomes a transform of its own. The last one of a view has the view's name, the others are
called `view.operator_n`. Nothing is optimised here: the graph says exactly what the user wrote.
"""

from __future__ import annotations

from collections import Counter

from compiler.graph.draft import Draft
from compiler.graph.transform import Output, Scan, Transform, TransformGraph, operator_word, source_of, with_inputs
from mpl.check import Checked
from mpl.typed import ProjectNode, RelationTree, TypedProgram, View, ViewScan, inputs_of


def build_graph(checked: Checked) -> TransformGraph:
    """The graph of a program without errors; `MplError` if it has some."""
    return graph_of(checked.require().program)


def graph_of(program: TypedProgram) -> TransformGraph:
    draft = Draft(program)
    for view in program.views.values():
        _add_view(view, draft)
    subscribed = {subscription.view for subscription in program.subscriptions.values()}
    for name, view in program.views.items():
        if view.storage != "inline" or name in subscribed:
            draft.outputs[name] = Output(name, view.schema, view.span)
    # Even what nobody reads is part of what the user wrote; dropping it is a pass.
    return TransformGraph(program, draft.nodes, draft.outputs)


def _add_view(view: View, draft: Draft) -> None:
    """Operators from the inputs up. An explicit stack: a pipeline may be longer than Python's."""
    counts: Counter[str] = Counter()
    done: dict[int, Scan] = {}
    waiting: list[tuple[RelationTree, bool]] = [(view.relation, False)]
    while waiting:
        node, ready = waiting.pop()
        is_root = node is view.relation
        if isinstance(node, Scan) and not is_root:
            done[id(node)] = node
            continue
        if not ready:
            waiting.append((node, True))
            waiting.extend((part, False) for part in reversed(inputs_of(node)))
            continue
        normal = _normal(node, tuple(done[id(part)] for part in inputs_of(node)), draft)
        name = view.name if is_root else _inner_name(view, operator_word(node), counts, draft)
        span = view.span if isinstance(node, Scan) else node.span
        draft.add(Transform(name, view.name, normal, (span,)))
        done[id(node)] = ViewScan(name, schema=node.schema, span=span)


def _normal(node: RelationTree, inputs: tuple[Scan, ...], draft: Draft) -> RelationTree:
    if not isinstance(node, Scan):
        return with_inputs(node, inputs)
    source = draft.reference(source_of(node), node.span)
    if source.schema == node.schema:
        return source
    # `view V key k = from X` declares another key than that of X: the same columns, identified otherwise.
    everything = tuple(range(len(node.schema.columns)))
    return ProjectNode(source, everything, drops_key=False, schema=node.schema, span=node.span)


def _inner_name(view: View, word: str, counts: Counter[str], draft: Draft) -> str:
    # A name in backticks may look like ours, so a free number is searched for.
    while True:
        counts[word] += 1
        name = f"{view.name}.{word}_{counts[word]}"
        if not draft.is_taken(name):
            return name
