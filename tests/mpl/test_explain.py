"""Goal: `explain` says what the analysis found, in words that stay the same until somebody changes them on purpose.

Goldens for the examples, for the JSON form, and for one program that uses every rule (read its diff as a review of the
rules). The sentences that the paper's Figure 1 must contain are also asserted one by one.
"""

from __future__ import annotations

import json
from pathlib import Path as FilePath

import pytest

from mpl.check import Checked, check
from mpl.explain import JSON_VERSION, explain
from mpl.knowledge import Kind, Nulls
from mpl.source import Source
from tests.conftest import Golden
from tests.mpl.test_knowledge_histories import ALL_VIEWS

EXAMPLES = FilePath(__file__).parents[2] / "examples"


def example(name: str) -> Checked:
    path = EXAMPLES / name / f"{name}.mpl"
    return check(Source(f"{name}.mpl", path.read_text(encoding="utf-8"))).require()


def text_of(checked: Checked, *views: str, width: int = 100) -> str:
    assert checked.knowledge is not None
    return explain(checked.program, checked.knowledge, views or None).to_text(width)


@pytest.mark.parametrize("name", ["tickets", "nexmark"])
def test_examples(name: str, golden: Golden) -> None:
    golden(f"explain/{name}.txt", text_of(example(name)))


def test_json_of_tickets(golden: Golden) -> None:
    checked = example("tickets")
    assert checked.knowledge is not None
    form = explain(checked.program, checked.knowledge).to_json()
    assert form["version"] == JSON_VERSION
    golden("explain/tickets.json", json.dumps(form, indent=2) + "\n")


def test_figure_1_in_words() -> None:
    available = text_of(example("tickets"), "Available")
    assert "temporarily invisible -> visible -> permanently invisible" in available
    assert "avail > 0: temporarily true -> permanently false" in available
    assert "a pair, shown as p - n (qty less total); falls once qty is known" in available
    assert "rising (a lower bound that only grows)" in text_of(example("tickets"), "Sold")


def test_defaults_of_the_streams_that_are_read() -> None:
    text = """stream S (a int, b text default 'it''s', c decimal(5,2) default -1); stream R (a int default 3);
              view V = from S |> where a > 1;"""
    checked = check(Source("defaults.mpl", text)).require()
    assert text_of(checked).startswith(
        "stream S\n  default b 'it''s', c -1.00, where it was not published\n\n"
        "stream R\n  default a 3, where it was not published\n\nview V"
    )
    assert "stream R" not in text_of(checked, "V")
    assert checked.knowledge is not None
    streams = explain(checked.program, checked.knowledge).to_json()["streams"]
    assert streams == [{"name": "S", "defaults": {"b": "'it''s'", "c": "-1.00"}}, {"name": "R", "defaults": {"a": "3"}}]


def test_only_the_views_asked_for() -> None:
    text = text_of(example("tickets"), "Sold")
    assert text.startswith("view Sold\n")
    assert "Available" not in text


def test_text_keeps_to_the_width() -> None:
    assert max(map(len, text_of(example("nexmark"), width=72).splitlines())) <= 72


def test_equal_programs_give_equal_bytes() -> None:
    assert text_of(example("nexmark")) == text_of(example("nexmark"))


def test_every_rule(golden: Golden) -> None:
    """One line per column: kind, motion, nulls; one per view: path, whether versioned, when final."""
    assert ALL_VIEWS.knowledge is not None
    lines: list[str] = []
    for name, view in ALL_VIEWS.program.views.items():
        known = ALL_VIEWS.knowledge.views[name]
        marks = [known.path.value, *(["versioned rows"] if known.rows_versioned else []), known.finality.when.value]
        lines.append(f"{name}: {', '.join(marks)}")
        for declared, column in zip(view.schema.columns, known.columns, strict=True):
            if declared.hidden or (column.kind is Kind.FINAL and column.nulls is Nulls.NEVER):
                continue
            nulls = "" if column.nulls is Nulls.NEVER else f", null {column.nulls.value}"
            direction = f" {column.motion.value}" if column.kind is Kind.PN else ""
            lines.append(f"    {declared.name}: {column.kind.value}{direction}{nulls}")
    golden("explain/rules.txt", "\n".join(lines) + "\n")
