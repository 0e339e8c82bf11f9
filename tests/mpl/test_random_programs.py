"""Goal: whatever is written, the checker answers; and what is right, it accepts.

Generated programs use the whole language and must check without an error, with the columns that the generator meant,
before and after formatting. Mutants of them are mostly wrong and must give diagnostics that are fit to be shown, never
a traceback. Every case has a number; `python -m tests.generator` runs more of them.
"""

import pytest

from mpl.check import check
from mpl.diagnostic import Severity
from mpl.source import Source
from tests.generator.cases import failure_of_mutant, failure_of_program, mutant
from tests.generator.program import generate
from tests.generator.properties import wrong_with_any
from tests.generator.shrink import shrink

CHUNKS = 12
"""Parts of about equal length, so that several processes share the work."""
PROGRAMS = 600
MUTANTS = 19_500


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_generated_programs_check(chunk: int, cases: int) -> None:
    for seed in range(chunk, PROGRAMS * cases, CHUNKS):
        failure = failure_of_program(seed)
        if failure is not None:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutants_are_answered(chunk: int, cases: int) -> None:
    each = MUTANTS * cases // CHUNKS
    for seed in range(chunk * each, (chunk + 1) * each):
        failure = failure_of_mutant(seed)
        if failure is not None:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("seed", range(3))
def test_large_programs_check(seed: int) -> None:
    failure = failure_of_program(seed, size=120)
    if failure is not None:
        pytest.fail(failure, pytrace=False)


def test_the_programs_use_the_whole_language() -> None:
    text = " ".join(" ".join(generate(seed).text.lower().split()) for seed in range(600))
    missing = [phrase for phrase in SURFACE if phrase not in text]
    assert not missing


SURFACE = (
    *("stream ", "table ", "view ", "subscribe ", "function ", "broker ", "link ", "publish ", "place ", "protect "),
    *("tune ", "drop ", " unique ", " tick ", " phase ", " event time ", " late ", " live", " closes ", " until "),
    *(" retain ", " key ", " materialize", " inline", "merge (", "|> where ", "|> project ", "project all but "),
    *("|> extend ", "|> rename ", "window tumble", "window hop", "window session", "|> aggregate ", " group by "),
    *("|> join ", "|> left join ", "|> full join ", " default ", "int default ", "asof join ", "|> matching "),
    *(
        "not matching ",
        "asof left join ",
        " using ",
        " on ",
        "|> top ",
        " with ties",
        " with rank ",
        "|> latest per ",
        "|> first per ",
    ),
    *(
        "|> distinct",
        "|> union ",
        "|> minus ",
        "count (distinct ",
        "sum (",
        "avg (",
        "min (",
        "max (",
        "any (",
        "all (",
    ),
    *("emit changes", "emit bounds", "emit final", "emit as of horizon", " every ", " within ", "snapshot off"),
    *("durable", " between ", " not in (", " like ", " is not null", "case when ", "cast (", "coalesce (", "nullif ("),
    *("regexp_extract (", "split_part (", "parse_time (", "epoch (", "hash (", "truncate (", "power (", " python "),
    *(" monotone ", " edge", " memory ", " bandwidth ", "% ;", " semiactive lag ", " passive every ", " upstream"),
    *(" checkpoint every ", " quench o", " near ", " with ", " avoid ", "drop subscribe ", "`", "-- "),
)


def test_mutants_are_mostly_wrong_but_not_only() -> None:
    """Otherwise the mutations would test nothing: too mild, or nothing but syntax errors."""
    groups = {"right": 0, "MPL01": 0, "MPL02": 0, "MPL03": 0, "MPL04": 0}
    for seed in range(1_000):
        checked = check(Source("mutant.mpl", mutant(seed)))
        errors = {item.code.name[:5] for item in checked.diagnostics if item.severity is Severity.ERROR}
        for group in errors or {"right"}:
            groups[group] = groups.get(group, 0) + 1
    assert groups["MPL01"] > 300
    assert min(groups.values()) >= 10, groups


def test_a_failing_text_is_shrunk() -> None:
    text = "stream S (a int, b int);\nview V = from S |> where a > 1 |> extend c := nobody + a * 2;\nview W = from V;"
    small = shrink(text, lambda smaller: "nobody" in smaller and wrong_with_any(smaller) is None)
    assert small == "nobody"


def test_the_same_seed_gives_the_same_program() -> None:
    assert generate(11).text == generate(11).text
    assert generate(11).text != generate(12).text
    assert len(generate(11, size=60).text) > 4 * len(generate(11).text)
