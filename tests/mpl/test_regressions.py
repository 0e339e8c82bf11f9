"""Goal: what random programs once found stays found. Each test is a mistake that was in the checker, made small."""

from collections.abc import Sequence
from difflib import get_close_matches

import pytest

from mpl.diagnostic import COMPARED_MAX, DIAGNOSTICS_MAX
from tests.mpl.shown import checked, errors, view

TWO = "stream A (x int, t time); stream B (x int, t time); "


def test_the_alias_of_a_view_means_its_plain_column_whatever_the_order() -> None:
    joined = "view W = from A |> join B as b on A.x = b.x |> project b.t, t, b.x, x;"
    program = TWO + joined + "view V = from W as w |> extend copy := w.t - b.t |> project w.t, copy;"
    assert view(program) == "t time, copy duration, ~tick, ~tick; key ~tick, ~tick"


def test_a_dotted_column_does_not_take_the_name_of_another() -> None:
    """`b.t` of W, read as c, would be `c.t`, which already means W's own `t`."""
    joined = "view W = from A |> join B as b on A.x = b.x;"
    assert errors(TWO + joined + "view V = from W |> join W as c on W.x = c.x;") == ["MPL0412"]
    assert errors(TWO + joined + "view V = from W |> join W as c using t, x;") == ["MPL0412"]


def test_a_hidden_tick_does_not_take_a_name() -> None:
    assert errors("stream S (a int, b int) tick n; view V = from S |> project a |> rename a as n;") == []


def test_a_stream_is_merged_once() -> None:
    declared = TWO + "view Half = from A |> where x > 1; view Both = merge A, B;"
    assert errors(declared + "view V = merge A, Half;") == ["MPL0404"]
    assert errors(declared + "view V = merge Both, Half;") == ["MPL0404"]


def test_phases_of_different_counts_may_overlap() -> None:
    declared = """stream A (x int) tick n phase 0 of 2; stream B (x int) tick n phase 2 of 4;
    stream C (x int) tick n phase 1 of 4; stream D (x int) tick n phase 5 of 6;"""
    assert errors(declared + "view V = merge A, B;") == ["MPL0404"]
    assert errors(declared + "view V = merge C, D;") == ["MPL0404"]
    assert errors(declared + "view V = merge A, C;") == []


def test_a_second_window_is_one_mistake() -> None:
    program = TWO + "view V = from A |> window tumble(t, 1 s) |> window tumble(t, 1 s);"
    assert errors(program) == ["MPL0204"]


def test_mod_of_what_cannot_be_divided() -> None:
    assert errors("function f(a int) returns int = mod(a, 'x');") == ["MPL0309"]
    assert errors("function f(a int) returns int = mod(null, a);") == ["MPL0304"]


def test_a_declaration_with_a_syntax_error_is_not_missing() -> None:
    program = """stream S (a int,, b int);
    function f(x int) returns int = x +;
    broker hub at 7001;
    view V = from S |> where f(a) > 1;
    view W = from V |> where a > nobody;
    subscribe s to W at hub;
    publish S at hub;
    place S near hub;"""
    assert errors(program) == ["MPL0101", "MPL0101", "MPL0101"]
    assert errors("view V = from S |> where a >; view W = from V; view X = from Y;") == ["MPL0101", "MPL0201"]


def test_suggestions_for_a_hostile_program_are_few_and_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand unknown names among three thousand columns once took minutes."""
    compared: list[int] = []

    def counting(word: str, possibilities: Sequence[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
        compared.append(len(possibilities))
        return get_close_matches(word, possibilities, n, cutoff)

    monkeypatch.setattr("mpl.diagnostic.get_close_matches", counting)
    columns = ", ".join(f"column_{number} int" for number in range(3_000))
    wanted = ", ".join(f"colunm_{number}" for number in range(1_000))
    result = checked(f"stream S ({columns}); view V = from S |> project {wanted};")
    assert len(result.diagnostics) == DIAGNOSTICS_MAX
    assert result.diagnostics[0].help == "did you mean `column_0`?"
    assert 0 < len(compared) <= DIAGNOSTICS_MAX
    assert max(compared) <= COMPARED_MAX


def test_what_is_quoted_in_a_help_line_is_one_line() -> None:
    program = "stream S (a int, b text);\nview V = from S |> aggregate c := all(least(a,\n  a)) group by b;"
    (item,) = [item for item in checked(program).diagnostics if item.code.name == "MPL0325"]
    assert item.help == "compare it: `all(... = ...)`"
