"""The blocks of the README and of the pages for users are true: MPL checks, and Python runs from top to bottom."""

import re
from pathlib import Path

import pytest

from mpl.check import check
from mpl.source import Source

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MPL = re.compile(r"^```mpl\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = ["README.md", "docs/tutorial.md", "docs/embedding.md", "docs/clients.md", "docs/http.md"]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_as_one_program(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(page).read_text(encoding="utf-8")
    assert len(PYTHON.findall(text)) == text.count("```python") > 0
    names: dict[str, object] = {"__name__": "page"}
    for block in PYTHON.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        code = compile("\n" * line + block.group(1), page, "exec")  # so that a failure names the page's line
        exec(code, names)  # noqa: S102  our own page
    if page == "README.md":
        assert "'avail': 513" in capsys.readouterr().out


def test_the_readme_program_checks() -> None:
    (program,) = MPL.findall(Path("README.md").read_text(encoding="utf-8"))
    assert check(Source("README.md", program)).ok
