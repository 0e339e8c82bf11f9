"""Where the boxes of a picture go: layers from left to right, so that every line runs forward.

The classical steps, kept small: a layer for each box by its longest way from a source; invisible knots where a line
crosses layers, so that it goes around boxes; an order in each layer that avoids crossings (means of neighbours, a few
sweeps); heights by the same means, pushed apart. Linear in boxes and knots for each sweep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP_ACROSS = 56
GAP_DOWN = 16
SWEEPS = 6


@dataclass
class Place:
    """A box or a knot: top left corner, size. A knot is as wide as its layer."""

    width: float
    height: float
    x: float = 0
    y: float = 0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Layout:
    """`routes` has, for each line, the ids of what it passes through, from its first box to its last."""

    places: Mapping[str, Place]
    routes: Sequence[tuple[str, ...]]
    width: float
    height: float


def lay_out(sizes: Mapping[str, tuple[float, float]], lines: Sequence[tuple[str, str]]) -> Layout:
    """`lines` go from a box to one that comes later in `sizes`."""
    layer = _layers(sizes, lines)
    places = {name: Place(*size) for name, size in sizes.items()}
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in sizes:
        rows[layer[name]].append(name)
    routes = []
    for number, (start, end) in enumerate(lines):
        knots = [f"{number}:{depth}" for depth in range(layer[start] + 1, layer[end])]
        for depth, knot in enumerate(knots, layer[start] + 1):
            places[knot] = Place(0, 6)
            rows[depth].append(knot)
        routes.append((start, *knots, end))
    before, after = _neighbours(routes)
    _order(rows, before, after)
    x = 0.0
    for row in rows:
        width = max((places[name].width for name in row), default=0)
        for name in row:
            places[name].x = x
            if name not in sizes:
                places[name].width = width  # a line runs straight where it passes boxes
        x += width + GAP_ACROSS
    _level(rows, places, before, after)
    top = min((place.y for place in places.values()), default=0)
    for place in places.values():
        place.y -= top
    height = max((place.y + place.height for place in places.values()), default=0)
    return Layout(places, routes, max(x - GAP_ACROSS, 0), height)


def _layers(sizes: Mapping[str, tuple[float, float]], lines: Sequence[tuple[str, str]]) -> dict[str, int]:
    sources: dict[str, list[str]] = {name: [] for name in sizes}
    for start, end in lines:
        sources[end].append(start)
    layer: dict[str, int] = {}
    for name in sizes:
        layer[name] = max((layer[source] + 1 for source in sources[name]), default=0)
    return layer


def _neighbours(routes: Sequence[tuple[str, ...]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for route in routes:
        for one, other in pairwise(route):
            before.setdefault(other, []).append(one)
            after.setdefault(one, []).append(other)
    return before, after


def _order(rows: list[list[str]], before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> None:
    rank = {name: float(position) for row in rows for position, name in enumerate(row)}
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for row in rows if forward else reversed(rows):
            neighbours = before if forward else after
            wish = {name: _mean([rank[other] for other in neighbours.get(name, ())], rank[name]) for name in row}
            row.sort(key=lambda name: (wish[name], rank[name]))
            for position, name in enumerate(row):
                rank[name] = float(position)


def _level(
    rows: list[list[str]],
    places: Mapping[str, Place],
    before: Mapping[str, list[str]],
    after: Mapping[str, list[str]],
) -> None:
    for row in rows:
        y = 0.0
        for name in row:
            places[name].y = y
            y += places[name].height + GAP_DOWN
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for row in rows if forward else reversed(rows):
            neighbours = before if forward else after
            wish = [
                _mean([places[other].middle for other in neighbours.get(name, ())], places[name].middle)
                - places[name].height / 2
                for name in row
            ]
            _push_apart([places[name] for name in row], wish)


def _push_apart(column: Sequence[Place], wish: Sequence[float]) -> None:
    """Boxes at their wished heights, or as near as their order and the gaps allow."""
    bottom = float("-inf")
    for place, wanted in zip(column, wish, strict=True):
        place.y = max(wanted, bottom)
        bottom = place.y + place.height + GAP_DOWN
    # Pushing only ever goes down: give half of the average push back to all.
    excess = sum(place.y - wanted for place, wanted in zip(column, wish, strict=True)) / max(len(column), 1)
    for place in column:
        place.y -= excess


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
