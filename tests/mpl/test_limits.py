"""Goal: no text makes the front end crash, recurse, or take more time than its length deserves.

Each hostile text is parsed at two sizes. Four times the text may take eight times as long on a noisy machine; anything
quadratic takes sixteen times, and anything recursive would have crashed.
"""

import random
import sys
from collections.abc import Callable
from time import thread_time

import pytest

from mpl.check import check
from mpl.diagnostic import DIAGNOSTICS_MAX, Diagnostics, Severity
from mpl.formatter import format_source
from mpl.nodes import Program
from mpl.parser import parse
from mpl.render import render_all
from mpl.source import Source
from mpl.syntax import limits
from mpl.syntax.tables import tables

MIB = limits.TEXT_BYTES_MAX


def parsed(text: str) -> tuple[Program, list[str]]:
    """The program, and the codes of its diagnostics; they are rendered too, since that must be as safe."""
    diagnostics = Diagnostics()
    program = parse(Source("hostile.mpl", text), diagnostics)
    rendered = render_all(diagnostics)
    assert len(rendered) <= len(diagnostics) * 1000 + 100, "a diagnostic must fit on a screen"
    return program, [item.code.name for item in diagnostics]


def where(body: str) -> str:
    return f"view v = from S |> where {body};"


def words(number: int) -> str:
    choice = random.Random(number).choice
    known = (
        "view",
        "from",
        "where",
        "|>",
        "(",
        ")",
        ",",
        ":=",
        "x",
        "1",
        "'a'",
        ";",
        "case",
        "when",
        "not",
        "-",
        "and",
        "[",
    )
    return " ".join(choice(known) for _ in range(number))


HOSTILE: dict[str, tuple[Callable[[int], str], str | None]] = {
    "parentheses": (lambda n: where("(" * n + "x" + ")" * n), "MPL0181"),
    "open parentheses": (lambda n: where("(" * n), "MPL0181"),
    "closing parentheses": (lambda n: ")" * n, "MPL0105"),
    "calls": (lambda n: where("f(" * n + "x" + ")" * n), "MPL0181"),
    "relations": (lambda n: "view v = " + "from (" * n + "from S" + ")" * n + ";", "MPL0181"),
    "cases": (lambda n: where("case when a then " * n + "1" + " end" * n), "MPL0181"),
    "cases in else": (lambda n: where("case when a then 1 else " * n + "1" + " end" * n), "MPL0181"),
    "minus signs": (lambda n: where("- " * n + "1"), "MPL0181"),
    "nots": (lambda n: where("not " * n + "x"), "MPL0181"),
    "sum": (lambda n: where("x + " * n + "x"), "MPL0183"),
    "product": (lambda n: where("x * " * n + "x"), "MPL0183"),
    "concatenation": (lambda n: where("x || " * n + "x"), "MPL0183"),
    "conditions": (lambda n: where("x and " * n + "x"), None),
    "values": (lambda n: where("x in (" + "1, " * n + "1)"), None),
    "branches": (lambda n: where("case " + "when a then 1 " * n + "end"), None),
    "columns": (lambda n: "stream S (" + "a int, " * n + "b int);", None),
    "definitions": (lambda n: "view v = from S |> extend " + "a := 1, " * (n * 11) + "b := 1;", "MPL0182"),
    "steps": (lambda n: "view v = from S" + " |> distinct" * (n * 11) + ";", "MPL0182"),
    "statements": (lambda n: "view v = from S;\n" * n, None),
    "statements without end": (lambda n: "view v = from S\n" * n, "MPL0102"),
    "bad statements": (lambda n: "view v = frm S;\n" * n, "MPL0101"),
    "bad statements without end": (lambda n: "view v = frm S\n" * n, "MPL0101"),
    "bad statements on one line": (lambda n: "view view view " * n, "MPL0101"),
    "semicolons": (lambda n: ";" * n, "MPL0103"),
    "names": (lambda n: "a " * n, "MPL0101"),
    "numbers": (lambda n: "1   " * n, "MPL0101"),
    "dots": (lambda n: "1." * n, "MPL0101"),
    "digits": (lambda n: where("x > " + "9" * n), "MPL0185"),
    "decimal digits": (lambda n: where("x > 1." + "9" * n), "MPL0185"),
    "exponent": (lambda n: where("x > 1e" + "9" * n), "MPL0185"),
    "duration": (lambda n: where("x > " + "9" * n + " d"), "MPL0185"),
    "long name": (lambda n: "view " + "a" * n + " = from S;", "MPL0184"),
    "long name in backticks": (lambda n: "view `" + "a" * n + "` = from S;", "MPL0184"),
    "wide letters": (lambda n: "ä" * n, "MPL0116"),
    "single quotes": (lambda n: "'" * (2 * n + 1), "MPL0106"),
    "quotes on many lines": (lambda n: "'a\n" * n, "MPL0106"),
    "quotes before semicolons": (lambda n: '"a;   \n' * n, "MPL0106"),
    "backticks": (lambda n: "`" * n, "MPL0106"),
    "curly quotes": (lambda n: "\u2018" * n, "MPL0107"),
    "comment openings": (lambda n: "/*" * n, "MPL0109"),
    "comment stars": (lambda n: "/" + "*" * n, "MPL0109"),
    "hashes": (lambda n: "#\n" * n, "MPL0109"),
    "comments": (lambda n: "--\n" * n, None),
    "blanks": (lambda n: " " * n * 10, None),
    "line breaks": (lambda n: "\n" * n * 10, None),
    "stray characters": (lambda n: "@" * n, "MPL0110"),
    "various stray characters": (lambda n: "@~" * n, "MPL0110"),
    "zeros": (lambda n: "\0" * n, "MPL0111"),
    "half characters": (lambda n: "\ud800" * n, "MPL0111"),
    "zeros in a comment": (lambda n: "--" + "\0" * n, "MPL0111"),
    "random words": (words, "MPL0101"),
}


