"""Goal: whatever is wrong with a text, the user is told once, in their own words, at the right place.

The pages in tests/diagnostics show how messages look; here are the rules that hold for all of them, and cases that do
not fit on a page.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpl.codes.syntax import CODES
from mpl.diagnostic import DIAGNOSTICS_MAX, Diagnostic, Diagnostics
from mpl.parser import parse
from mpl.source import Source
from mpl.syntax.lexing import tokenize
from mpl.syntax.tables import tables
from tests.mpl.constructs import EVERY_CONSTRUCT


def reported(text: str) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    parse(Source("test.mpl", text), diagnostics)
    return list(diagnostics)


def only(text: str) -> Diagnostic:
    (diagnostic,) = reported(text)
    return diagnostic


@pytest.mark.parametrize(
    ("text", "at", "help"),
    [
        (
            "stream S (a int not null);",
            "not",
            "leave `not null` out: nothing is null here unless it is declared `null`",
        ),
        (
            "stream S (a int[0..] not null);",
            "not",
            "leave `not null` out: nothing is null here unless it is declared `null`",
        ),
        ("create stream S (a int);", "create", "write `view name = from ...` or `stream name (a int)`"),
        ("view v = from S |> select a;", "select", "write `|> project a, b`"),
        ("view v = select a from S;", "select", "write `from R |> where ... |> project a, b`"),
        ("view v = from S |> where a > 1 || b = 2;", "||", "write `or`"),
        ("view v = from S |> where a || b > 1 < 2;", "<", "write `a < b and b < c`, or `b between a and c`"),
        ("view v = from S |> aggregate n := count(a b);", "b", None),
        (
            "view v = from S |> aggregate n := a group by b;",
            "a",
            "write for example `max(a)`, or put it into `group by`",
        ),
    ],
)
def test_help_is_about_the_mistake_that_was_made(text: str, at: str, help: str | None) -> None:
    assert (only(text).span.text, only(text).help) == (at, help)


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("view v = frm S;", "MPL0101", "frm"),
        ("view v = from S |> where a = ;", "MPL0101", ";"),
        ("stream S (a int) tick n evry 1 s;", "MPL0101", "evry"),
        ("stream S (a decimal);", "MPL0101", ")"),
        ("view v = from S |> where case a when 1 then 2 end;", "MPL0101", "a"),
        ("view v = from S", "MPL0102", ""),
        (";", "MPL0103", ";"),
        ("view v = from S;;;", "MPL0103", ";;"),
        ("view v = from (from S;", "MPL0104", "("),
        ("stream S (a int[0..1;", "MPL0104", "["),
        ("view v = from S);", "MPL0105", ")"),
        ("stream S (a int[0..1));", "MPL0105", ")"),
        ("view v = from S |> where a = 'b;", "MPL0106", "'"),
        ('broker b at "tcp;', "MPL0106", '"'),
        ("view `a = from S;", "MPL0106", "`"),
        ("view `` = from S;", "MPL0106", "``"),
        ('view v = from S |> where a = "b";', "MPL0107", '"b"'),
        ("broker b at 'tcp';", "MPL0107", "'tcp'"),
        ("view v = from S |> where a = \u201cb\u201d;", "MPL0107", "\u201cb\u201d"),
        ("view v = from S |> where a == b;", "MPL0108", "=="),
        ("view v = from S |> where a != b;", "MPL0108", "!="),
        ("view v = from S |> where a => b;", "MPL0108", "=>"),
        ("view v = from S |> where a =< b;", "MPL0108", "=<"),
        ("view v = from S |> where !a;", "MPL0108", "!"),
        ("view v = from S | where a;", "MPL0108", "|"),
        ("view v := from S;", "MPL0108", ":="),
        ("view v = from S |> where a := 1;", "MPL0108", ":="),
        ("/* a; b */ view v = from S;", "MPL0109", "/* a; b */"),
        ("view v = from S; // c", "MPL0109", "// c"),
        ("view v = from S; # c", "MPL0109", "# c"),
        ("view v = from S @;", "MPL0110", "@"),
        ("view v = from S; -- \x00", "MPL0111", "\x00"),
        ("view v = from S |> where a = '\u202e';", "MPL0111", "\u202e"),
        ("view v = from S |> where a = '\ud800';", "MPL0111", "\ud800"),
        ("view v\ufeff = from S;", "MPL0111", "\ufeff"),
        ("stream S (a int); -- one\rview v = from S;\r\n", "MPL0111", "\r"),
        ("view v = select a from S;", "MPL0112", "select"),
        ("view v = from S |> select a;", "MPL0112", "select"),
        ("view v = from S group by a;", "MPL0112", "group"),
        ("create view v = from S;", "MPL0112", "create"),
        ("view v = from S where a;", "MPL0113", "where"),
        ("view v = from S |> where a > 1 project a;", "MPL0113", "project"),
        ("view v = from S left join T using a;", "MPL0113", "left"),
        ("view v = from S |> extend a = 1;", "MPL0114", "="),
        ("view v = from S |> extend 1 + 2;", "MPL0114", "1"),
        ("view v = from S |> aggregate n := count(), sum(a);", "MPL0114", "sum"),
        ("view v = from S |> project a + 1;", "MPL0114", "+"),
        ("stream S (a int) retain 5 minutes;", "MPL0115", "minutes"),
        ("view v = from S |> where a > 1.5 s;", "MPL0115", "1.5 s"),
        ("view v = from S |> where a > 12abc;", "MPL0115", "12abc"),
        ("stream S (case int);", "MPL0116", "case"),
        ("view é = from S;", "MPL0116", "é"),
        ("view v = from S |> aggregate n := a group by b;", "MPL0117", "a"),
        ("view v = from S |> aggregate n := 1;", "MPL0117", "1"),
        ("view v = from S |> aggregate n := median(a);", "MPL0117", "median"),
        ("view v = from S |> aggregate n := sum(a) + 1;", "MPL0117", "+"),
        ("view v = from S |> where a < b <= c;", "MPL0118", "<="),
    ],
)
def test_each_mistake_has_its_code_and_place(text: str, code: str, at: str) -> None:
    diagnostic = only(text)
    assert (diagnostic.code.name, diagnostic.span.text) == (code, at)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("view v = from S |> aggreagte n := count();", "aggregate"),
        ("view v = from S |> wher a;", "where"),
        ("sream S (a int);", "stream"),
        ("stream S (a txt);", "text"),
        ("stream S (a timestamp);", "time"),
        ("subscribe s to v emit chnges;", "changes"),
        ("stream S (a int) uniqe a;", "unique"),
        ("protect a by semiactiv lag 1 s;", "semiactive"),
    ],
)
def test_typos_of_keywords_get_a_suggestion(text: str, suggestion: str) -> None:
    assert only(text).help == f"did you mean `{suggestion}`?"


def test_open_parenthesis_is_pointed_at() -> None:
    diagnostic = only("view v = from S |> where a in (1, 2 |> distinct;")
    assert diagnostic.note is not None
    assert diagnostic.note.span is not None
    assert diagnostic.note.span.start == 30


def test_all_errors_come_in_one_run_and_in_order() -> None:
    text = "".join(
        f"view v{number} = frm S;\nview w{number} = from S |> where a == {number};\n" for number in range(20)
    )
    found = reported(text)
    assert [item.code.name for item in found] == ["MPL0101", "MPL0108"] * 20
    assert [item.span.start for item in found] == sorted(item.span.start for item in found)


def test_one_slip_gives_one_error() -> None:
    assert len(reported("view v = from S |> where a = 'it's';\nview w = from S;")) == 1
    assert len(reported("view v = from S |> where @ > 1;")) == 1


def test_no_more_errors_than_anybody_reads() -> None:
    diagnostics = Diagnostics()
    parse(Source("test.mpl", "view v = frm S;\n" * 1000), diagnostics)
    assert len(diagnostics) == DIAGNOSTICS_MAX


# --- rules for every message ------------------------------------------------------------------------------------------

WORDS = [token.text for token in tokenize(Source("every.mpl", EVERY_CONSTRUCT), tables().lexicon, Diagnostics())]
TERMINALS = {name for row in tables().actions for name in row if "_" in name or name in ("NAME", "INT", "$END")}


def assert_well_told(diagnostic: Diagnostic) -> None:
    parts = (
        diagnostic.message,
        diagnostic.label,
        diagnostic.help or "",
        diagnostic.note.text if diagnostic.note else "",
    )
    for part in parts:
        assert not TERMINALS & set(re.findall(r"\$?[A-Z_]+", part)), f"a terminal is named in: {part}"
        assert not part.endswith("."), part
    assert diagnostic.message
    assert diagnostic.label
    assert diagnostic.code in CODES
    assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(diagnostic.span.source.text)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
@settings(deadline=None)
def test_any_words_are_parsed_or_explained(words: list[str]) -> None:
    for diagnostic in reported(" ".join(words)):
        assert_well_told(diagnostic)


@given(st.integers(0, len(WORDS) - 1), st.integers(0, len(WORDS) - 1), st.sampled_from(("drop", "double", "replace")))
@settings(deadline=None)
def test_a_damaged_program_is_parsed_or_explained(position: int, other: int, damage: str) -> None:
    words = WORDS[:]
    words[position : position + 1] = {
        "drop": [],
        "double": [words[position]] * 2,
        "replace": [words[other]],
    }[damage]
    found = reported(" ".join(words).replace(";", ";\n"))
    for diagnostic in found:
        assert_well_told(diagnostic)
    assert len(found) <= 4, "one slip must not cause many errors"


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_text_is_parsed_or_explained(text: str) -> None:
    for diagnostic in reported(text):
        assert_well_told(diagnostic)


def test_a_reserved_word_where_only_a_name_fits_is_explained() -> None:
    diagnostics = Diagnostics()
    parse(Source("snippet.mpl", "stream S (a int); view In = from S;"), diagnostics)
    (found,) = diagnostics
    assert found.code.name == "MPL0116"
    assert found.help is not None
    assert "backticks" in found.help
