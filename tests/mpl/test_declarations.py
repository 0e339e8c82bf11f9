"""Goal: streams, tables, views and subscriptions come out as declared, or are refused for the right reason."""

import pytest

from tests.mpl.shown import checked, codes, errors, shown


def test_a_stream_with_every_option() -> None:
    stream = checked(
        """stream S (id int, k text(5), t time, until_t time, v decimal(8,2) [-1.5..] null)
           unique id unique k, t tick n every 5 ms phase 3 of 16 event time t late 4 s live
           closes k at until_t closes id at until_t until time '2030-01-01' retain 7 d;"""
    ).program.streams["S"]
    assert shown(stream.schema) == (
        "id int, k text(5), t time, until_t time, v decimal(8,2) null, n int; key id or k, t or n"
    )
    assert (stream.tick_name, stream.tick_every_us, stream.phase) == ("n", 5_000, (3, 16))
    assert (stream.event_time, stream.late_us, stream.live) == (2, 4_000_000, True)
    assert stream.closes == ((1, 3), (0, 3))
    assert stream.until_us == 1_893_456_000_000_000
    assert stream.retain_us == 7 * 86_400_000_000
    columns = stream.schema.columns
    assert [column.name for column in columns if column.is_tick] == ["n"]
    assert [column.name for column in columns if column.is_event_time] == ["t"]
    assert (columns[4].bounds.low, columns[4].bounds.high) == (-150, None)


def test_defaults_are_canonical_values() -> None:
    stream = checked(
        """stream S (a int, b decimal(5,2)[-1.5..] default -1.50, c text default 'it''s', d float default -0e0,
           e time default time '2026-01-01', f duration default -1 s, g enum('x', 'y') default 'y',
           h bool default false, i decimal(5,2) default 3);"""
    ).program.streams["S"]
    assert stream.defaults == (
        *(
            (1, -150),
            (2, "it's"),
            (3, 0.0),
            (4, 1_767_225_600_000_000),
            (5, -1_000_000),
            (6, "y"),
            (7, False),
            (8, 300),
        ),
    )
    assert str(dict(stream.defaults)[3]) == "0.0", "there is one zero"
    assert not any(column.nullable for column in stream.schema.columns)


def test_a_plain_stream_has_a_hidden_tick() -> None:
    stream = checked("stream S (id int);").program.streams["S"]
    assert shown(stream.schema) == "id int, ~tick; key ~tick"
    assert stream.tick_name is None


def test_a_table() -> None:
    table = checked('table T (a int, b text, c int) key c, a from "t.csv";').program.tables["T"]
    assert shown(table.schema) == "a int, b text, c int; key a, c"
    assert table.path == "t.csv"


@pytest.mark.parametrize(
    ("declaration", "code"),
    [
        ("stream S (a int, a text);", "MPL0204"),
        ("stream S (a int) tick a;", "MPL0204"),
        ("stream S (a int) unique b;", "MPL0202"),
        ("stream S (a int) unique a, a;", "MPL0204"),
        ("stream S (a int null) unique a;", "MPL0207"),
        ("stream S (a int) event time a;", "MPL0207"),
        ("stream S (a time null) event time a;", "MPL0207"),
        ("stream S (a time) closes a at a;", "MPL0207"),
        ("stream S (a time, b int) event time a closes a at b;", "MPL0207"),
        ("stream S (a int) until time '2030-01-01';", "MPL0207"),
        ("stream S (a time) event time a until 5;", "MPL0327"),
        ("stream S (a int) retain 0 s;", "MPL0207"),
        ("stream S (a int) tick n every 0 s;", "MPL0207"),
        ("stream S (a int) tick n phase 2 of 2;", "MPL0208"),
        ("stream S (a int) tick n phase 0 of 0;", "MPL0208"),
        ("stream S (a int) tick n phase 0 of 2000;", "MPL0208"),
        ("stream S (a int) tick n tick m;", "MPL0205"),
        ("stream S (a time) event time a event time a;", "MPL0205"),
        ("stream S (a int[0..5] default 6);", "MPL0329"),
        ("stream S (a decimal(5,2)[1.50..] default 1.49);", "MPL0329"),
        ("stream S (a int default null);", "MPL0329"),
        ("stream S (a int null default 3);", "MPL0329"),
        ("table T (a int, b int default 3) key a;", "MPL0329"),
        ("stream S (a int default 'x');", "MPL0327"),
        ("stream S (a text(2) default 'abc');", "MPL0327"),
        ("stream S (a decimal(5,2) default 1.234);", "MPL0327"),
        ("stream S (a enum('x') default 'y');", "MPL0312"),
        ("stream S (a int) retain 1 s retain 2 s;", "MPL0205"),
        ("stream S (a decimal(40,2));", "MPL0323"),
        ("stream S (a int[5..1]);", "MPL0324"),
        ("stream S (a int); stream S (b int);", "MPL0203"),
        ("stream S (a int); table S (b int) key b;", "MPL0203"),
        ("stream S (a int); view S = from S;", "MPL0203"),
        ("table T (a int) key b;", "MPL0202"),
        ("table T (a int) key a, a;", "MPL0204"),
        ("stream S (a int); drop stream S;", "MPL0210"),
        ("stream S (a int); view V = from S; drop view V;", "MPL0210"),
        ("stream S (a int); subscribe s to S; drop subscribe s;", "MPL0210"),
    ],
)
def test_refused(declaration: str, code: str) -> None:
    assert errors(declaration) == [code]


