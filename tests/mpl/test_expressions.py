"""Goal: the expression checker types and folds what is right, and says once, at the right place, what is not."""

import re
from itertools import product

import pytest

from mpl import nodes
from mpl.declared_types import declared_bounds, declared_type, literal_value
from mpl.diagnostic import Diagnostics
from mpl.expressions import (
    NOT_CONSTANT,
    FunctionTable,
    assign,
    can_convert,
    check_value,
    constant_value,
    convert,
)
from mpl.expressions.build import constant
from mpl.expressions.walk import measure
from mpl.parser import parse
from mpl.scope import Scope
from mpl.source import Source, Span
from mpl.typed import Apply, CaseOf, ColumnRef, Const, PythonCall
from mpl.types import (
    OPEN,
    Bounds,
    DecimalType,
    EnumType,
    ErrorType,
    IntType,
    TextType,
    TimeType,
    Type,
    Value,
)
from tests.mpl.written import Written, value_of, written

COLUMNS = (
    "i int, q int[0..1000], d decimal(10,2), f float, b bool, s text, t time, p duration, "
    "e enum('open','closed'), n int null, m text(5)"
)
SPAN = Span(Source("t.mpl", "somewhere"), 0, 9)


def codes(text: str, functions: str = "") -> list[str]:
    return Written(text, COLUMNS, functions).codes


# --- what is right --------------------------------------------------------------------------------------------------


def test_columns_carry_their_declaration() -> None:
    column = written("q", COLUMNS).typed
    assert isinstance(column, ColumnRef)
    assert (column.index, column.name, column.bounds, column.nullable) == (1, "q", Bounds(0, 1000), False)
    assert written("n", COLUMNS).typed.nullable


def test_sugar_becomes_one_form() -> None:
    between = written("q not between 1 and 2", COLUMNS).typed
    assert isinstance(between, Apply)
    assert between.function == "not"
    inner = between.arguments[0]
    assert isinstance(inner, Apply)
    assert inner.function == "and"
    assert [part.function for part in inner.arguments if isinstance(part, Apply)] == ["greater_equal", "less_equal"]
    case = written("case when b then 1 end", COLUMNS).typed
    assert isinstance(case, CaseOf)
    assert isinstance(case.otherwise, Const)
    assert (case.otherwise.value, case.otherwise.type) == (None, IntType())
    modulo = written("mod(i, 3)", COLUMNS).typed
    assert isinstance(modulo, Apply)
    assert modulo.function == "modulo"
    joined = written("s || '-' || m || s", COLUMNS).typed
    assert isinstance(joined, Apply)
    assert (joined.function, len(joined.arguments)) == ("concat", 4)


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("d > 10", DecimalType(10, 2), 1000),
        ("d > 10.5", DecimalType(10, 2), 1050),
        ("i = 3.00", IntType(), 3),
        ("f < 3", None, 3.0),
        ("e = 'open'", EnumType(("open", "closed")), "open"),
        ("d > 10.555", DecimalType(5, 3), 10555),
        ("i < 2.5", DecimalType(2, 1), 25),
        ("d < 1000000000", IntType(), 10**9),
    ],
)
def test_constants_take_the_type_of_the_other_side_where_that_is_exact(
    text: str, type: Type | None, value: Value
) -> None:
    compared = written(text, COLUMNS).typed
    assert isinstance(compared, Apply)
    right = compared.arguments[1]
    assert isinstance(right, Const)
    assert right.value == value
    assert type is None or right.type == type


def test_comparison_between_scales_is_exact() -> None:
    columns = "a int, b decimal(18,6)"
    assert written("a < b", columns).value(10**18 - 1, 10**18 - 1) is False
    assert written("a > b", columns).value(1, 999_999) is True
    assert written("a = b", columns).value(1, 1_000_000) is True


def test_constants_are_folded_and_known() -> None:
    folded = written("2 * 3 + length('abc')", COLUMNS).typed
    assert isinstance(folded, Const)
    assert (folded.value, folded.bounds) == (9, Bounds(9, 9))
    assert constant_value(folded) == 9
    assert constant_value(written("nullif(1, 1)").typed) is None
    assert constant_value(written("i + 1", COLUMNS).typed) is NOT_CONSTANT
    assert constant_value(written("case when true then 4 else 5 end").typed) == 4
    assert constant_value(written("power(2, 3)").typed) == 8.0


