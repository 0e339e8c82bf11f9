"""Literals of every type, and the shapes of declared columns."""

from __future__ import annotations

from random import Random

from tests.generator.shapes import BOOL, DURATION, FLOAT, INT, TEXT, TIME, Shape, quote_text

TEXTS = ("", "a", "it's", "West", "50%", "x_y", "naïve ✓", "--no comment", "a;b", "|>", "0", "/path/to", "A b")
TIMES = ("2026-01-31 12:00:00", "1999-12-31", "2026-06-15 08:30", "2000-02-29 23:59:59.999999", "1970-01-01T00:00:00Z")
ENUMS = (("x", "y"), ("buy", "sell", "hold"), ("it's", "XA", "XB", ""), ("only",))
UNITS = ("us", "ms", "s", "min", "h", "d")


def random_shape(rng: Random) -> Shape:
    """A type that a column may be declared with."""
    match rng.randrange(12):
        case 0 | 1 | 2:
            return INT
        case 3 | 4:
            precision = rng.choice((1, 5, 10, 12, 18))
            return Shape(
                "decimal", (precision, rng.choice((0, 2, 2, 4)) if precision > 4 else rng.randint(0, precision))
            )
        case 5:
            return FLOAT
        case 6:
            return BOOL
        case 7:
            return Shape("text", length=rng.choice((1, 20, 200)))
        case 8:
            return TEXT
        case 9:
            return DURATION
        case 10:
            return Shape("enum", values=rng.choice(ENUMS))
        case _:
            return TIME


def duration(rng: Random) -> str:
    """Longer than nothing, shorter than a year."""
    return f"{rng.randint(1, 300)}{rng.choice((' ', ' ', ''))}{rng.choice(UNITS)}"


def literal(rng: Random, shape: Shape) -> str:
    """A value of the shape, small enough that no calculation with a few of them overflows."""
    match shape.family:
        case "int":
            return str(rng.choice((0, 1, 2, 7, 10, 42, 365, 1000)))
        case "decimal":
            return decimal(rng, shape)
        case "float":
            return rng.choice(("1e3", "2.5e0", "0e0", "1E-2", "31e1"))
        case "bool":
            return rng.choice(("true", "false"))
        case "text":
            fitting = [text for text in TEXTS if shape.length is None or len(text) <= shape.length]
            return quote_text(rng.choice(fitting))
        case "time":
            return f"time '{rng.choice(TIMES)}'"
        case "duration":
            return duration(rng)
        case "enum":
            return quote_text(rng.choice(shape.values))


def decimal(rng: Random, shape: Shape) -> str:
    precision, scale = shape.digits or (5, 2)
    whole = rng.randint(0, 10 ** min(precision - scale, 3) - 1)
    return f"{whole}.{rng.randint(0, 10**scale - 1):0{scale}}" if scale else f"{whole}"


def bounds(rng: Random, shape: Shape) -> str:
    """A declared range for the types that take one, or nothing."""
    ends: dict[str, tuple[tuple[str, str], ...]] = {
        "int": (("0", ""), ("0", "1000"), ("-5", "5"), ("", "0"), ("1", "100000000")),
        "float": (("0e0", ""), ("-1e3", "1e3")),
        "duration": (("0 s", ""), ("1 ms", "2 h")),
        "time": (("time '2000-01-01'", ""), ("time '2000-01-01'", "time '2100-01-01'")),
    }
    if shape.family == "decimal":
        assert shape.digits is not None
        top = "9" * (shape.digits[0] - shape.digits[1]) or "0"
        ends["decimal"] = (("0", ""), ("-0", top), ("", "0"))
    if shape.family not in ends or rng.random() < 0.4:
        return ""
    low, high = rng.choice(ends[shape.family])
    return f"[{low}..{high}]"
