"""Functions of text. A character is a Unicode code point; positions count from 1; order is by code point."""

from __future__ import annotations

from mpl.arithmetic import INT, text_length_max
from mpl.failures import EvaluationError, Failure
from mpl.functions.regexp import PatternError, compile_pattern
from mpl.functions.spec import Example, FunctionSpec, Kind, Nulls, Parameter, Signature, fixed
from mpl.typed import Const, Expr
from mpl.types import BoolType, Bounds, TextType, Type, Value

TEXT, BOOL = TextType(), BoolType()


def _length_bounds(arguments: tuple[Expr, ...], _: Type) -> Bounds:
    return Bounds(0, text_length_max(arguments[0].type))


def _no_longer_than_first(arguments: tuple[Expr, ...]) -> Type | None:
    return TextType(text_length_max(arguments[0].type))


def _concat_result(arguments: tuple[Expr, ...]) -> Type | None:
    lengths = [text_length_max(argument.type) for argument in arguments]
    known = [length for length in lengths if length is not None]
    return TextType(sum(known) if len(known) == len(lengths) else None)


def _position_problem(position: Value) -> str | None:
    assert isinstance(position, int)
    return None if position >= 1 else "positions count from 1"


def _length_problem(length: Value) -> str | None:
    assert isinstance(length, int)
    return None if length >= 0 else "a length cannot be negative"


def _substring(_: Signature, s: str, start: int, length: int | None = None) -> Value:
    if start < 1:
        raise EvaluationError(Failure.ARGUMENT, f"substring from {start}: positions count from 1")
    if length is None:
        return s[start - 1 :]
    if length < 0:
        raise EvaluationError(Failure.ARGUMENT, f"substring of length {length}")
    return s[start - 1 : start - 1 + length]


def _split_part(_: Signature, s: str, separator: str, n: int) -> Value:
    if n < 1:
        raise EvaluationError(Failure.ARGUMENT, f"split_part number {n}: parts count from 1")
    parts = s.split(separator) if separator else [s]
    return parts[n - 1] if n <= len(parts) else ""


def _replace(_: Signature, s: str, old: str, new: str) -> Value:
    return s.replace(old, new) if old else s


def _regexp_extract(_: Signature, s: str, pattern: str, group: int = 1) -> Value:
    found = compile_pattern(pattern).search(s)
    return (found.group(group) or "") if found else ""


def _pattern_problem(pattern: Value) -> str | None:
    assert isinstance(pattern, str)
    try:
        compile_pattern(pattern)
    except PatternError as error:
        place = f" (character {error.offset + 1} of the pattern)" if error.offset is not None else ""
        return f"{error.message}{place}"
    return None


def _group_problem(arguments: tuple[Expr, ...]) -> tuple[Failure, str] | None:
    """What is wrong with the group number of a `regexp_extract` whose pattern is fine, or None."""
    pattern, group = arguments[1], arguments[2]
    assert isinstance(pattern, Const)
    assert isinstance(pattern.value, str)
    assert isinstance(group, Const)
    assert isinstance(group.value, int)
    groups: int = compile_pattern(pattern.value).groups
    if 0 <= group.value <= groups:
        return None
    plural = "" if groups == 1 else "s"
    return Failure.ARGUMENT, f"the pattern has {groups} group{plural}, so the number goes from 0 to {groups}"


_S = Parameter("s", Kind.TEXT)
_PATTERN = Parameter("pattern", Kind.TEXT, literal=True, problem=_pattern_problem)

