"""Goal: each rule for expressions claims as much as it can (that it claims no more is tested with histories).

Columns: `q` fixed, `s` rising from 0, `lo` falling, `b` signed (a pair), `mx` rising and null until known, `d` replaced
by the latest, `an` a condition that becomes true, `a` an average.
"""

from __future__ import annotations

import pytest

from mpl.check import Checked, check
from mpl.explain import explain
from mpl.knowledge import Kind, Nulls, Path
from mpl.source import Source
from tests.measures import least_cpu_s

COLUMNS = """
stream U (k int[0..9], q int[0..9], x int[-4..4]) unique k;
stream S (k int[0..9], v int[0..5], w int, n int[0..5] null, f bool, t text);
function up(i int) returns int python "m:f" monotone up;
function careful(i int null) returns int python "m:h" monotone up;
function wild(i int) returns int python "m:g";
view base = from U |> join (from S |> aggregate s := sum(v), lo := min(v), hv := max(v), b := sum(w), mx := max(n),
    d := last(v), an := any(f), al := all(f), a := avg(v), mt := max(t) group by k) using k;
"""


def checked(definition: str) -> Checked:
    return check(Source("t.mpl", f"{COLUMNS} view V = from base |> {definition};")).require()


KINDS = {
    "q + x": "final",
    "5": "final",
    "s + 1": "up rises",
    "s + q": "up rises",
    "1 - s": "down falls",
    "q - s": "pn falls",
    "s - q": "up rises",
    "s - s": "pn mixed",
    "s - lo": "up rises",
    "lo - s": "down falls",
    "q - lo": "up rises",
    "s + lo": "pn mixed",
    "b + 1": "pn mixed",
    "b - s": "pn mixed",
    "b - b": "pn mixed",
    "q - s - s": "pn falls",
    "s - (q - s)": "pn rises",
    "(q - s) * 2": "pn falls",
    "(q - s) * -2": "pn rises",
    "(q - s) / 2": "down falls",
    "-(q - s)": "pn rises",
    "-s": "down falls",
    "s * 3": "up rises",
    "s * -3": "down falls",
    "s * q": "up rises",
    "s * x": "versioned mixed",
    "s * s": "up rises",
    "s * lo": "versioned mixed",
    "hv * lo": "interval mixed",
    "s / 2": "up rises",
    "s / x": "versioned mixed",
    "s % 2": "versioned mixed",
    "abs(s)": "versioned mixed",
    "floor(cast(s as decimal(10,2)))": "up rises",
    "cast(s as text)": "versioned mixed",
    "greatest(s, 3)": "up rises",
    "least(lo, q)": "down falls",
    "greatest(s, lo)": "versioned mixed",
    "coalesce(mx, 0)": "up rises",
    "coalesce(mx, 3)": "versioned mixed",
    "mx + 1": "up rises, null until known",
    "d * 2": "dom mixed",
    "d + s": "versioned mixed",
    "d + d": "dom mixed",
    "a + 1": "versioned mixed",
    "up(s)": "up rises",
    "wild(s)": "versioned mixed",
    "careful(mx)": "versioned mixed",
    "wild(q)": "final",
    "mt || 'x'": "versioned mixed",
    "case when q > 3 then s else 0 end": "up rises",
    "case when s > 3 then 1 else 0 end": "up rises",
    "case when s > 3 then 0 else 1 end": "down falls",
    "case when s < 3 then 0 else 1 end": "up rises",
    "case when s > 9 then 2 when s > 3 then 1 else 0 end": "up rises",
    "case when s > 9 then 1 when s > 3 then 2 else 0 end": "versioned mixed",
    "case when s > 3 then q end": "final, null until known",
    "case when b > 3 then 1 else 0 end": "versioned mixed",
    "case when s > 3 then 'many' else 'few' end": "versioned mixed",
    "s > 3": "up rises",
    "s < 3": "down falls",
    "mx is null": "down falls",
    "mx > 3": "up rises, null until known",
    "an and s > 3": "up rises",
    "an or not al": "up rises",
    "not an": "down falls",
    "b > 3": "versioned mixed",
}


