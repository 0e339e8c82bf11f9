"""The reference of the function library as Markdown, from the records."""

from __future__ import annotations

from mpl.functions import FUNCTIONS
from mpl.functions.spec import FunctionSpec

_THEMES: dict[str, str] = {
    "operators": "Operators",
    "numbers": "Numbers",
    "text": "Text",
    "time": "Time",
    "conditional": "Nulls and types",
    "hashing": "Hashing",
}

_HEAD = """\
# Functions and operators

Written by `python -m mpl.functions`; the examples are run by the tests. `x -> y` reads "x gives y".

An argument that may be null makes the result null, unless the text says otherwise. Arguments are evaluated from the
left; `and`, `or`, `coalesce` and `case` stop as soon as the result is known. An expression that has no value (a
division by zero, a number beyond 64 bits or 18 digits, a text that is not a number) is an error that names the view
and the row; it never gives a wrong value, a wrapped number or a silent null. `nullif` and `case` are the ways around.

*Direction* says how the result moves when an argument grows, all else equal: `up`, `down`, or `-` for anyhow; "by
sign" where it depends on the range of the other operand, "by type" where it depends on the types. The checker derives
from it what is rising and what is final.

The rules of decimal scale, rounding and overflow are in `mpl/arithmetic.py`, those of `cast` in
`mpl/functions/casts.py`, the patterns of `regexp_match` in `mpl/functions/regexp.py`, `hash` byte by byte in
`mpl/functions/hashing.py`.
"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for theme, title in _THEMES.items():
        specs = [spec for spec in FUNCTIONS if spec.theme == theme]
        parts.append(f"\n## {title}\n\n| Written | Meaning | Direction | Examples |\n| --- | --- | --- | --- |\n")
        parts.extend(_row(spec) for spec in specs)
    return "".join(parts)


def _row(spec: FunctionSpec) -> str:
    examples = "<br>".join(f"`{example.call} -> {example.result}`" for example in spec.examples)
    return (
        "| "
        + " | ".join(_cell(cell) for cell in (f"`{spec.usage}`", spec.summary, _direction(spec), examples))
        + " |\n"
    )


def _direction(spec: FunctionSpec) -> str:
    if spec.directions is not None:
        return "by type" if spec.name == "cast" else "by sign"
    return ", ".join(direction or "-" for direction in spec.monotone)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
