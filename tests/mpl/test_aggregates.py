"""Goal: aggregates take what they can aggregate and declare what they give."""

import pytest

from mpl import nodes
from mpl.aggregates import AggregateResult, aggregate_type
from mpl.diagnostic import Diagnostics
from mpl.parser import parse
from mpl.source import Source
from tests.mpl.written import written

COLUMNS = (
    "i int, q int[0..1000], d decimal(10,2), w decimal(18,9), f float, b bool, s text, t time, p duration, "
    "e enum('x','y'), n int null"
)


def aggregate(text: str, *, grouped: bool = True) -> tuple[AggregateResult | None, list[str]]:
    diagnostics = Diagnostics()
    program = parse(Source("t.mpl", f"view V = from S |> aggregate x := {text};"), diagnostics)
    view = program.statements[0]
    assert isinstance(view, nodes.ViewDecl)
    operator = view.relation.operators[0]
    assert isinstance(operator, nodes.Aggregate)
    call = operator.definitions[0].value
    argument = written(call.argument.span.text, COLUMNS).typed if call.argument is not None else None
    result = aggregate_type(call, argument, grouped=grouped, diagnostics=diagnostics)
    return result, [diagnostic.code.name for diagnostic in diagnostics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count()", "int [0..None]"),
        ("count(n)", "int [0..None]"),
        ("count(distinct s)", "int [0..None]"),
        ("sum(i)", "int [None..None]"),
        ("sum(q)", "int [0..None]"),
        ("sum(-q)", "int [None..0]"),
        ("sum(n)", "int [None..None]"),
        ("sum(d)", "decimal(18,2) [None..None]"),
        ("sum(f)", "float [None..None]"),
        ("sum(p)", "duration [None..None]"),
        ("avg(q)", "decimal(18,6) [0..1000000000]"),
        ("avg(d)", "decimal(18,6) [None..None]"),
        ("avg(w)", "decimal(18,9) [None..None]"),
        ("avg(f)", "float [None..None]"),
        ("avg(p)", "duration [None..None]"),
        ("min(q)", "int [0..1000]"),
        ("max(s)", "text [None..None]"),
        ("max(t)", "time [None..None]"),
        ("min(n)", "int null [None..None]"),
        ("max(q) where b", "int null [0..1000]"),
        ("sum(q) where b", "int [0..None]"),
        ("first(e)", "enum('x', 'y') [None..None]"),
        ("last(b)", "bool [None..None]"),
        ("any(b)", "bool [None..None]"),
        ("all(q > 3) where b", "bool [None..None]"),
    ],
)
def test_results(text: str, expected: str) -> None:
    result, problems = aggregate(text)
    assert problems == []
    assert result is not None
    null = " null" if result.nullable else ""
    assert f"{result.type}{null} [{result.bounds.low}..{result.bounds.high}]" == expected


def test_without_groups_there_may_be_nothing() -> None:
    for text, nullable in (
        ("count()", False),
        ("sum(q)", False),
        ("any(b)", False),
        ("min(q)", True),
        ("avg(q)", True),
    ):
        result, _ = aggregate(text, grouped=False)
        assert result is not None
        assert result.nullable is nullable, text


@pytest.mark.parametrize(
    "text",
    [
        "sum()",
        "sum(s)",
        "sum(b)",
        "sum(t)",
        "avg(t)",
        "avg(e)",
        "min(b)",
        "max(e)",
        "any(i)",
        "all(s)",
        "min(distinct i)",
        "first(distinct i)",
        "count(null)",
    ],
)
def test_arguments_that_cannot_be_aggregated(text: str) -> None:
    result, problems = aggregate(text)
    assert result is None
    assert problems == ["MPL0325"]
