"""Goal: pictures are well formed whatever users call things, and their boxes neither overlap nor run backwards."""

from __future__ import annotations

import re
from itertools import combinations
from random import Random
from xml.etree import ElementTree

import pytest

from compiler.layout import lay_out
from compiler.pictures import Box, Format, Picture, draw
from compiler.stages import explain_stage
from mpl.check import check
from mpl.source import Source
from tests.conftest import Golden

TEXT = """
stream `a "b" <c> & ]] \\ ;` (`k"<` int, v int);
view `V --> x` = from `a "b" <c> & ]] \\ ;` |> where v > 1 and `k"<` < 3;
view Sums = from `V --> x` |> aggregate total := sum(v) group by `k"<`;
subscribe `it's` to Sums emit bounds;
"""


def drawn(format: Format) -> str:
    return explain_stage(check(Source("test.mpl", TEXT)), "graph", format)


@pytest.mark.parametrize("format", ["mermaid", "dot", "svg"])
def test_golden(format: Format, golden: Golden) -> None:
    golden(f"graph/pictures.{format}.txt", drawn(format))


def test_svg_is_xml_with_every_title() -> None:
    root = ElementTree.fromstring(drawn("svg"))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {'a "b" <c> & ]] \\ ;', "V --> x", "Sums", "it's"} <= set(texts)


def test_mermaid_and_dot_quote_everything() -> None:
    for line in drawn("mermaid").splitlines()[5:]:
        assert re.fullmatch(r'  n\d+(\[|\(\[|\[\()"[^"]*"(\]|\]\)|\)\]):::\w+|  n\d+ --> n\d+', line), line
    for line in drawn("dot").splitlines()[4:-1]:
        assert re.fullmatch(r'  n\d+ \[label="([^"\\]|\\.)*", shape=\w+, [^\]]*\];|  n\d+ -> n\d+;', line), line


def test_boxes_never_overlap_and_lines_go_forward(cases: int) -> None:
    for seed in range(40 * cases):
        rng = Random(seed)
        names = [f"b{n}" for n in range(rng.randint(1, 25))]
        sizes = {name: (rng.uniform(20, 300), rng.uniform(20, 60)) for name in names}
        lines = [(names[rng.randrange(n)], names[n]) for n in range(1, len(names)) for _ in range(rng.randint(0, 3))]
        layout = lay_out(sizes, lines)
        for one, other in combinations((layout.places[name] for name in names), 2):
            apart = (
                one.x + one.width <= other.x
                or other.x + other.width <= one.x
                or one.y + one.height <= other.y
                or other.y + other.height <= one.y
            )
            assert apart, f"seed {seed}"
        for start, end in lines:
            assert layout.places[start].x + layout.places[start].width < layout.places[end].x, f"seed {seed}"
        for place in layout.places.values():
            assert place.y >= 0
            assert place.y + place.height <= layout.height + 0.001


def test_an_empty_picture() -> None:
    assert ElementTree.fromstring(draw(Picture((), ()), "svg")).tag.endswith("svg")
    assert draw(Picture((Box("a", "stream", "a"),), ()), "dot").count("label") == 1
