"""The blocks of the README and of the tutorial are true: MPL checks, and Python runs from top to bottom."""

import re
from pathlib import Path

import pytest

from mpl.check import check
from mpl.source import Source

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MPL = re.compile(r"^```mpl\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_python_blocks_run_as_one_program(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = PYTHON.findall(Path(page).read_text(encoding="utf-8"))
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "page"})  # noqa: S102  our own page
    if page == "README.md":
        # The answer that the page promises: 513 of 550 left, and never more than 550.
        assert "'avail': 513" in capsys.readouterr().out


def test_the_readme_program_checks() -> None:
    (program,) = MPL.findall(Path("README.md").read_text(encoding="utf-8"))
    assert check(Source("README.md", program)).ok
