"""Keys: which columns identify a row, through every operator.

A schema knows its key, other unique column sets, and which columns others determine. The functions here reason with
these three and move them to new column positions; none of them looks at values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpl.typed import Column, JoinNode, Schema

Positions = tuple[int, ...]
Determined = tuple[tuple[Positions, int], ...]


def closure(positions: Iterable[int], determined: Determined) -> frozenset[int]:
    """All columns whose value is fixed once those at `positions` are."""
    known = set(positions)
    grew = True
    while grew:
        grew = False
        for deciding, decided in determined:
            if decided not in known and known.issuperset(deciding):
                known.add(decided)
                grew = True
    return frozenset(known)


def candidates(schema: Schema) -> tuple[Positions, ...]:
    """The key first, then the other unique column sets."""
    return (schema.key, *schema.unique)


def identifies(schema: Schema, positions: Iterable[int]) -> bool:
    """Is there at most one row for each value of the columns at `positions`?"""
    known = closure(positions, schema.determined)
    return any(known.issuperset(candidate) for candidate in candidates(schema))


def minimal(positions: Iterable[int], determined: Determined) -> Positions:
    """`positions` in order without those that the others determine; later columns are given up first."""
    kept = list(dict.fromkeys(positions))
    for position in reversed(tuple(kept)):
        others = [other for other in kept if other != position]
        if position in closure(others, determined):
            kept = others
    return tuple(sorted(kept))


def move(positions: Positions, where: Mapping[int, int]) -> Positions | None:
    """`positions` after columns moved as in `where`; None when one of them is gone."""
    if all(position in where for position in positions):
        return tuple(sorted(where[position] for position in positions))
    return None


def move_all(sets: Iterable[Positions], where: Mapping[int, int]) -> tuple[Positions, ...]:
    """The sets that survive the move, each once, in order."""
    moved = (move(positions, where) for positions in sets)
    return tuple(dict.fromkeys(positions for positions in moved if positions is not None))


def move_determined(determined: Determined, where: Mapping[int, int]) -> Determined:
    """The dependencies whose columns all survive the move."""
    result: list[tuple[Positions, int]] = []
    for deciding, decided in determined:
        moved = move(deciding, where)
        if moved is not None and decided in where:
            result.append((moved, where[decided]))
    return tuple(result)


def may_look_paired(node: JoinNode) -> bool:
    """May a row without a partner have the key of a pair? It may if a row of the missing side could itself have what
    fills its key columns: a default, or null where they are nullable."""
    border = len(node.left.schema.columns)
    shared = {one for one, other in node.equal if other not in node.right_kept}
    left = dict(zip(range(border), zip(node.left.schema.columns, node.left_defaults, strict=False), strict=False))
    right = {
        border + at: (node.right.schema.columns[position], default)
        for at, (position, default) in enumerate(zip(node.right_kept, node.defaults, strict=True))
    }
    for side in (left, right):
        filled = [side[position] for position in node.schema.key if position in side and position not in shared]
        if filled and all(default.value is not None or column.nullable for column, default in filled):
            return True
    return False


def moved_schema(schema: Schema, columns: tuple[Column, ...], where: Mapping[int, int]) -> Schema | None:
    """The schema after some columns moved and others went; None when no key survived.

    `where` maps old positions to new ones; `columns` are the new columns.
    """
    surviving = move_all(candidates(schema), where)
    if not surviving:
        return None
    determined = move_determined(schema.determined, where)
    return Schema(columns, surviving[0], surviving[1:], determined)


def same_positions(count: int) -> dict[int, int]:
    """The move that changes nothing, for operators that only append columns."""
    return {position: position for position in range(count)}
