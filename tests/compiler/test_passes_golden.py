"""Goal: what every pass does to a small program can be read, and does not change by accident.

`tests/golden/passes/<pass>/<case>.mpl` is the program; the `.txt` beside it has the graph before and after that pass.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.graph import build_graph, show, validate
from compiler.passes import PASSES
from mpl.check import check
from mpl.source import Source
from tests.conftest import Golden

FOLDER = Path(__file__).parent.parent / "golden" / "passes"
BY_NAME = {each.__name__: each for each in PASSES}
CASES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("*/*.mpl"))


def test_every_pass_has_a_case() -> None:
    assert {case.partition("/")[0] for case in CASES} == set(BY_NAME)


@pytest.mark.parametrize("case", CASES)
def test_pass(case: str, golden: Golden) -> None:
    text = (FOLDER / f"{case}.mpl").read_text(encoding="utf-8")
    before = validate(build_graph(check(Source(f"{case.rpartition('/')[2]}.mpl", text))))
    name = case.partition("/")[0]
    after = validate(BY_NAME[name](before))
    shown = f"== as written\n\n{show(before, origins=False)}\n== after {name}\n\n{show(after)}"
    golden(f"passes/{case}.txt", shown)