@pytest.mark.parametrize(("text", "expected"), KINDS.items())
def test_kind_of_a_value(text: str, expected: str) -> None:
    known = checked(f"extend y := {text}").knowledge
    assert known is not None
    column = known.views["V"].columns[-1]
    shown = column.kind.value if column.kind is Kind.FINAL else f"{column.kind.value} {column.motion.value}"
    assert shown + (", null until known" if column.nulls is Nulls.UNTIL_KNOWN else "") == expected


PATHS = {
    "q > 3": Path.RISING,
    "s > 3": Path.RISING,
    "s >= q": Path.RISING,
    "s < 3": Path.PULSE,
    "q - s > 0": Path.PULSE,
    "lo < 3": Path.RISING,
    "lo > 3": Path.PULSE,
    "s > lo": Path.RISING,
    "s > s + 1 - 1": Path.VERSIONED,
    "b > 0": Path.VERSIONED,
    "s = 3": Path.PULSE,
    "s <> 3": Path.VERSIONED,
    "hv = 5": Path.RISING,
    "hv <> 5": Path.PULSE,
    "lo = 0": Path.RISING,
    "s between 3 and 5": Path.PULSE,
    "s not between 3 and 5": Path.VERSIONED,
    "s in (3, 4)": Path.VERSIONED,
    "q in (3, 4)": Path.RISING,
    "mt like 'a%'": Path.VERSIONED,
    "mx > 3": Path.RISING,
    "mx < 3": Path.PULSE,
    "not (mx < 3)": Path.RISING,
    "not (mx > 3)": Path.PULSE,
    "mx is null": Path.PULSE,
    "mx is not null": Path.RISING,
    "s > 3 and lo < 2": Path.RISING,
    "s > 3 and lo > 2": Path.PULSE,
    "s > 3 or lo < 2": Path.RISING,
    "s > 3 or lo > 2": Path.VERSIONED,
    "s = 3 or s = 4": Path.VERSIONED,
    "s = 3 and lo > 1": Path.PULSE,
    "an": Path.RISING,
    "an = true": Path.RISING,
    "an = false": Path.PULSE,
    "not an": Path.PULSE,
    "d > 2": Path.VERSIONED,
    "a > 2": Path.VERSIONED,
    "case when q > 3 then an else s > 3 end": Path.RISING,
}


@pytest.mark.parametrize(("text", "expected"), PATHS.items())
def test_path_of_a_condition(text: str, expected: Path) -> None:
    """Rows of `base` appear and stay, so a condition that is true until it is false makes a pulse."""
    known = checked(f"where {text}").knowledge
    assert known is not None
    assert known.views["V"].path is expected


def test_deep_expressions_and_long_chains_do_not_recurse() -> None:
    total = " + ".join(["s"] * 128)
    known = checked(f"extend y := {total}").knowledge
    assert known is not None
    assert known.views["V"].columns[-1].kind is Kind.UP
    steps = "".join(f" |> where q > {n % 9}" for n in range(190))
    chain = f"{COLUMNS} view V0 = from base{steps};" + "".join(
        f" view V{n} = from V{n - 1}{steps};" for n in range(1, 50)
    )
    result = check(Source("t.mpl", chain)).require()
    assert result.knowledge is not None
    assert result.knowledge.views["V49"].path is Path.RISING


def test_500_views_are_analysed_quickly() -> None:
    """A limit that only a change of order would break: the bench reports the real number."""
    from mpl.checker import check_program
    from mpl.diagnostic import Diagnostics
    from mpl.knowledge import analyse
    from mpl.parser import parse

    text = COLUMNS + "".join(
        f"view A{n} = from S |> aggregate s := sum(v), c := count() where f group by k |> where s > {n};\n"
        f"view B{n} = from U |> left join A{n} using k default s := 0 |> extend left_ := q - s |> where left_ > 0;\n"
        for n in range(250)
    )
    diagnostics = Diagnostics()
    program = check_program(parse(Source("t.mpl", text), diagnostics), diagnostics)
    assert not diagnostics.has_errors
    known = analyse(program, diagnostics)
    assert len(known.views) == 501
    assert least_cpu_s(lambda: analyse(program, diagnostics), within=1.5) < 1.5
    assert explain(program, known).to_text()