# --- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + s", ["MPL0301"]),
        ("t + 5", ["MPL0301"]),
        ("p * 1.5", ["MPL0301"]),
        ("-s", ["MPL0301"]),
        ("t > '2026-01-01'", ["MPL0302"]),
        ("s = 5", ["MPL0302"]),
        ("b < true", ["MPL0302"]),
        ("e > 'open'", ["MPL0302"]),
        ("s between 1 and 2", ["MPL0302"]),
        ("i and b", ["MPL0303"]),
        ("not s", ["MPL0303"]),
        ("case when i then 1 end", ["MPL0303"]),
        ("n = null", ["MPL0304"]),
        ("i + null", ["MPL0304"]),
        ("-null", ["MPL0304"]),
        ("length(null)", ["MPL0304"]),
        ("i in (1, null)", ["MPL0304"]),
        ("case when b then 1 else 'x' end", ["MPL0305"]),
        ("coalesce(i, t)", ["MPL0305"]),
        ("qty + 1", ["MPL0202"]),
        ("S.qty + 1", ["MPL0202"]),
        ("lenght(s)", ["MPL0307"]),
        ("length()", ["MPL0308"]),
        ("length(s, s)", ["MPL0308"]),
        ("greatest(i)", ["MPL0308"]),
        ("length(i)", ["MPL0309"]),
        ("s || i", ["MPL0309"]),
        ("year(p)", ["MPL0309"]),
        ("greatest(b, i)", ["MPL0309"]),
        ("mod(i, s)", ["MPL0309"]),
        ("sum(i)", ["MPL0311"]),
        ("max(i, 2)", ["MPL0311"]),
        ("e = 'opn'", ["MPL0312"]),
        ("e in ('open', 'x')", ["MPL0312"]),
        ("s like m", ["MPL0313"]),
        ("regexp_match(s, m)", ["MPL0313"]),
        ("round(d, i)", ["MPL0313"]),
        ("regexp_match(s, '(')", ["MPL0314"]),
        ("format(t, '%Q')", ["MPL0314"]),
        ("parse_time(s, '%H')", ["MPL0314"]),
        ("s like 'a\\'", ["MPL0314"]),
        ("1 / 0", ["MPL0315"]),
        ("i / (5 - 5)", ["MPL0315"]),
        ("mod(i, 0)", ["MPL0315"]),
        ("i + 9223372036854775807 * 2", ["MPL0315"]),
        ("cast('x' as int)", ["MPL0315"]),
        ("substring(s, 0)", ["MPL0315"]),
        ("truncate(t, 0 s)", ["MPL0315"]),
        ("round(d, 19)", ["MPL0315"]),
        ("time '2026-13-01'", ["MPL0317"]),
        ("cast(p as int)", ["MPL0318"]),
        ("cast(i as time)", ["MPL0318"]),
        ("cast(i as decimal(40,2))", ["MPL0323"]),
    ],
)
def test_one_mistake_gives_one_message(text: str, expected: list[str]) -> None:
    checked = Written(text, COLUMNS)
    assert checked.codes == expected
    assert checked.expr is not None
    # The mistake is inside something else: that is not complained about again.
    assert codes(f"coalesce(hash({text}) + 1 > 2 and true, false)") == expected


def test_independent_mistakes_are_all_reported() -> None:
    assert codes("case when i then nope else 1 / 0 end + lenght(s) + (t > 5)") == [
        "MPL0303",
        "MPL0202",
        "MPL0315",
        "MPL0307",
        "MPL0302",
    ]


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("t > '2026-01-01'", "write `time '2026-01-01'`"),
        ("t > 'soon'", "a time is written `time '2026-01-31 12:00:00'`"),
        ("i = '5'", "write `5` without the quotes"),
        ("p > 5", "a duration has a unit: `5 s`"),
        ("t + 5", "a duration has a unit: `5 s`"),
        ("p > -5", "a duration has a unit: `-5 s`"),
        ("t + (2 + 3)", "write `(2 + 3) * 1 s`"),
        ("t + '5'", "a duration is written with a unit and without quotes: `10 s`"),
        ("'2026-01-01' + 1 d", "write `time '2026-01-01'`"),
        ("5 - t", None),
        ("t + '2026-01-01'", None),
        ("i + 'a'", None),
        ("i + e", None),
        ("s + s", "`||` joins texts"),
        ("s + 1", "to join texts write `|| cast(1 as text)`"),
        ("s || i", "write `cast(i as text)`"),
        ("n = null", "write `n is null` or `n is not null`"),
        ("qq + 1", "did you mean `q`?"),
        ("e = 'closd'", "did you mean `closed`?"),
        ("e = 'x'", "the values are ('open', 'closed')"),
        ("len(s)", "it is called `length` here"),
        ("lenght(s)", "did you mean `length`?"),
        ("max(i, 2)", "`greatest` takes the largest of several values of one row"),
        ("sum(i)", "first `|> aggregate x := sum(...) group by ...`, then use `x`"),
        ("cast(p as int)", "`p / 1 s` is a number"),
        ("not i", "compare it: `i = ...`"),
    ],
)
def test_help_says_what_to_write(text: str, help: str | None) -> None:
    (diagnostic,) = Written(text, COLUMNS).diagnostics
    assert diagnostic.help == help


