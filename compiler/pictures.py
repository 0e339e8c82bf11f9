"""Pictures of graphs: mermaid, dot and svg, all from one small record of boxes and lines.

`graph_picture` makes the record of a transform graph; a plan will make its own. Names and texts are the user's, so
every format escapes them; ids in the pictures are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal

from compiler.graph import TransformGraph
from compiler.graph.notation import names_of, operator_text, printable
from compiler.layout import Layout, lay_out

Format = Literal["mermaid", "dot", "svg"]

LINE_MAX = 56
"""Characters in a line of a box; longer text is cut."""


@dataclass(frozen=True)
class Box:
    """`kind` decides how it looks: something published, something computed, a view that can be asked for, a person."""

    id: str
    kind: Literal["stream", "transform", "view", "subscription"]
    title: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """Boxes in an order in which lines only go forward."""

    boxes: tuple[Box, ...]
    lines: tuple[tuple[str, str], ...]


def graph_picture(graph: TransformGraph) -> Picture:
    """Streams and tables that are read, transforms, and who subscribes to what."""
    boxes: list[Box] = []
    lines: list[tuple[str, str]] = []
    subscribed = {subscription.view for subscription in graph.subscriptions.values()}
    for word, bases in (("stream", graph.program.streams), ("table", graph.program.tables)):
        read = [name for name in bases if graph.readers[name] or name in subscribed]
        boxes += [Box(name, "stream", _cut(name), (word,)) for name in read]
    views: dict[str, list[str]] = {}
    for view, output in graph.outputs.items():
        views.setdefault(output.id, []).append(view)
    for transform in graph.nodes.values():
        shown = views.get(transform.id)
        title = ", ".join(shown) if shown else transform.id
        key = names_of(transform.schema.key, transform.schema.columns) or "(one row)"
        text = (_cut(operator_text(transform.node)), _cut(f"key {key}"))
        boxes.append(Box(transform.id, "view" if shown else "transform", _cut(title), text))
        lines += [(source, transform.id) for source in transform.inputs]
    for name, subscription in graph.subscriptions.items():
        target = graph.outputs[subscription.view].id if subscription.view in graph.outputs else subscription.view
        box = f"subscribe {name}"
        boxes.append(Box(box, "subscription", _cut(name), (f"emit {subscription.emit}",)))
        lines.append((target, box))
    return Picture(tuple(boxes), tuple(lines))


def draw(picture: Picture, format: Format) -> str:
    match format:
        case "mermaid":
            return _mermaid(picture)
        case "dot":
            return _dot(picture)
        case "svg":
            return _svg(picture)


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LINE_MAX else text[: LINE_MAX - 3] + "..."


def _numbers(picture: Picture) -> dict[str, str]:
    return {box.id: f"n{number}" for number, box in enumerate(picture.boxes)}


_COLOURS = {
    "stream": ("#e7f0fa", "#4a7ab5"),
    "transform": ("#ffffff", "#8a8f98"),
    "view": ("#eaf6ec", "#4c9a5b"),
    "subscription": ("#fdf3e1", "#c98a2b"),
}


# --- mermaid ----------------------------------------------------------------------------------------------------------

_MERMAID_SHAPES = {
    "stream": ("[(", ")]"),
    "transform": ("[", "]"),
    "view": ("[", "]"),
    "subscription": ("([", "])"),
}


def _mermaid_text(text: str) -> str:
    """Everything that mermaid or HTML might read as markup goes by its number."""
    return "".join(c if c.isalnum() or c in " .,:_-()=+/" else f"#{ord(c)};" for c in text)


def _mermaid(picture: Picture) -> str:
    numbers = _numbers(picture)
    lines = ["flowchart LR"]
    for kind, (fill, stroke) in _COLOURS.items():
        lines.append(f"  classDef {kind} fill:{fill},stroke:{stroke},color:#1f2328")
    for box in picture.boxes:
        before, behind = _MERMAID_SHAPES[box.kind]
        text = "<br/>".join((f"<b>{_mermaid_text(box.title)}</b>", *map(_mermaid_text, box.lines)))
        lines.append(f'  {numbers[box.id]}{before}"{text}"{behind}:::{box.kind}')
    lines += [f"  {numbers[start]} --> {numbers[end]}" for start, end in picture.lines]
    return "\n".join(lines) + "\n"


# --- dot --------------------------------------------------------------------------------------------------------------

_DOT_SHAPES = {"stream": "cylinder", "transform": "box", "view": "box", "subscription": "oval"}


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _dot(picture: Picture) -> str:
    numbers = _numbers(picture)
    lines = [
        "digraph transforms {",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=11, style=filled];',
        '  edge [color="#8a8f98"];',
    ]
    for box in picture.boxes:
        fill, stroke = _COLOURS[box.kind]
        text = "\\n".join(_dot_text(line) for line in (box.title, *box.lines))
        shape = _DOT_SHAPES[box.kind]
        lines.append(f'  {numbers[box.id]} [label="{text}", shape={shape}, fillcolor="{fill}", color="{stroke}"];')
    lines += [f"  {numbers[start]} -> {numbers[end]};" for start, end in picture.lines]
    return "\n".join([*lines, "}"]) + "\n"


# --- svg --------------------------------------------------------------------------------------------------------------

_LETTER = 6.7
_TITLE_LETTER = 8.4
_LINE_HEIGHT = 16
_PADDING = 10
_MARGIN = 16
_FONTS = "Helvetica, Arial, DejaVu Sans, sans-serif"
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#8a8f98"/></marker></defs>'
)


def _size(box: Box) -> tuple[float, float]:
    width = max([len(box.title) * _TITLE_LETTER, *(len(line) * _LETTER for line in box.lines)])
    return round(width + 2 * _PADDING, 1), _LINE_HEIGHT * (1 + len(box.lines)) + 2 * _PADDING - 4


def _svg(picture: Picture) -> str:
    layout = lay_out({box.id: _size(box) for box in picture.boxes}, picture.lines)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    view = f"{-_MARGIN} {-_MARGIN} {width:.0f} {height:.0f}"
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{view}" font-family="{_FONTS}">',
        _ARROW,
        f'<rect x="{-_MARGIN}" y="{-_MARGIN}" {size} fill="#ffffff"/>',
    ]
    lines += [_svg_line(route, layout) for route in layout.routes]
    for box in picture.boxes:
        lines += _svg_box(box, layout)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _svg_line(route: tuple[str, ...], layout: Layout) -> str:
    """From the right edge of the first box through all knots to the left edge of the last, in soft curves."""
    first, last = layout.places[route[0]], layout.places[route[-1]]
    points = [(first.x + first.width, first.middle)]
    for knot in (layout.places[name] for name in route[1:-1]):
        points += [(knot.x, knot.middle), (knot.x + knot.width, knot.middle)]
    points.append((last.x, last.middle))
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        half = (x + to_x) / 2
        path += f" C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    return f'<path d="{path}" fill="none" stroke="#8a8f98" stroke-width="1.3" marker-end="url(#arrow)"/>'


def _svg_box(box: Box, layout: Layout) -> list[str]:
    place = layout.places[box.id]
    fill, stroke = _COLOURS[box.kind]
    radius = place.height / 2 if box.kind == "subscription" else 5
    x, y = place.x + place.width / 2, place.y + _PADDING + 10
    corner = f'x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}"'
    bold = 'text-anchor="middle" font-size="13" font-weight="bold" fill="#1f2328"'
    lines = [
        f'<rect {corner} rx="{radius:.1f}" fill="{fill}" stroke="{stroke}" stroke-width="1.3"/>',
        f'<text x="{x:.1f}" y="{y:.1f}" {bold}>{escape(box.title)}</text>',
    ]
    for number, line in enumerate(box.lines, 1):
        lines.append(
            f'<text x="{x:.1f}" y="{y + number * _LINE_HEIGHT:.1f}" text-anchor="middle" font-size="12" '
            f'fill="#57606a">{escape(line)}</text>'
        )
    return lines
