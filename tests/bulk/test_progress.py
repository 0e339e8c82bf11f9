"""Goal: people who wait are told rows, rate and time left; never less than before, not too often, and nothing if they
want quiet. Without Spark."""

from __future__ import annotations

import pytest

from smile.bulk.progress import LINE_S, Reached, _Lines, _Watch, watched


def test_words() -> None:
    assert Reached("V", 1_000_000, 0.25, 10.0).words() == (
        "V: about 250,000 of 1,000,000 rows, 25,000 a second after 10 s (30 s left)"
    )
    assert Reached("V", None, 0.5, 4.0).words() == "V: 50% after 4 s (4 s left)"
    assert Reached("V", 7, None, 4.0).words() == "V: 7 rows after 4 s"
    assert Reached("V", 7, 0.0, 4.0).words() == "V: about 0 of 7 rows, 0 a second after 4 s"


def test_what_is_done_never_goes_back() -> None:
    """Spark begins further jobs as it goes, so that the part of the known tasks may fall."""
    tasks = iter([(0, 0), (8, 10), (8, 40), (40, 40)])
    watch = _Watch(lambda: next(tasks), "V", 100, lambda _: None)
    assert [watch.reached().part for _ in range(4)] == [0.0, 0.8, 0.8, 1.0]
    assert _Watch(None, "V", 100, lambda _: None).reached().part is None


def test_lines_are_few_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tell = _Lines()
    for tenths in range(round(LINE_S * 25)):
        tell(Reached("V", None, 0.5, tenths / 10))
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split()[3] for line in said.err.splitlines()] == ["5", "10"]


def test_quiet_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    with watched(object(), "V", rows=5, quiet=True):  # an object has no status tracker
        pass
    assert capsys.readouterr().err == ""