OPERANDS = (
    "i",
    "d",
    "f",
    "s",
    "t",
    "p",
    "e",
    "5",
    "-5",
    "1.5",
    "(i + 1)",
    "(1 + 2)",
    "'a'",
    "'5'",
    "'2026-01-01'",
    "1 s",
)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "=", "<"])
def test_what_help_says_to_write_in_place_of_an_operand_works(symbol: str) -> None:
    tried = 0
    for left, right in product(OPERANDS, OPERANDS):
        found = Written(f"{left} {symbol} {right}", COLUMNS).diagnostics
        told = re.match(
            r"(?:write|a duration has a unit:|to join texts write) `([^`]+)`", (found and found[0].help) or ""
        )
        if told is None:
            continue
        tried += 1
        instead = told[1]
        if instead.startswith("||"):
            ways = [f"{left} {instead}"]
        else:
            ways = [f"{instead} {symbol} {right}", f"{left} {symbol} {instead}"]
        assert any(not Written(way, COLUMNS).diagnostics for way in ways), (left, symbol, right, instead)
    assert tried > 5


def test_place_is_the_operand_at_fault() -> None:
    (diagnostic,) = Written("q + 1 > 2 and length(i) = 3", COLUMNS).diagnostics
    assert diagnostic.span.text == "i"
    (diagnostic,) = Written("q + 1 + s", COLUMNS).diagnostics
    assert diagnostic.span.text == "q + 1 + s"


# --- conditions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("q >= 0", "true"),
        ("q < 0", "false"),
        ("q > 1000", "false"),
        ("i > 0 and q <= 1000", "true"),
        ("q = 1001", "false"),
        ("1 = 1", "true"),
        ("hour(t) < 24", "true"),
        ("nullif(true, true)", "null"),
    ],
)
def test_constant_conditions_are_warned_of(text: str, outcome: str) -> None:
    checked = Written(text, COLUMNS, predicate=True)
    assert checked.codes == ["MPL0328"]
    assert outcome in checked.diagnostics[0].message
    assert checked.typed.type == written("b", COLUMNS).typed.type


@pytest.mark.parametrize("text", ["q > 0", "i >= 0", "n >= 0", "q <> 5", "d > 0", "b", "e = 'open'", "q < i"])
def test_other_conditions_are_not_warned_of(text: str) -> None:
    assert Written(text, COLUMNS, predicate=True).codes == []


def test_predicate_must_be_bool() -> None:
    assert Written("q + 1", COLUMNS, predicate=True).codes == ["MPL0303"]
    assert Written("null", COLUMNS, predicate=True).codes == ["MPL0303"]


# --- declared functions ---------------------------------------------------------------------------------------------


def test_mpl_functions_are_put_in_place() -> None:
    functions = "function twice(x int) returns int = x * 2; function four(x int) returns int = twice(twice(x));"
    checked = written("four(q + 1)", COLUMNS, functions)
    assert checked.value(0, 5, *[None] * 9) == 24
    assert checked.typed.bounds == Bounds(4, 4004)
    assert written("four(3)", COLUMNS, functions).typed == written("12", COLUMNS).typed


def test_types_of_a_body_do_not_depend_on_the_call() -> None:
    functions = (
        "function f(x int) returns decimal(18,3) = x * 1.50; function g(x int) returns int = cast(x / 2.0 as int);"
    )
    assert written("f(3)", COLUMNS, functions).typed.type == DecimalType(18, 3)
    assert written("f(3)", COLUMNS, functions).value() == 4500
    assert written("g(q)", COLUMNS, functions).typed.type == IntType()
    assert written("g(5)", COLUMNS, functions).value() == 3