TEXT_FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec(
        name="length",
        theme="text",
        called="length",
        parameters=(_S,),
        result=fixed(INT),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        bounds=_length_bounds,
        evaluate=lambda _, s: len(s),
        summary="The number of characters.",
        examples=(Example("length('café')", "4"),),
    ),
    FunctionSpec(
        name="lower",
        theme="text",
        called="lower",
        parameters=(_S,),
        result=fixed(TEXT),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s: s.lower(),
        summary="In lower case, by the full mapping of Unicode, whatever the locale.",
        examples=(Example("lower('Ébène')", "'ébène'"),),
    ),
    FunctionSpec(
        name="upper",
        theme="text",
        called="upper",
        parameters=(_S,),
        result=fixed(TEXT),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s: s.upper(),
        summary="In upper case, by the full mapping of Unicode; the text may grow.",
        examples=(Example("upper('straße')", "'STRASSE'"),),
    ),
    FunctionSpec(
        name="trim",
        theme="text",
        called="trim",
        parameters=(_S,),
        result=_no_longer_than_first,
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s: s.strip(" "),
        summary="Without spaces at both ends (only spaces, no other white space).",
        examples=(Example("trim('  a b ')", "'a b'"),),
    ),
    FunctionSpec(
        name="substring",
        theme="text",
        called="substring",
        parameters=(
            _S,
            Parameter("from", Kind.INT, problem=_position_problem),
            Parameter("n", Kind.INT, optional=True, problem=_length_problem),
        ),
        result=_no_longer_than_first,
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=_substring,
        summary="At most `n` characters starting at position `from`, which counts from 1; without `n` to the end.",
        examples=(Example("substring('pipeline', 5, 4)", "'line'"), Example("substring('ab', 3, 5)", "''")),
    ),
    FunctionSpec(
        name="replace",
        theme="text",
        called="replace",
        parameters=(_S, Parameter("old", Kind.TEXT), Parameter("new", Kind.TEXT)),
        result=fixed(TEXT),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=_replace,
        summary="Every `old`, from the left, replaced by `new`; an empty `old` changes nothing.",
        examples=(Example("replace('a-b-c', '-', '')", "'abc'"), Example("replace('abc', '', 'x')", "'abc'")),
    ),
    FunctionSpec(
        name="concat",
        theme="text",
        called="concat",
        written="a || b, concat(a, b, ...)",
        parameters=(Parameter("a", Kind.TEXT), Parameter("b", Kind.TEXT)),
        variadic=True,
        result=_concat_result,
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, *parts: "".join(parts),
        summary="One text after the other.",
        examples=(Example("'a' || 'b'", "'ab'"), Example("concat('x', '-', 'y')", "'x-y'")),
    ),
    FunctionSpec(
        name="starts_with",
        theme="text",
        called="starts_with",
        parameters=(_S, Parameter("prefix", Kind.TEXT)),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s, prefix: s.startswith(prefix),
        summary="Whether the text begins with `prefix`.",
        examples=(Example("starts_with('https://a', 'https:')", "true"),),
    ),
    FunctionSpec(
        name="ends_with",
        theme="text",
        called="ends_with",
        parameters=(_S, Parameter("suffix", Kind.TEXT)),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s, suffix: s.endswith(suffix),
        summary="Whether the text ends with `suffix`.",
        examples=(Example("ends_with('a.csv', '.csv')", "true"),),
    ),
    FunctionSpec(
        name="contains",
        theme="text",
        called="contains",
        parameters=(_S, Parameter("part", Kind.TEXT)),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s, part: part in s,
        summary="Whether `part` occurs anywhere.",
        examples=(Example("contains('haystack', 'st')", "true"),),
    ),
    FunctionSpec(
        name="split_part",
        theme="text",
        called="split_part",
        parameters=(_S, Parameter("separator", Kind.TEXT), Parameter("n", Kind.INT, problem=_position_problem)),
        result=_no_longer_than_first,
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=_split_part,
        summary="Part `n`, counted from 1, of the text cut at every separator; '' if there are fewer parts.",
        examples=(Example("split_part('a/b/c', '/', 2)", "'b'"), Example("split_part('a/b', '/', 5)", "''")),
    ),
    FunctionSpec(
        name="regexp_match",
        theme="text",
        called="regexp_match",
        parameters=(_S, _PATTERN),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s, pattern: compile_pattern(pattern).search(s) is not None,
        summary="Whether the pattern fits anywhere in the text.",
        examples=(Example("regexp_match('item-42', '^item-\\d+$')", "true"),),
    ),
    FunctionSpec(
        name="regexp_extract",
        theme="text",
        called="regexp_extract",
        parameters=(_S, _PATTERN, Parameter("group", Kind.INT, literal=True)),
        result=_no_longer_than_first,
        problem=_group_problem,
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=_regexp_extract,
        summary="What the group (0: the whole pattern) fitted at its leftmost place, or '' if nothing did.",
        examples=(Example("regexp_extract('a=1&channel_id=9', '(&|^)channel_id=([^&]*)', 2)", "'9'"),),
    ),
)
