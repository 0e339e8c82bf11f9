"""Goal: a diagnostic looks the same everywhere, points at the right cells, and never harms a terminal."""

import io
import json

import pytest

from mpl.diagnostic import DIAGNOSTICS_MAX, Code, Diagnostic, Note, Severity
from mpl.render import record, render, render_all, summary, wants_color
from mpl.source import Source, Span

ERROR = Code("MPL0999", Severity.ERROR, "a test")
WARNING = Code("MPL0998", Severity.WARNING, "a test")


def diagnostic(text: str, marked: str, label: str = "here", **more: object) -> Diagnostic:
    """A diagnostic about the first occurrence of `marked` in `text`."""
    start = text.index(marked)
    span = Span(Source("dir/file.mpl", text), start, start + len(marked))
    return Diagnostic(ERROR, span, "something is wrong", label, **more)  # type: ignore[arg-type]


def underlined(rendered: str) -> str:
    """What stands above the carets, found by counting cells as a terminal does."""
    lines = rendered.splitlines()
    position = next(index for index, line in enumerate(lines) if "^" in line)
    marks = lines[position]
    start = marks.index("^")
    return lines[position - 1][start : start + marks.count("^")]


def test_the_whole_look() -> None:
    text = "\n" * 10 + "view alert =\n  from trades |> where price > 1;\n"
    note = Note("`price` is declared here", Span(Source("dir/file.mpl", text), 3, 4))
    item = diagnostic(text, "price", "may still grow", note=note, help="wait for the end")
    assert render(item) == (
        "error[MPL0999]: something is wrong\n"
        "  --> dir/file.mpl:12:24\n"
        "   |\n"
        "11 | view alert =\n"
        "12 |   from trades |> where price > 1;\n"
        "   |                        ^^^^^ may still grow\n"
        "   |\n"
        "   = note: `price` is declared here at dir/file.mpl:4:1\n"
        "   = help: wait for the end"
    )


def test_the_first_line_has_no_context_and_no_remarks_leave_no_trace() -> None:
    assert render(diagnostic("view v;", "v;", "")) == (
        "error[MPL0999]: something is wrong\n --> dir/file.mpl:1:6\n  |\n1 | view v;\n  |      ^^"
    )


@pytest.mark.parametrize("before", ["", "\t\t", "äöü ", "e\u0301 ", "a \t b "])
def test_carets_stand_below_what_they_mean(before: str) -> None:
    shown = render(diagnostic(f"{before}wrong after", "wrong"))
    combining = before.count("\u0301")
    marks = next(line for line in shown.splitlines() if "^" in line)
    source = next(line for line in shown.splitlines() if "wrong after" in line)
    assert "\t" not in shown
    assert marks.index("^") == source.index("wrong") - combining


def test_wide_characters_take_two_cells() -> None:
    lines = render(diagnostic("'日本' wrong", "wrong")).splitlines()
    assert lines[-1] == "  |        ^^^^^ here"
    lines = render(diagnostic("x 日本 y", "日本")).splitlines()
    assert lines[-1] == "  |   ^^^^ here"


def test_a_place_between_characters_gets_one_caret() -> None:
    source = Source("file.mpl", "view v")
    item = Diagnostic(ERROR, Span(source, 6, 6), "no end", "here")
    assert render(item).splitlines()[-2:] == ["1 | view v", "  |       ^ here"]


def test_an_empty_text_can_be_pointed_at() -> None:
    item = Diagnostic(ERROR, Span(Source("file.mpl", ""), 0, 0), "no program", "here")
    assert render(item).splitlines()[-2:] == ["1 |", "  | ^ here"]


def test_several_lines() -> None:
    text = "view v =\n  case when a\n    then b\n    else c\n  end;\n"
    assert render(diagnostic(text, "case when a\n    then b\n    else c\n  end")) == (
        "error[MPL0999]: something is wrong\n"
        " --> dir/file.mpl:2:3\n"
        "  |\n"
        "1 | view v =\n"
        "2 |   case when a\n"
        "  |   ^^^^^^^^^^^\n"
        "...\n"
        "5 |   end;\n"
        "  |   ^^^ here"
    )
    two_lines = render(diagnostic("a b\nc d", "b\nc")).splitlines()
    assert two_lines[-4:] == ["1 | a b", "  |   ^", "2 | c d", "  | ^ here"]


def test_a_span_that_ends_with_its_line_stays_on_it() -> None:
    shown = render(diagnostic("wrong\nnext", "wrong\n"))
    assert "next" not in shown


def test_long_lines_are_cut_around_the_caret() -> None:
    shown = render(diagnostic("a " * 100_000 + "wrong" + " b" * 100_000, "wrong"))
    assert underlined(shown) == "wrong"
    assert max(len(line) for line in shown.splitlines()) < 150
    assert shown.count("...") == 2
    whole = render(diagnostic("x" * 1_000_000, "x" * 1_000_000))
    assert max(len(line) for line in whole.splitlines()) < 150


def test_windows_line_ends_are_not_shown() -> None:
    assert "\r" not in render(diagnostic("first\r\nwrong\r\n", "wrong"))


def test_nothing_from_the_user_reaches_the_terminal_raw() -> None:
    evil = "\x1b[31m\x07\u202e\ud800\x00"
    item = Diagnostic(ERROR, Span(Source(evil, f"{evil} wrong"), 6, 7), evil, evil, Note(evil), evil)
    shown = render(item)
    assert not set(evil) & set(shown) - set("[31m")
    shown.encode("utf-8")


def test_colours_change_nothing_else() -> None:
    item = diagnostic("view\nv;", "v;", help="look")
    colored = render(item, color=True)
    assert colored.startswith("\x1b[1;31merror[MPL0999]\x1b[0m")
    plain = colored
    for code in ("\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == render(item)
    warning = Diagnostic(WARNING, item.span, "careful")
    assert render(warning, color=True).startswith("\x1b[1;33mwarning")


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_color(Terminal())
    assert not wants_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(Terminal())


def test_summary() -> None:
    error = diagnostic("v", "v")
    warning = Diagnostic(WARNING, error.span, "careful")
    assert summary([]) == "no errors"
    assert summary([error]) == "1 error"
    assert summary([error, warning, error]) == "2 errors, 1 warning"
    assert summary([warning, warning]) == "2 warnings"
    assert summary([error], dropped=7) == "1 error, 7 more not shown"
    assert summary([error] * DIAGNOSTICS_MAX) == f"{DIAGNOSTICS_MAX} errors, and there may be more"
    assert render_all([]) == ""
    assert render_all([error, warning]).endswith("\n\n1 error, 1 warning\n")


def test_records_for_editors() -> None:
    text = "view v\n  = wrong;\n"
    note = Note("seen", Span(Source("dir/file.mpl", text), 0, 4))
    found = record(diagnostic(text, "wrong", "here", note=note, help="fix it"))
    assert json.loads(json.dumps(found)) == {
        "code": "MPL0999",
        "severity": "error",
        "message": "something is wrong",
        "label": "here",
        "file": "dir/file.mpl",
        "line": 2,
        "column": 5,
        "end_line": 2,
        "end_column": 10,
        "note": "seen at dir/file.mpl:1:1",
        "help": "fix it",
    }
    bare = record(diagnostic("v", "v", ""))
    assert (bare["note"], bare["help"]) == (None, None)
