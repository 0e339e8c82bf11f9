"""Goal: every construct of the language becomes the right node, at the right place.

Also: keywords in any case, keywords as names, and that a bad statement costs only itself.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest

from mpl import nodes
from mpl.diagnostic import Diagnostics
from mpl.nodes import Node
from mpl.parser import parse
from mpl.source import Source
from mpl.syntax.tables import tables
from mpl.syntax.tokens import RESERVED
from tests.mpl.constructs import EVERY_CONSTRUCT

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def parsed(text: str) -> tuple[nodes.Statement, ...]:
    """The statements of a program that must have no errors."""
    diagnostics = Diagnostics()
    program = parse(Source("test.mpl", text), diagnostics)
    assert [f"{item.span}: {item.message}" for item in diagnostics] == []
    return program.statements


def statement(text: str) -> Any:
    (only,) = parsed(text)
    return only


def step(text: str) -> Any:
    (only,) = statement(f"view v = from R |> {text};").relation.operators
    return only


def expression(text: str) -> Any:
    return step(f"extend x := {text}").definitions[0].value


def shape(node: Any) -> Any:
    """An expression as nested tuples, to compare how it was grouped."""
    match node:
        case nodes.ColumnExpr():
            return node.column.text
        case nodes.IntLiteral() | nodes.DecimalLiteral() | nodes.TextLiteral() | nodes.BoolLiteral():
            return node.value
        case nodes.Negate():
            return ("-", shape(node.operand))
        case nodes.Not():
            return ("not", shape(node.operand))
        case nodes.Arithmetic():
            return (shape(node.first), *[part for op, operand in node.rest for part in (op, shape(operand))])
        case nodes.Compare():
            return (shape(node.left), node.op, shape(node.right))
        case nodes.Logical():
            return (node.op, *map(shape, node.operands))
        case nodes.Call():
            return (node.function.text, *map(shape, node.arguments))
        case _:
            raise AssertionError(f"no shape for {node}")


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.mpl")), ids=lambda path: path.stem)
def test_examples_parse(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    code = "\n".join(line.partition("--")[0] for line in text.splitlines())
    assert len(parsed(text)) == code.count(";")


def test_every_construct_becomes_nodes() -> None:
    """A grammar rule without a builder would leave a tree of lark among the nodes."""

    def check(part: Any) -> None:
        if isinstance(part, tuple):
            for item in part:
                check(item)
        elif isinstance(part, Node):
            for name, item in vars(part).items():
                check(item) if name != "span" else None
        else:
            assert part is None or isinstance(part, str | int | float | bool | Decimal), part

    statements = parsed(EVERY_CONSTRUCT)
    check(statements)
    assert {type(item) for item in statements} == set(get_args(nodes.Statement))


# --- declarations -----------------------------------------------------------------------------------------------------


def test_stream_with_all_options() -> None:
    node = statement(
        """stream S (id int, price decimal(10,2)[0.00..99.50], note text(40) null, state enum('a', 'it''s'), t time,
                     low int[-5..], high float[..1e3], wait duration, ok bool)
           tick n every 1 ms phase 0 of 2 unique id, t event time t late 4 s live closes id at t
           until time '2026-01-31 12:00:00' retain 7 d;"""
    )
    assert [column.name.text for column in node.columns] == [
        "id",
        "price",
        "note",
        "state",
        "t",
        "low",
        "high",
        "wait",
        "ok",
    ]
    assert node.columns[1].type == nodes.TypeNode("decimal", (10, 2), span=node.span)
    assert node.columns[1].range.high.value == Decimal("99.50")
    assert node.columns[2].nullable
    assert not node.columns[0].nullable
    assert node.columns[3].type.values == ("a", "it's")
    assert isinstance(node.columns[5].range.low, nodes.Negate)
    assert node.columns[5].range.high is None
    assert node.columns[6].range.low is None
    tick, unique, event, closes, until, retain = node.options
    assert (tick.name.text, tick.every.microseconds, tick.phase) == ("n", 1000, (0, 2))
    assert [column.text for column in unique.columns] == ["id", "t"]
    assert (event.column.text, event.late.microseconds, event.live) == ("t", 4_000_000, True)
    assert (closes.column.text, closes.at.text) == ("id", "t")
    assert until.value.text == "2026-01-31 12:00:00"
    assert retain.duration.microseconds == 7 * 86_400_000_000


def test_table_and_view() -> None:
    table, view = parsed(
        'table side (key int, value text) key key from "a b.csv"; view v key a, b = merge X, Y inline;'
    )
    assert isinstance(table, nodes.TableDecl)
    assert (table.key[0].text, table.path) == ("key", "a b.csv")
    assert isinstance(view, nodes.ViewDecl)
    assert [key.text for key in view.key or ()] == ["a", "b"]
    assert (view.relation.is_merge, len(view.relation.sources), view.storage) == (True, 2, "inline")


def test_subscriptions() -> None:
    plain = statement("subscribe s to v emit as of horizon at hub every 1 s within 2 min snapshot off durable;")
    assert plain.target.text == "v"
    assert plain.options[0].mode == "as of horizon"
    assert [type(option).__name__ for option in plain.options[1:]] == [
        "AtOption",
        "EveryOption",
        "WithinOption",
        "SnapshotOption",
        "DurableOption",
    ]
    inline = statement("subscribe s to (from v |> where a > 1) snapshot on;")
    assert isinstance(inline.target, nodes.Relation)
    assert inline.options[0].on


def test_functions() -> None:
    mpl = statement("function f(s text, c text null) returns int null = length(s) - 1 monotone up, down;")
    assert [(item.name.text, item.nullable) for item in mpl.parameters] == [("s", False), ("c", True)]
    assert mpl.result_nullable
    assert shape(mpl.body) == (("length", "s"), "-", 1)
    assert mpl.monotone == ("up", "down")
    python = statement('function g() returns float python "scores:score";')
    assert (python.parameters, python.body, python.python) == ((), None, "scores:score")


def test_deployment() -> None:
    text = """broker hub at "tcp://h:7001" cpu 8 memory 16 GiB edge;
        link a - b latency 20 ms bandwidth 100 Mbps loss 0.5%;
        publish S at hub; place v near hub; protect v by semiactive lag 2 s on east; protect all by passive every 1 min;
        tune all gap 200 ms idle 2 s pull quench off checkpoint every 30 s; drop subscribe s;"""
    parts = [statement(part + ";") for part in text.split(";")[:-1]]
    broker, link, publish, place, protect, protect_all, tune, drop = parts
    assert (broker.address, broker.cpu, broker.memory, broker.edge) == ("tcp://h:7001", 8, (16, "gib"), True)
    assert (link.latency.microseconds, link.bandwidth, link.loss) == (20_000, (100, "mbps"), Decimal("0.5"))
    assert (publish.stream.text, publish.broker.text) == ("S", "hub")
    assert (place.how, place.target.text) == ("near", "hub")
    assert (protect.scheme, protect.duration.unit, protect.broker.text) == ("semiactive", "s", "east")
    assert (protect_all.relation, protect_all.scheme) == (None, "passive")
    assert [type(option).__name__ for option in tune.options] == [
        "TuneGap",
        "TuneIdle",
        "TuneLiveness",
        "TuneQuench",
        "TuneCheckpoint",
    ]
    assert (drop.what, drop.name.text) == ("subscribe", "s")


# --- relations --------------------------------------------------------------------------------------------------------


def test_steps() -> None:
    assert step("project a, B.c").columns[1].qualifier.text == "B"
    assert step("project all but a").all_but
    assert step("project all, a").columns[0].text == "all"
    assert [(old.text, new.text) for old, new in step("rename a as b, X.c as d").pairs] == [("a", "b"), ("X.c", "d")]
    assert isinstance(step("distinct"), nodes.Distinct)
    assert isinstance(step("union (from X |> distinct)").source.relation, nodes.Relation)
    assert step("minus X").source.relation.text == "X"


def test_windows() -> None:
    assert step("window tumble(ts, 10 s)").size.microseconds == 10_000_000
    hop = step("window hop(B.ts, 10 s every 2 s)")
    assert (hop.column.text, hop.every.amount) == ("B.ts", 2)
    session = step("window session(ts, gap 10 s per a, b)")
    assert (session.shape, [column.text for column in session.per]) == ("session", ["a", "b"])


def test_aggregates() -> None:
    node = step("aggregate n := count(), d := COUNT(distinct a) where b > 1, last := last(c) group by a, X.b")
    assert [item.value.function for item in node.definitions] == ["count", "count", "last"]
    assert node.definitions[0].value.argument is None
    assert node.definitions[1].value.distinct
    assert shape(node.definitions[1].value.where) == ("b", ">", 1)
    assert [column.text for column in node.group_by] == ["a", "X.b"]
    assert step("aggregate n := count()").group_by is None


def test_joins() -> None:
    left = step("left join S as T using a, b default total := 0, x := 'n'")
    assert (left.side, left.source.alias.text, len(left.condition.columns), len(left.defaults)) == ("left", "T", 2, 2)
    assert step("join S on a = S.b").side == "inner"
    assert step("full join S using a").side == "full"
    assert step("asof left join S on a = b").left
    assert not step("asof join S on a = b").left
    assert step("not matching S using a").negated
    assert not step("matching S using a").negated


def test_top_latest_first() -> None:
    top = step("top 3 per a, b by x desc, y asc, z + 1 with rank place")
    assert (top.count, len(top.per), [item.descending for item in top.ordering]) == (3, 2, [True, False, False])
    assert (top.rank.text, top.ties) == ("place", False)
    assert step("top 1 by x with ties").ties
    assert step("latest per a by ts").which == "latest"
    assert step("first per a").by is None


# --- expressions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", ("a", "+", ("b", "*", "c"))),
        ("a - b - c", ("a", "-", "b", "-", "c")),
        ("(a - b) - c", (("a", "-", "b"), "-", "c")),
        ("a || b + 1", ("a", "||", ("b", "+", 1))),
        ("- a * b", (("-", "a"), "*", "b")),
        ("-(-a)", ("-", ("-", "a"))),
        ("not a and b or c", ("or", ("and", ("not", "a"), "b"), "c")),
        ("not (a or b)", ("not", ("or", "a", "b"))),
        ("a or b or c", ("or", "a", "b", "c")),
        ("a = 1 and b <> 2", ("and", ("a", "=", 1), ("b", "<>", 2))),
        ("not a = b", ("not", ("a", "=", "b"))),
        ("(a = b) = c", (("a", "=", "b"), "=", "c")),
        ("f(a, g(), 1 + 2)", ("f", "a", ("g",), (1, "+", 2))),
        ("'it''s' || ''", ("it's", "||", "")),
    ],
)
def test_binding(text: str, expected: Any) -> None:
    assert shape(expression(text)) == expected


def test_predicates() -> None:
    assert not expression("a in (1, 2)").negated
    assert expression("a not in (1)").negated
    between = expression("a between 1 and 2 + 3 and b")
    assert between.op == "and"
    assert shape(between.operands[0].high) == (2, "+", 3)
    assert expression("a not between 1 and 2").negated
    assert expression("a not like 'x%'").negated
    assert expression("a is not null").negated
    assert not expression("a is null").negated


def test_case_and_cast() -> None:
    node = expression("case when a then 1 when b then 2 else 3 end")
    assert len(node.branches) == 2
    assert node.otherwise.value == 3
    assert expression("case when a then 1 end").otherwise is None
    cast = expression("cast(a + 1 as decimal(10,2))")
    assert cast.type.numbers == (10, 2)


def test_literals() -> None:
    assert expression("12.50") == nodes.DecimalLiteral(Decimal("12.50"), span=expression("1").span)
    assert expression("1e3").value == 1000.0
    assert expression("1.5E-3").value == 0.0015
    assert [expression(text).microseconds for text in ("3 us", "200 ms", "4s", "1 MIN", "2 h", "7 d")] == [
        3,
        200_000,
        4_000_000,
        60_000_000,
        7_200_000_000,
        604_800_000_000,
    ]
    assert expression("time '2026-01-31'").text == "2026-01-31"
    assert expression("-9223372036854775808").operand.value == 2**63
    assert expression("TRUE").value is True
    assert isinstance(expression("null"), nodes.NullLiteral)
    assert expression("007").value == 7


# --- words ------------------------------------------------------------------------------------------------------------


def test_keywords_in_any_case() -> None:
    lower = parsed("view v = from S |> where a in (1) and b is not null |> project all but a materialize;")
    upper = parsed("VIEW v = From S |> WHERE a IN (1) AND b Is Not Null |> PROJECT ALL BUT a Materialize;")
    assert lower == upper


SOFT = sorted(set(tables().lexicon.keywords) - RESERVED)


@pytest.mark.parametrize("word", SOFT)
def test_soft_keywords_are_names(word: str) -> None:
    """Wherever a column or relation is named, the word need not be quoted; only `distinct` in an aggregate is."""
    argument = "`distinct`" if word == "distinct" else word
    text = f"""
        stream {word} ({word} int, b int) tick {word} unique {word}, b closes {word} at {word};
        view {word} key {word} = from {word} as {word} |> project {word}, b, {word}.{word}
          |> where {word} > 1 and b + {word} < 2 or {word}({word}.b, {word}) in ({word})
          |> extend {word} := {word} |> rename {word} as {word} |> join {word} using {word}
          |> aggregate {word} := max({argument}) group by {word}
          |> top 1 per {word} by {word} desc with rank {word} |> latest per {word} by {word};
        subscribe {word} to {word} at {word};
    """
    stream, view, subscribe = parsed(text)
    assert isinstance(stream, nodes.StreamDecl)
    assert stream.columns[0].name.text == word
    assert isinstance(view, nodes.ViewDecl)
    assert len(view.relation.operators) == 8
    assert isinstance(subscribe, nodes.SubscribeDecl)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_names_in_backticks(word: str) -> None:
    node = statement(f"stream S (`{word}` int);")
    assert node.columns[0].name.text == word
    diagnostics = Diagnostics()
    parse(Source("test.mpl", f"stream S ({word} int);"), diagnostics)
    assert [item.code.name for item in diagnostics] == ["MPL0116"]


def test_any_text_is_a_name_in_backticks() -> None:
    assert statement("view `größe; -- 'x' |>` = from S;").name.text == "größe; -- 'x' |>"


def test_comments_are_nothing() -> None:
    assert parsed("-- a; b\nview v -- 'c\n = -- (\nfrom S;--end") == parsed("view v = from S;")


def test_byte_order_mark_is_nothing() -> None:
    assert parsed("\ufeffview v = from S;") == parsed("view v = from S;")


# --- places -----------------------------------------------------------------------------------------------------------


def spans(node: Any) -> list[tuple[str, str]]:
    """Every node below `node` with the text it covers."""
    found: list[tuple[str, str]] = []
    if isinstance(node, tuple):
        for part in node:
            found += spans(part)
    elif isinstance(node, Node):
        found.append((type(node).__name__, node.span.text))
        for name, part in vars(node).items():
            found += spans(part) if name != "span" else []
    return found


def test_places_are_exact() -> None:
    text = "view v = from (from S |> distinct) as T |> where (a + 1) * 2 > -b.c and f( x ) |> extend y := 'q' inline ;"
    (node,) = parsed(text)
    assert spans(node) == [
        ("ViewDecl", text[:-2]),
        ("Name", "v"),
        ("Relation", text[9 : text.index(" inline")]),
        ("SourceRef", "(from S |> distinct) as T"),
        ("Relation", "from S |> distinct"),
        ("SourceRef", "S"),
        ("Name", "S"),
        ("Distinct", "distinct"),
        ("Name", "T"),
        ("Where", "where (a + 1) * 2 > -b.c and f( x )"),
        ("Logical", "(a + 1) * 2 > -b.c and f( x )"),
        ("Compare", "(a + 1) * 2 > -b.c"),
        ("Arithmetic", "(a + 1) * 2"),
        ("Arithmetic", "(a + 1)"),
        ("ColumnExpr", "a"),
        ("ColumnName", "a"),
        ("Name", "a"),
        ("IntLiteral", "1"),
        ("IntLiteral", "2"),
        ("Negate", "-b.c"),
        ("ColumnExpr", "b.c"),
        ("ColumnName", "b.c"),
        ("Name", "b"),
        ("Name", "c"),
        ("Call", "f( x )"),
        ("Name", "f"),
        ("ColumnExpr", "x"),
        ("ColumnName", "x"),
        ("Name", "x"),
        ("Extend", "extend y := 'q'"),
        ("Definition", "y := 'q'"),
        ("Name", "y"),
        ("TextLiteral", "'q'"),
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.mpl")), ids=lambda path: path.stem)
def test_places_lie_within_their_parents(path: Path) -> None:
    def check(node: Any, start: int, end: int) -> int:
        if isinstance(node, tuple):
            return sum(check(part, start, end) for part in node)
        if not isinstance(node, Node):
            return 0
        assert start <= node.span.start < node.span.end <= end, node
        inner = [part for name, part in vars(node).items() if name != "span"]
        return 1 + sum(check(part, node.span.start, node.span.end) for part in inner)

    text = path.read_text(encoding="utf-8")
    assert check(parsed(text), 0, len(text)) > 20


def test_nodes_compare_without_places() -> None:
    assert parsed("view v = from S |> where a>1;") == parsed("view  v=from S\n\n|> where (a) > 1 ;")
    assert parsed("view v = from S |> where a > 1;") != parsed("view v = from S |> where a > 2;")


# --- a bad statement costs only itself --------------------------------------------------------------------------------


def outcome(text: str) -> tuple[list[str], list[str]]:
    diagnostics = Diagnostics()
    program = parse(Source("test.mpl", text), diagnostics)
    kept = [item.name.text for item in program.statements if isinstance(item, nodes.ViewDecl)]
    return kept, [f"{item.code.name}@{item.span.source.position(item.span.start)[0]}" for item in diagnostics]


def test_bad_statements_are_left_out() -> None:
    text = "view a = from S;\nview b = frm S;\nview c = from S;\nview d = from;\nview e = from S;\n"
    assert outcome(text) == (["a", "c", "e"], ["MPL0101@2", "MPL0101@4"])


def test_a_missing_semicolon_costs_nothing() -> None:
    assert outcome("view a = from S\nview b = from S;\nview c = from S") == (
        ["a", "b", "c"],
        ["MPL0102@1", "MPL0102@3"],
    )


def test_a_bad_statement_without_semicolon_ends_where_the_next_begins() -> None:
    assert outcome("view a = frm S\nview b = from S\nview c = from S;") == (["b", "c"], ["MPL0101@1", "MPL0102@2"])


def test_a_refused_statement_costs_only_itself() -> None:
    """What a builder refuses, not the grammar: with `;`, without, and with another statement behind it."""
    text = "view a = from S |> aggregate n := median(x)\nview b = from S;\nview c = from S |> aggregate n := mode(x)"
    assert outcome(text) == (["b"], ["MPL0117@1", "MPL0102@1", "MPL0117@3"])


def test_an_empty_program_is_a_program() -> None:
    assert parsed("") == ()
    assert parsed("  -- nothing\n\t") == ()
