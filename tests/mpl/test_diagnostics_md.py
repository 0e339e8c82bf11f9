"""Goal: what users read when something is wrong is exactly what `tests/diagnostics/*.md` shows.

Each file is prose with pairs of fenced blocks: `mpl`, a program called snippet.mpl, and `text`, everything that
checking it prints. `pytest --update-golden` rewrites the text blocks; read the diff before committing it.
"""

import re
from pathlib import Path

import pytest

from mpl.check import check
from mpl.render import render_all
from mpl.source import Source

FOLDER = Path(__file__).parent.parent / "diagnostics"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(text: str) -> str:
    """What checking a program prints; "no errors" when it prints nothing."""
    checked = check(Source("snippet.mpl", text))
    return render_all(checked.diagnostics, dropped=checked.dropped) or "no errors\n"


def rewritten(text: str) -> str:
    """The Markdown with every text block holding what its program prints now."""
    parts: list[str] = []
    end = 0
    program: str | None = None
    for fence in FENCE.finditer(text):
        kind, body = fence.groups()
        parts.append(text[end : fence.start()])
        end = fence.end()
        if kind == "text":
            assert program is not None, f"no mpl block before this text block:\n{body}"
            body = printed(program)
            program = None
        elif kind == "mpl":
            assert program is None, f"no text block after this mpl block:\n{program}"
            program = body
        parts.append(f"```{kind}\n{body}```")
    assert program is None, f"no text block after this mpl block:\n{program}"
    return "".join((*parts, text[end:]))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_programs_print_what_the_page_shows(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.read_text(encoding="utf-8")
    actual = rewritten(expected)
    if request.config.getoption("--update-golden"):
        path.write_text(actual, encoding="utf-8")
        return
    assert actual == expected, f"{path.name} differs; if the new text is right: pytest --update-golden"


def test_a_page_without_its_expectation_is_refused() -> None:
    with pytest.raises(AssertionError, match="no text block after"):
        rewritten("```mpl\nview v = from S;\n```\n")


def test_a_wrong_expectation_is_noticed() -> None:
    page = "```mpl\n;\n```\n\n```text\nsomething else\n```\n"
    assert "error[MPL0103]" in rewritten(page)
