"""Goal: what cannot run yet is refused with its code at its place, and the page about it tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.codes import CODES
from compiler.graph import build_graph
from compiler.unsupported import refuse_unsupported
from mpl.check import check
from mpl.diagnostic import Diagnostic
from mpl.source import Source

PAGE = (Path(__file__).parent.parent.parent / "docs" / "errors" / "compiler.md").read_text(encoding="utf-8")
SECTIONS = {
    match["code"]: re.findall(r"```mpl\n(.*?)```", match["body"], re.DOTALL)
    for match in re.finditer(r"^## (?P<code>CMP\d{4}): (?P<body>.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}


def refused(text: str, modules: tuple[str, ...] = ()) -> tuple[Diagnostic, ...]:
    return refuse_unsupported(build_graph(check(Source("page.mpl", text))), modules)


def test_every_code_has_a_section_with_its_title() -> None:
    assert list(SECTIONS) == [code.name for code in CODES]
    for code in CODES:
        assert f"## {code.name}: {code.title}\n" in PAGE


@pytest.mark.parametrize("code", SECTIONS)
def test_page(code: str) -> None:
    failing, repaired = SECTIONS[code]
    assert [diagnostic.code.name for diagnostic in refused(failing)] == [code]
    assert refused(repaired) == ()


def test_place_and_words() -> None:
    text = "stream S (k int, at time);\nview V = from S |> window hop(at, 2 s every 1 s);"
    (diagnostic,) = refused(text)
    assert str(diagnostic.span) == "page.mpl:2:20"
    assert diagnostic.message == "`hop` windows do not run yet"


def test_a_python_module_can_be_allowed() -> None:
    failing = SECTIONS["CMP0104"][0]
    assert refused(failing, ("scoring",)) == ()
    assert len(refused(failing, ("other",))) == 1


def test_everything_is_reported_once() -> None:
    text = """
    stream A (k int, at time) event time at; stream B (k int, x int, at time) event time at;
    function f(x int) returns int python "m:f";
    view V = from A |> asof join B as B using k |> extend y := f(x) |> window tumble(at, 1 s);
    view W = from V |> where x > 1;
    """
    assert [diagnostic.code.name for diagnostic in refused(text)] == ["CMP0104", "CMP0101"]