def seconds(text: str) -> float:
    diagnostics = Diagnostics()
    source = Source("hostile.mpl", text)
    before = thread_time()
    parse(source, diagnostics)
    return thread_time() - before


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_are_refused_in_linear_time(kind: str) -> None:
    make, code = HOSTILE[kind]
    small, large = make(1_000), make(4_000)
    assert len(large) <= MIB
    for text in (small, large):
        assert (code in parsed(text)[1]) if code else parsed(text)[1] == []
    for _attempt in range(5):
        # 2 ms: below that the clock and other processes say more than the text does.
        if seconds(large) <= 8 * max(seconds(small), 0.002):
            return
    raise AssertionError(f"{kind}: four times the text takes more than eight times as long")


@pytest.mark.parametrize("kind", ["open parentheses", "quotes on many lines", "blanks", "digits", "zeros", "hashes"])
def test_a_whole_mebibyte(kind: str) -> None:
    make, code = HOSTILE[kind]
    text = make(MIB)[: MIB - 1]
    assert (code in parsed(text)[1]) if code else parsed(text)[1] == []


def test_random_garbage() -> None:
    choice = random.Random(7)
    for _ in range(20):
        text = "".join(chr(choice.randrange(1, 0x250)) for _ in range(2_000))
        assert parsed(text)[1]


# --- the limits themselves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda n: where("(" * n + "x" + ")" * n), "MPL0181"),
        (lambda n: where("- " * n + "x"), "MPL0181"),
        (lambda n: where("not " * n + "x"), "MPL0181"),
        (lambda n: "view v = " + "from (" * n + "from S" + ")" * n + ";", "MPL0181"),
        (lambda n: where("f(" * (n - 1) + "-x" + ")" * (n - 1)), "MPL0181"),
    ],
)
def test_nesting_up_to_the_limit(make: Callable[[int], str], code: str) -> None:
    fewer = limits.NESTING_MAX - 1
    assert parsed(make(fewer))[1] == []
    assert parsed(make(limits.NESTING_MAX + 2))[1] == [code]


def test_nesting_without_parentheses_counts_too() -> None:
    """Few parentheses can hold many levels; what counts is how deep the checker would have to go."""
    level = "1 or 1 and not 1 = 1 || 1 + 1 * -("
    assert parsed(where(level * 7 + "1" + ")" * 7))[1] == []
    assert parsed(where(level * 12 + "1" + ")" * 12))[1] == ["MPL0181"]


