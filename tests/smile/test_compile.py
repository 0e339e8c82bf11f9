"""Goal: `smile.compile` takes text or a path, and says everything that is wrong in one error."""

from __future__ import annotations

from pathlib import Path

import pytest

import smile

SALES = """
stream Sales (item int, qty int[0..1000]);
view Sold = from Sales |> aggregate total := sum(qty) group by item;
"""


def test_text_and_path_give_the_same_program(tmp_path: Path) -> None:
    file = tmp_path / "sales.mpl"
    file.write_text(SALES)
    by_path, by_name, by_text = smile.compile(file), smile.compile(str(file)), smile.compile(SALES)
    assert by_path.modules == by_name.modules
    assert {name: code_of(text) for name, text in by_text.modules.items()} == {
        name: code_of(text) for name, text in by_path.modules.items()
    }
    assert list(by_text.plan.views) == ["Sold"]
    assert by_path.folder == tmp_path


def code_of(module: str) -> list[str]:
    """All but the line that names the file it came from."""
    return [line for line in module.splitlines() if not line.startswith("# From:")]


def test_errors_come_together_with_code_and_place() -> None:
    with pytest.raises(smile.MplError) as caught:
        smile.compile("stream S (a int);\nview V = from S |> where b > 1;\nview W = from T;")
    codes = [item.code.name for item in caught.value.diagnostics]
    assert len(codes) == 2
    assert [item.span.source.position(item.span.start)[0] for item in caught.value.diagnostics] == [2, 3]


def test_what_cannot_run_yet_is_refused_with_a_code() -> None:
    with pytest.raises(smile.MplError) as caught:
        smile.compile("stream S (a int, at time) event time at;\nview V = from S |> window tumble(at, 1 min);")
    assert caught.value.diagnostics[-1].code.name.startswith("CMP")


def test_python_functions_must_be_given() -> None:
    text = """
    function double (x int) returns int python "numbers:double";
    stream S (a int);
    view V = from S |> extend b := double(a);
    """
    with pytest.raises(smile.MplError):
        smile.compile(text)
    program = smile.compile(text, python={("numbers", "double"): lambda x: 2 * x})
    with smile.run(program) as system:
        system.publish("S", {"a": 21})
        assert system.rows("V") == [{"a": 21, "b": 42}]


def test_one_program_runs_in_several_systems_at_once() -> None:
    program = smile.compile(SALES)
    with smile.run(program) as one, smile.run(program) as other:
        one.publish("Sales", {"item": 1, "qty": 2})
        assert one.rows("Sold") == [{"item": 1, "total": 2}]
        assert other.rows("Sold") == []


def test_a_plan_for_one_view_has_nothing_else() -> None:
    program = smile.compile(SALES + "stream Other (x int); view All = from Other;")
    assert {component.name for component in program.plan_for(["Sold"]).components} == {"Sales", "Sold"}
