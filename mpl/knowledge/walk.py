"""Walking the operators of a view without recursion: pipelines may be long, and trees deep."""

from __future__ import annotations

from collections.abc import Iterator

from mpl.typed import RelationTree, inputs_of


def operators_of(root: RelationTree) -> Iterator[RelationTree]:
    """Every node of a tree, inputs before those that read them, left to right."""
    waiting: list[tuple[RelationTree, bool]] = [(root, False)]
    while waiting:
        node, inputs_done = waiting.pop()
        if inputs_done:
            yield node
            continue
        waiting.append((node, True))
        waiting.extend((source, False) for source in reversed(inputs_of(node)))