def test_the_deepest_program_can_be_compared_printed_and_formatted() -> None:
    """What passes must not break anything that recurses over nodes."""
    level = "1 or 1 and not 1 = 1 || 1 + 1 * -("
    for text in (where(level * 7 + "1" + ")" * 7), "view v = " + "from (" * 63 + "from S" + ")" * 63 + ";"):
        program, codes = parsed(text)
        assert codes == []
        assert program == parsed(text)[0]
        assert len(repr(program)) > 100
        assert hash(program) == hash(parsed(text)[0])
        assert format_source(Source("deep.mpl", text))
    assert sys.getrecursionlimit() <= 1000, "the test means nothing with a higher limit"


def test_terms_up_to_the_limit() -> None:
    assert parsed(where("x + " * (limits.TERMS_MAX - 1) + "x"))[1] == []
    assert parsed(where("x + " * limits.TERMS_MAX + "x"))[1] == ["MPL0183"]


def test_columns_and_operators_up_to_the_limit() -> None:
    columns = "stream S (" + "a int, " * (limits.COLUMNS_MAX - 1) + "b int);"
    assert parsed(columns)[1] == []
    assert parsed(columns + "\nstream T (a int);")[1] == ["MPL0182"]
    operators = "view v = from S" + " |> distinct" * limits.OPERATORS_MAX + ";"
    assert parsed(operators)[1] == []
    assert parsed(operators + "\nview w = from v |> distinct;")[1] == ["MPL0182"]


def test_names_up_to_the_limit() -> None:
    assert parsed(f"view {'a' * limits.NAME_CHARACTERS_MAX} = from S;")[1] == []
    assert parsed(f"view `{'ä' * limits.NAME_CHARACTERS_MAX}` = from S;")[1] == []
    assert parsed(f"view {'a' * (limits.NAME_CHARACTERS_MAX + 1)} = from S;")[1] == ["MPL0184"]


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        ("9223372036854775807", True),
        ("9223372036854775808", False),
        ("-9223372036854775808", True),
        ("-9223372036854775809", False),
        ("x - 9223372036854775808", False),
        ("000000000000000000000000000001", True),
        ("1." + "0" * 37, True),
        ("1." + "0" * 38, False),
        ("1e308", True),
        ("1e309", False),
        ("106751991 d", True),
        ("106751992 d", False),
    ],
)
def test_numbers_up_to_the_limit(number: str, fits: bool) -> None:
    assert parsed(where(f"a = {number}"))[1] == ([] if fits else ["MPL0185"])


def test_text_up_to_the_limit() -> None:
    assert parsed("-- " + "a" * (MIB - 3))[1] == []
    assert parsed("-- " + "a" * (MIB - 2))[1] == ["MPL0180"]
    assert parsed("-- " + "ä" * (MIB // 2))[1] == ["MPL0180"], "bytes count, not characters"


def test_errors_are_counted_not_kept() -> None:
    assert len(parsed("@ ; " * 1000)[1]) == DIAGNOSTICS_MAX


def test_a_long_program_is_parsed_fast() -> None:
    """5,000 lines; the bound is far above what it takes, so that only a change of order fails."""
    view = (
        "view v = from S |> where a > 1 and b < 12.50\n" + "  |> extend d := lower(c) || 'x', e := a * 2\n" * 8 + ";\n"
    )
    text = view * 500
    assert text.count("\n") == 5_000
    tables()
    assert min(seconds(text) for _ in range(2)) < 4


def test_wide_relations_through_many_steps_are_refused_before_they_cost_time() -> None:
    """Each of 3,000 columns would be carried through 9,500 steps: within the other limits, but 28 million columns."""
    columns = ", ".join(f"c{number} int" for number in range(3_000))
    steps = " |> where c0 > 0" * 190
    views = "".join(f"view V{number} = from S{steps};\n" for number in range(50))
    checked = check(Source("wide.mpl", f"stream S ({columns});\n{views}"))
    errors = [item for item in checked.diagnostics if item.severity is Severity.ERROR]
    assert [item.code.name for item in errors] == ["MPL0182"]
    assert "columns in all" in errors[0].message
