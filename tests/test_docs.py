"""Goal: the documentation tells the truth: every MPL block in it is checked, every diagnostic code has its entry."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpl.check import check
from mpl.codes import CODES
from mpl.diagnostic import Code
from mpl.render import render_all
from mpl.source import Source

DOCS = Path(__file__).parent.parent / "docs"
FENCE = re.compile(r"^```(\w+)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
REPEATED = re.compile(r"repeated (\d+) times")
ENTRY = re.compile(r"(MPL\d{4}): (.*)")


@dataclass(frozen=True)
class Section:
    """What stands between two `## ` headings: its title, and its MPL blocks with the code that each must give."""

    title: str
    blocks: tuple[tuple[str, str], ...]


def sections(text: str) -> Iterator[Section]:
    pieces = HEADING.split(text)
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        blocks = tuple(program_of(info, program) for kind, info, program in FENCE.findall(body) if kind == "mpl")
        yield Section(title, blocks)


def program_of(info: str, program: str) -> tuple[str, str]:
    """A block marked `repeated 1000 times` stands for so many copies of itself; any other mark is a code."""
    repeated = REPEATED.fullmatch(info)
    return ("", program * int(repeated.group(1))) if repeated else (info, program)


def reported(text: str) -> list[str]:
    return [item.code.name for item in check(Source("docs.mpl", text)).diagnostics]


def assert_without_errors(text: str) -> None:
    checked = check(Source("docs.mpl", text))
    assert checked.ok, render_all(checked.diagnostics)


LANGUAGE = [section for section in sections((DOCS / "language.md").read_text(encoding="utf-8")) if section.blocks]


@pytest.mark.parametrize("section", LANGUAGE, ids=lambda section: section.title)
def test_the_reference_is_true(section: Section) -> None:
    """The blocks of a section form one program; one marked with a code must be refused with that code."""
    program = ""
    for code, block in section.blocks:
        if code:
            errors = [
                item.code.name
                for item in check(Source("docs.mpl", program + block)).diagnostics
                if item.severity.value == "error"
            ]
            assert errors == [code]
        else:
            program += block
    assert_without_errors(program)


def test_the_reference_has_programs() -> None:
    """Otherwise the test above could be empty."""
    assert len(LANGUAGE) >= 8
    assert sum(bool(code) for section in LANGUAGE for code, _ in section.blocks) >= 2


ERRORS = {section.title: section for section in sections((DOCS / "errors.md").read_text(encoding="utf-8"))}


def test_every_code_has_its_entry_in_order() -> None:
    entries = [title for title in ERRORS if ENTRY.fullmatch(title)]
    assert entries == [f"{code.name}: {code.title}" for code in CODES]


def test_codes_are_unique_and_in_order() -> None:
    names = [code.name for code in CODES]
    assert names == sorted(set(names))


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_an_entry_shows_the_mistake_and_the_repair(code: Code) -> None:
    section = ERRORS[f"{code.name}: {code.title}"]
    programs = [block for _, block in section.blocks]
    assert len(programs) == 2, "one program with the mistake, one without"
    assert code.name in reported(programs[0])
    assert code.name not in reported(programs[1])
    assert_without_errors(programs[1])


def test_every_code_in_the_docs_exists() -> None:
    known = {code.name for code in CODES}
    for page in sorted(DOCS.rglob("*.md")):
        mentioned = set(re.findall(r"\bMPL\d{4}\b", page.read_text(encoding="utf-8")))
        assert mentioned <= known, f"{page.name} mentions {sorted(mentioned - known)}"