def test_functions_may_be_declared_in_any_order() -> None:
    functions = "function a(x int) returns int = b(x) + 1; function b(x int) returns int = x * 2;"
    assert written("a(5)", COLUMNS, functions).value() == 11


def test_guarded_failure_in_a_body_is_not_reported() -> None:
    functions = "function safe(x int) returns int = case when x = 0 then 0 else 10 / x end;"
    assert written("safe(0)", COLUMNS, functions).value() == 0


def test_python_functions_become_calls() -> None:
    functions = 'function risk(x int, y float) returns float null python "shop.risk:score" monotone up, down;'
    call = written("risk(q, i)", COLUMNS, functions).typed
    assert isinstance(call, PythonCall)
    assert (call.module, call.function, call.monotone, call.nullable) == ("shop.risk", "score", ("up", "down"), True)
    second = call.arguments[1]
    assert isinstance(second, Apply)
    assert second.function == "cast"


@pytest.mark.parametrize(
    ("functions", "call", "expected"),
    [
        ("function f(x int) returns int = f(x);", "1", ["MPL0319"]),
        ("function f(x int) returns int = g(x); function g(x int) returns int = f(x);", "1", ["MPL0319", "MPL0319"]),
        ("function f(x int) returns text = x;", "1", ["MPL0321"]),
        ("function f(x int null) returns int = x;", "1", ["MPL0321"]),
        ("function f(x int) returns int = y;", "1", ["MPL0202"]),
        ("function f(x int) returns int = x; function f(y int) returns int = y;", "1", ["MPL0322"]),
        ("function length(x text) returns int = 1;", "1", ["MPL0322"]),
        ("function sum(x int) returns int = 1;", "1", None),
        ("function f(x int, x int) returns int = x;", "1", ["MPL0322"]),
        ("function f(x int) returns int = x monotone up;", "1", ["MPL0322"]),
        ('function f(x int) returns int python "nonsense";', "1", ["MPL0322"]),
        ('function f(x int, y int) returns int python "a:b" monotone up;', "1", ["MPL0322"]),
        ("function f(x int) returns int = x;", "f(n)", ["MPL0310"]),
        ("function f(x int) returns int = x;", "f(null)", ["MPL0310"]),
        ("function f(x int) returns int = x;", "f(s)", ["MPL0309"]),
        ("function f(x int) returns int = x;", "f(1, 2)", ["MPL0308"]),
        ("function f(x enum('a')) returns text = x;", "f('b')", ["MPL0312"]),
        ("function f(x decimal(5,1)) returns text = cast(x as text);", "f(d)", ["MPL0309"]),
    ],
)
def test_mistakes_with_functions(functions: str, call: str, expected: list[str] | None) -> None:
    found = codes(call, functions)
    if expected is None:  # an aggregate's name is a word of the grammar, or taken
        assert len(found) == 1
    else:
        assert found == expected


def test_growth_by_functions_is_limited() -> None:
    chain = "function f0(x int) returns int = x + x;"
    chain += "".join(f"function f{k}(x int) returns int = f{k - 1}(f{k - 1}(x));" for k in range(1, 40))
    assert "MPL0320" in codes("f39(q)", chain)
    deep = "function g0(x int) returns int = -x;"
    deep += "".join(f"function g{k}(x int) returns int = -g{k - 1}(x);" for k in range(1, 400))
    assert "MPL0320" in codes("g399(q)", deep)


def test_long_chains_end_in_a_message_not_in_a_crash() -> None:
    longest = " + ".join(["q"] * 128)
    assert codes(f"{longest} > 5 and b") == []
    assert codes(f"abs({longest}) + {longest.removeprefix('q + ')} > 5") == ["MPL0320"]
    assert codes("length(" + " || ".join(["s"] * 128) + ") > 5") == []
    assert codes(" and ".join(["b"] * 128)) == []
    nested = "q"
    for _ in range(60):
        nested = f"-({nested} + 1)"[1:]
    assert codes(nested) == []


def test_deepest_expression_can_be_evaluated() -> None:
    text = " + ".join(["q"] * 128)
    assert written(f"abs({text}) > 5 and b", COLUMNS).value(0, 1, 0, 0.0, True, *[None] * 6) is True


def test_measure_counts_shared_parts_as_often_as_they_occur() -> None:
    expr = written("q between 1 and 2", COLUMNS).typed
    assert measure(expr) == (7, 3)


