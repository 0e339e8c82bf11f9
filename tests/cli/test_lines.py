"""Goal: every line of a file is a row or a complaint with its number, and nothing else happens to it."""

import io
from decimal import Decimal

import pytest

from mpl.check import check
from mpl.source import Source
from smile.cli import lines as cli_lines
from smile.cli.lines import Line, bounded, read_csv, read_json_lines

TEXT = "stream S (a int, price decimal(6,2), f float, t text null, b bool);\nview V = from S |> where a > 0;\n"
COLUMNS = {column.name: column for column in check(Source("s.mpl", TEXT)).program.streams["S"].schema.columns}


def json_lines(*lines: str) -> list[Line]:
    return list(read_json_lines([f"{line}\n" for line in lines], COLUMNS))


def csv_lines(*lines: str) -> list[Line]:
    return list(read_csv([f"{line}\n" for line in lines], COLUMNS))


def test_json_numbers_are_exact_where_the_column_is() -> None:
    (line,) = json_lines('{"a": 1, "price": 12.10, "f": 0.5, "t": null, "b": true}')
    assert line.row == {"a": 1, "price": Decimal("12.10"), "f": 0.5, "t": None, "b": True}
    assert isinstance(line.row["f"], float)


def test_empty_lines_count_but_say_nothing() -> None:
    assert [line.number for line in json_lines("", '{"a": 1}', "   ", '{"a": 2}')] == [2, 4]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ('{"x": 1,,}', "not JSON: Expecting property name enclosed in double quotes (character 9)"),
        ("[1]", "not a JSON object but a list"),
        ("7", "not a JSON object but a number"),
        ('"x"', "not a JSON object but text"),
        ("null", "not a JSON object but null"),
        ("[" * 100_000, "not JSON"),
        ('{"a": 1, "b": true, "a": 2}', "column `a` is there twice"),
        ("x" * (16 * 2**20 + 1), "longer than"),
    ],
)
def test_what_is_no_row(text: str, reason: str) -> None:
    before, line, after = json_lines('{"a": 1}', text, '{"a": 2}')
    assert (line.number, line.row) == (2, None)
    assert line.reason.startswith(reason)
    assert (before.row, after.row) == ({"a": 1}, {"a": 2})


def test_csv_cells_become_values_of_their_columns() -> None:
    (line,) = csv_lines("a,price,f,t,b", "1,12.10,0.5,,true")
    assert line == Line(2, {"a": 1, "price": "12.10", "f": 0.5, "t": None, "b": True})


def test_csv_with_a_column_twice_is_not_guessed_at() -> None:
    assert csv_lines("", "a,t, a", "1,x,2", "3,y,4") == [
        Line(2, None, "column `a` is there twice: no line after this one is read")
    ]


def test_csv_quotes_may_span_lines_and_numbers_stay_right() -> None:
    found = csv_lines("a,t", '1,"one', 'two"', "", "x,y", "3,z")
    assert [(line.number, line.row) for line in found] == [
        (3, {"a": 1, "t": "one\ntwo"}),
        (5, None),
        (6, {"a": 3, "t": "z"}),
    ]
    assert found[1].reason == "column `a`: 'x' cannot be read as int"


def test_csv_rows_of_another_width() -> None:
    wide, good, narrow = csv_lines("a,t", "1,x,y", "2,z", "3")
    assert (wide.number, wide.reason) == (2, "3 cells, the first line names 2 columns")
    assert good.row == {"a": 2, "t": "z"}
    assert narrow.row is None


def test_csv_that_is_none_is_told_and_the_rest_goes_on() -> None:
    found = csv_lines("a,t", '1,"x"y', "2,z")
    assert [line.row for line in found] == [None, {"a": 2, "t": "z"}]
    assert "not CSV" in found[0].reason


def test_unknown_columns_are_left_to_the_stream() -> None:
    assert csv_lines("zzz", "1")[0].row == {"zzz": "1"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_without_end_is_one_complaint_and_never_whole_in_memory(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(cli_lines, "LINE_CHARACTERS_MAX", 80)
    text = end.join(["a,t", "1,x", f"2,{'y' * 1_000}", "3,z", "4," + "y" * 500])
    found = list(bounded(io.StringIO(text, newline="")))
    assert [len(line) for line in found] == [3 + len(end), 3 + len(end), 81, 3 + len(end), 81]
    rows = list(read_csv(found, COLUMNS))
    assert [(line.number, line.row) for line in rows] == [
        (2, {"a": 1, "t": "x"}),
        (3, None),
        (4, {"a": 3, "t": "z"}),
        (5, None),
    ]
    assert rows[1].reason.startswith("not CSV: longer than ")
    whole = f'{{"a": 1}}{end}{{"a": 2, "t": "{"y" * 1_000}"}}{end}{{"a": 3}}'
    found = list(bounded(io.StringIO(whole, newline="")))
    assert [(line.number, line.row) for line in read_json_lines(found, COLUMNS)] == [
        (1, {"a": 1}),
        (2, None),
        (3, {"a": 3}),
    ]