# Order


def test_views_come_after_what_they_read() -> None:
    program = (
        "view C = from B |> join A using x; view B = from A |> distinct; view A = from S |> distinct; stream S (x int);"
    )
    assert list(checked(program).program.views) == ["A", "B", "C"]


def test_a_long_chain_of_views_needs_no_stack() -> None:
    chain = "".join(f"view V{n} = from V{n + 1};\n" for n in range(3_000))
    views = checked(chain + "view V3000 = from S; stream S (x int);").program.views
    assert next(iter(views)) == "V3000"
    assert len(views) == 3_001


def test_circles_are_reported_once_each_and_silence_their_readers() -> None:
    program = """stream S (x int);
    view A = from B |> where x > 1;
    view B = from S |> union A;
    view Self = from Self;
    view Reader = from A |> project nothing;"""
    items = checked(program).diagnostics
    assert [item.code.name for item in items] == ["MPL0206", "MPL0206"]
    assert "`A` -> `B` -> `A`" in items[0].message
    assert "`Self` -> `Self`" in items[1].message


def test_two_circles_through_one_view_are_both_found() -> None:
    program = "view A = from B |> union C; view B = from A; view C = from A;"
    assert codes(program) == ["MPL0206", "MPL0206"]


# Subscriptions


def test_a_subscription_with_every_option() -> None:
    program = checked(
        """stream S (x int); broker hub at "tcp://h:1";
        subscribe s to S emit as of horizon at hub every 100 ms within 2 s snapshot off durable;"""
    ).program
    found = program.subscriptions["s"]
    assert (found.view, found.emit, found.broker) == ("S", "as of horizon", "hub")
    assert (found.every_us, found.within_us, found.snapshot, found.durable) == (100_000, 2_000_000, False, True)


def test_what_a_subscription_does_not_say() -> None:
    found = checked("stream S (x int); subscribe s to S;").program.subscriptions["s"]
    assert (found.emit, found.broker, found.every_us, found.within_us) == ("changes", None, None, None)
    assert (found.snapshot, found.durable) == (True, False)


def test_a_subscription_to_a_relation_of_its_own_declares_a_view() -> None:
    program = checked("stream S (x int); subscribe s to (from S |> where x > 1); view V = from s;").program
    assert program.subscriptions["s"].view == "s"
    assert list(program.views) == ["s", "V"]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("subscribe s to Nobody;", ["MPL0201"]),
        ("subscribe s to S; subscribe s to S;", ["MPL0203"]),
        ("subscribe s to S emit final emit changes;", ["MPL0205"]),
        ("subscribe s to S durable durable;", ["MPL0205"]),
        ("subscribe s to S at nowhere;", ["MPL0601"]),
        ("subscribe S to (from S |> where x > 1);", ["MPL0203"]),
        ("subscribe s to (from S |> where y > 1);", ["MPL0202"]),
        ("view V = from S |> where y > 1; subscribe s to V;", ["MPL0202"]),
    ],
)
def test_subscription_refused(statements: str, expected: list[str]) -> None:
    assert errors(f"stream S (x int); {statements}") == expected


def test_streams_and_tables_can_be_subscribed_to() -> None:
    program = checked("table T (a int) key a; stream S (x int); subscribe t to T; subscribe s to S;").program
    assert [found.view for found in program.subscriptions.values()] == ["T", "S"]


@pytest.mark.parametrize("column", ["decimal(5,2)[0..1000]", "decimal(5,2)[-0.125..]", "decimal(5,2) default 1000.00"])
def test_a_number_that_a_decimal_does_not_have_is_called_that(column: str) -> None:
    """It is not a matter of types: `decimal(5,2)[0..999]` is right."""
    (error,) = checked(f"stream S (a {column});").diagnostics
    assert "is decimal(5,2), which has no " in error.message
    assert error.help == "decimal(5,2) has 3 digits before the point and 2 after it"