# --- helpers for declarations ---------------------------------------------------------------------------------------


def declared(column: str) -> tuple[Type, Bounds, list[str]]:
    diagnostics = Diagnostics()
    program = parse(Source("t.mpl", f"stream S ({column});"), diagnostics)
    stream = program.statements[0]
    assert isinstance(stream, nodes.StreamDecl)
    decl = stream.columns[0]
    shape = declared_type(decl.type, diagnostics)
    bounds = declared_bounds(decl.range, shape, diagnostics) if decl.range else OPEN
    return shape, bounds, [diagnostic.code.name for diagnostic in diagnostics]


@pytest.mark.parametrize(
    ("column", "type", "bounds"),
    [
        ("a int[-5..10]", IntType(), Bounds(-5, 10)),
        ("a int[..0]", IntType(), Bounds(None, 0)),
        ("a decimal(10,2)[0..100]", DecimalType(10, 2), Bounds(0, 10_000)),
        ("a decimal(10,2)[0.5..1.25]", DecimalType(10, 2), Bounds(50, 125)),
        ("a float[0..1]", None, Bounds(0.0, 1.0)),
        ("a duration[0 s..1 min]", None, Bounds(0, 60_000_000)),
        ("a time[time '1970-01-01'..]", TimeType(), Bounds(0, None)),
        ("a text(7)", TextType(7), OPEN),
        ("a enum('x','y')", EnumType(("x", "y")), OPEN),
    ],
)
def test_declared_types_and_ranges(column: str, type: Type | None, bounds: Bounds) -> None:
    found, found_bounds, problems = declared(column)
    assert problems == []
    assert type is None or found == type
    assert found_bounds == bounds


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("a decimal(19,2)", "MPL0323"),
        ("a decimal(5,6)", "MPL0323"),
        ("a text(0)", "MPL0323"),
        ("a enum('x','x')", "MPL0323"),
        ("a int[5..1]", "MPL0324"),
        ("a text[0..5]", "MPL0324"),
        ("a int[0..1.5]", "MPL0327"),
        ("a decimal(10,2)[0..0.005]", "MPL0327"),
        ("a int[0..'x']", "MPL0327"),
        ("a time[0..]", "MPL0327"),
    ],
)
def test_mistakes_in_declared_types(column: str, code: str) -> None:
    shape, bounds, problems = declared(column)
    assert problems == [code]
    assert isinstance(shape, ErrorType) or bounds.high is None


def test_literal_value() -> None:
    diagnostics = Diagnostics()
    literal = nodes.TimeLiteral("1970-01-02", span=SPAN)
    assert literal_value(literal, TimeType(), diagnostics) == 86_400_000_000
    assert literal_value(nodes.IntLiteral(5, span=SPAN), DecimalType(5, 2), diagnostics) == 500
    assert not diagnostics.has_errors
    assert literal_value(nodes.TextLiteral("x", span=SPAN), TimeType(), diagnostics) is None
    assert [diagnostic.code.name for diagnostic in diagnostics] == ["MPL0327"]


def test_conversions() -> None:
    null = constant(None, IntType(), SPAN)
    assert convert(null, TextType()) == constant(None, TextType(), SPAN)
    five = constant(5, IntType(), SPAN)
    assert convert(five, DecimalType(10, 2)) == constant(500, DecimalType(10, 2), SPAN)
    assert not can_convert(constant(5, DecimalType(2, 1), SPAN), IntType())
    assert not can_convert(constant(12345, IntType(), SPAN), DecimalType(5, 2))
    assert can_convert(constant("ab", TextType(), SPAN), TextType(2))
    assert not can_convert(constant("abc", TextType(), SPAN), TextType(2))
    diagnostics = Diagnostics()
    refused = assign(five, TextType(), "column `name`", diagnostics)
    assert isinstance(refused.type, ErrorType)
    assert [diagnostic.message for diagnostic in diagnostics] == ["column `name` is text, not int"]


def test_bare_null_has_no_type() -> None:
    diagnostics = Diagnostics()
    checked = check_value(nodes.NullLiteral(span=SPAN), Scope(()), FunctionTable(), diagnostics)
    assert isinstance(checked.type, ErrorType)
    assert [diagnostic.code.name for diagnostic in diagnostics] == ["MPL0326"]
    assert value_of("coalesce(null, 3)") == 3
