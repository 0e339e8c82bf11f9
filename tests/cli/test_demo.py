"""Goal: the verdict of a demonstration can be bad, it has a truth of its own, and generated rows fit the program."""

from pathlib import Path
from random import Random

import pytest

import smile
from smile.cli.demo import Verdict, comparable_views, recomputed
from smile.cli.traffic import Ledger, random_rows

EXAMPLES = ("tickets", "ledger", "orders", "sensors", "leaderboard")


@pytest.mark.parametrize("name", EXAMPLES)
def test_generated_rows_fit_every_example(name: str) -> None:
    program = smile.compile(f"examples/{name}/{name}.mpl")
    with smile.run(program) as system:
        for stream, declared in program.checked.program.streams.items():
            source = random_rows(declared, Random(1))
            for _ in range(20):
                assert len(system.publish_many(stream, next(source))) == 5


def test_the_truth_is_recomputed_from_the_ledger_in_the_order_of_ticks() -> None:
    program = smile.compile(
        "stream A (k int, x int[0..9]);\nstream B (k int, y int[0..9]);\n"
        "view SA = from A |> aggregate s := sum(x) group by k;\nview All = from A |> where x > 0;\n"
    )
    ledger = Ledger()
    ledger.note("A", (30, 10), [{"k": 1, "x": 3}, {"k": 1, "x": 4}])
    ledger.note("B", (20,), [{"k": 1, "y": 5}])
    assert [(stream, len(rows)) for stream, rows in ledger.in_order()] == [("A", 1), ("B", 1), ("A", 1)]
    assert ledger.of("A") == [{"k": 1, "x": 4}, {"k": 1, "x": 3}]
    assert len(ledger) == 3
    assert recomputed(program)(ledger)["SA"] == [{"k": 1, "s": 7}]


def test_views_that_show_ticks_are_not_compared() -> None:
    program = smile.compile(Path("examples/tickets/tickets.mpl"))
    assert "Buyers" not in comparable_views(program)
    assert "Available" in comparable_views(program)


def test_a_bad_verdict_is_one() -> None:
    good = Verdict(10, 1, 5, 3, 2, ())
    bad = Verdict(10, 1, 5, 3, 2, ("V: shown but not true",))
    assert good.is_good
    assert str(good).endswith("equal to the recomputed truth (and 1 other views too)")
    assert not bad.is_good
    assert "WRONG: V: shown but not true" in str(bad)
