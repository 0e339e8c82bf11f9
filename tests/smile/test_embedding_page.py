"""Goal: every block of Python in docs/embedding.md runs, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") >= 6
    names: dict[str, object] = {}
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        code = compile("\n" * line + match.group(1), str(PAGE), "exec")  # so that a failure names the page's line
        exec(code, names)  # noqa: S102  our own page
