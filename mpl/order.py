"""The order of views: each after those that it reads; views that read each other in a circle have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mpl import nodes


def relations_read(relation: nodes.Relation) -> tuple[nodes.Name, ...]:
    """Every relation name that a pipeline mentions, sub-relations included, in source order."""
    return tuple(_names_in(relation))


def _names_in(relation: nodes.Relation) -> Iterator[nodes.Name]:
    sources = list(relation.sources)
    for operator in relation.operators:
        match operator:
            case nodes.Join() | nodes.AsofJoin() | nodes.Matching() | nodes.Union() | nodes.Minus():
                sources.append(operator.source)
            case _:
                pass
    for source in sources:
        if isinstance(source.relation, nodes.Name):
            yield source.relation
        else:
            yield from _names_in(source.relation)


def in_reading_order(
    views: Mapping[str, nodes.ViewDecl], reads: Mapping[str, tuple[nodes.Name, ...]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Views so that each follows what it reads, and the circles that prevent it (each as the names around it).

    A walk with an explicit stack: a chain of thousands of views must not exhaust Python's.
    """
    order: list[str] = []
    circles: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in views:
        path: dict[str, Iterator[nodes.Name]] = {}
        if start not in done:
            path[start] = iter(reads[start])
        while path:
            name, remaining = next(reversed(path.items()))
            following = next((read.text for read in remaining if read.text in views), None)
            if following is None:
                path.popitem()
                if name not in done:
                    done.add(name)
                    order.append(name)
            elif following in path:
                names = list(path)
                circles.append(tuple(names[names.index(following) :]))
            elif following not in done:
                path[following] = iter(reads[following])
    return order, circles
