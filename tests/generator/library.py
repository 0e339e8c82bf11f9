"""The function library as the generator knows it: names, argument families and results, from the reference.

An argument is a family, several families (one is chosen), or a text in angle brackets that stands for a kind of literal
that `expressions.py` writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.generator.shapes import BOOL, FLOAT, INT, SOME_DECIMAL, TEXT, TIME, Family, Shape

Argument = Family | tuple[Family, ...] | str


@dataclass(frozen=True)
class Entry:
    """`result` None: the shape of the first argument."""

    name: str
    arguments: tuple[Argument, ...]
    result: Shape | None


NUMBER: tuple[Family, ...] = ("int", "decimal", "float")
AMOUNT: tuple[Family, ...] = ("int", "decimal", "float", "duration")
ANYTHING: tuple[Family, ...] = ("int", "decimal", "float", "bool", "text", "time", "duration", "enum")

LIBRARY: tuple[Entry, ...] = (
    Entry("abs", (AMOUNT,), None),
    Entry("sign", (AMOUNT,), INT),
    Entry("floor", (NUMBER,), INT),
    Entry("ceil", (NUMBER,), INT),
    Entry("round", (NUMBER,), INT),
    Entry("round", ("decimal", "<digits>"), SOME_DECIMAL),
    Entry("round", ("float", "<digits>"), FLOAT),
    Entry("mod", ("int", "<divisor>"), INT),
    Entry("power", ("<positive>", "<small>"), FLOAT),
    Entry("sqrt", ("<positive>",), FLOAT),
    Entry("length", ("text",), INT),
    Entry("length", ("enum",), INT),
    Entry("lower", ("text",), TEXT),
    Entry("upper", (("text", "enum"),), TEXT),
    Entry("trim", ("text",), TEXT),
    Entry("substring", ("text", "<position>"), TEXT),
    Entry("substring", ("text", "<position>", "<position>"), TEXT),
    Entry("replace", ("text", "text", "text"), TEXT),
    Entry("concat", ("text", "text"), TEXT),
    Entry("concat", ("text", "enum", "text"), TEXT),
    Entry("starts_with", ("text", "text"), BOOL),
    Entry("ends_with", ("text", "text"), BOOL),
    Entry("contains", ("text", "text"), BOOL),
    Entry("split_part", ("text", "<separator>", "<position>"), TEXT),
    Entry("regexp_match", ("text", "<pattern>"), BOOL),
    Entry("regexp_extract", ("text", "<pattern>", "<group>"), TEXT),
    Entry("date", ("time",), TIME),
    *(Entry(part, ("time",), INT) for part in ("year", "month", "day", "hour", "minute", "second")),
    Entry("truncate", ("time", "<step>"), TIME),
    Entry("format", ("time", "<format>"), TEXT),
    Entry("parse_time", ("<text column>", "<format>"), TIME),
    Entry("epoch", ("time",), Shape("decimal", (18, 6))),
    Entry("hash", (ANYTHING,), INT),
)

CASTS: dict[Family, tuple[Family, ...]] = {
    "int": ("decimal", "float", "bool", "text"),
    "decimal": ("int", "float", "decimal", "text"),
    "float": ("int", "decimal", "text"),
    "bool": ("text",),
    "text": ("int", "decimal", "float", "bool", "enum", "time"),
    "time": ("text",),
    "duration": (),
    "enum": (),
}
"""From which families `cast` makes a value of this one. From text only columns are cast: a literal might not fit."""

LITERALS: dict[str, tuple[str, ...]] = {
    "<digits>": ("0", "1", "2", "5"),
    "<divisor>": ("1", "2", "7", "1000"),
    "<small>": ("0", "1", "2", "0.5", "2e0"),
    "<position>": ("1", "2", "3", "40"),
    "<separator>": ("'/'", "','", "' '", "'::'"),
    "<pattern>": ("'^a(b|c)+$'", "'([0-9]{2,4})-([a-z_]*)'", "'(\\w+)=([^&]*)'", "'(x)(y)'"),
    "<group>": ("0", "1"),
    "<step>": ("1 s", "15 min", "1 d", "500 ms"),
    "<format>": ("'%Y-%m-%d'", "'%Y%m%dT%H%M%S'", "'%Y at %H:%M'"),
}
