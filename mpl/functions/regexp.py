"""Regular expressions: the patterns that `regexp_match` and `regexp_extract` take.

A subset that means the same in Python, RE2 and Java; RE2 matches it, in linear time whatever the pattern:

    abc  .  [a-z_]  [^,]     characters; `.` is any but a newline; ranges and classes are of code points
    \\d \\w \\s \\D \\W \\S        digits, word characters, white space (ASCII), and their opposites
    \\t \\n \\r  \\. \\[ ...       control characters, and any punctuation taken literally
    ^  $                     start and end of the whole text
    (...)  (?:...)  a|b      groups, with or without a number; alternatives, the leftmost that fits
    *  +  ?  {2}  {2,}  {2,5}   repetitions, as many as fit; with `?` behind as few as fit

Not there: back-references, look-around, flags, word boundaries, repeating something that may be empty. Python's own
parser reads the pattern, so that whatever is not on the list can be refused with a reason.
"""

from __future__ import annotations

import re
import string
import warnings
from functools import lru_cache
from re import _constants as op
from re import _parser
from typing import Any

import re2

PATTERN_LENGTH_MAX = 500
PATTERN_NESTING_MAX = 20
REPEAT_MAX = 100
PROGRAM_BYTES_MAX = 2**20

WHITE_SPACE = "\\t\\n\\v\\f\\r "
"""RE2 leaves the vertical tab out of `\\s`, Python and Java do not."""

_CATEGORIES = frozenset(
    (
        *(op.CATEGORY_DIGIT, op.CATEGORY_WORD, op.CATEGORY_SPACE),
        *(op.CATEGORY_NOT_DIGIT, op.CATEGORY_NOT_WORD, op.CATEGORY_NOT_SPACE),
    )
)


class PatternError(Exception):
    """The pattern is not understood; `offset` is the character of the pattern where reading stopped, if known."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """An RE2 pattern (with `search` and `groups`), or `PatternError`."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise PatternError(f"patterns have at most {PATTERN_LENGTH_MAX} characters", PATTERN_LENGTH_MAX)
    _check_characters(pattern)
    _check_tree(_parsed(pattern), 0)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        return re2.compile(_with_white_space(pattern), options)
    except re2.error as error:
        (reason,) = error.args
        raise PatternError(reason.decode() if isinstance(reason, bytes) else str(reason)) from error


_TOKEN = re.compile(r"\\.|\\$|\[\^?\]?|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL)


def _check_characters(pattern: str) -> None:
    """What engines read differently is refused: odd escapes, and brackets and braces that are not what they seem."""
    inside = False
    for found in _TOKEN.finditer(pattern):
        token = found.group()
        problem = None
        if token[0] == "\\":
            problem = _escape_problem(token[1:], inside)
        elif token[0] == "[":
            problem = "a bracket inside brackets" if inside else "empty brackets" if token[-1] == "]" else None
            inside = True
        elif token == "]":
            problem = None if inside else "a bracket that was not opened"
            inside = False
        elif token in "{}" and not inside:
            problem = "a brace that is no repetition"
        if problem:
            raise PatternError(problem + ("; put a backslash before it" if token[0] != "\\" else ""), found.start())


def _escape_problem(letter: str, inside: bool) -> str | None:
    if not letter:
        return "a backslash needs a character after it"
    if letter in "DWS" and inside:
        return f"`\\{letter}` cannot stand inside brackets"
    if letter not in "dwsDWStnr" and letter not in string.punctuation:
        return f"`\\{letter}` is not supported"
    return None


def _parsed(pattern: str) -> Any:
    try:
        with warnings.catch_warnings():
            # `[a[b]` and the like: Python warns that it might mean something else some day; elsewhere it does.
            warnings.simplefilter("error")
            tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise PatternError(getattr(error, "msg", str(error)), getattr(error, "pos", None)) from error
    if tree.state.groupdict or tree.state.flags & ~(re.UNICODE | _parser.SRE_FLAG_VERBOSE) or tree.state.flags & re.X:
        raise PatternError("groups with names and flags are not supported")
    return tree


def _check_tree(tree: Any, depth: int) -> None:
    if depth > PATTERN_NESTING_MAX:
        raise PatternError(f"groups nest deeper than {PATTERN_NESTING_MAX}")
    for kind, value in tree:
        if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY):
            continue
        if kind is op.IN:
            _check_class(value)
        elif kind is op.AT and value in (op.AT_BEGINNING, op.AT_END):
            continue
        elif kind is op.SUBPATTERN:
            _, added, removed, inner = value
            if added or removed:
                raise PatternError("flags are not supported")
            _check_tree(inner, depth + 1)
        elif kind is op.BRANCH:
            for branch in value[1]:
                _check_tree(branch, depth + 1)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, inner = value
            _check_repeat(least, most, inner, depth)
        else:
            raise PatternError("back-references, look-around, word boundaries and atomic groups are not supported")


def _check_class(parts: list[tuple[Any, Any]]) -> None:
    for kind, value in parts:
        if kind is op.CATEGORY and value not in _CATEGORIES:
            raise PatternError("this class is not supported")


def _check_repeat(least: int, most: Any, inner: Any, depth: int) -> None:
    if least > REPEAT_MAX or (most is not op.MAXREPEAT and most > REPEAT_MAX):
        raise PatternError(f"repetitions go up to {REPEAT_MAX}")
    if most == 0:
        raise PatternError("a repetition of nothing")
    if inner.getwidth()[0] == 0:
        raise PatternError("what is repeated must not fit the empty text")
    _check_tree(inner, depth + 1)


def _with_white_space(pattern: str) -> str:
    """The pattern with `\\s` and `\\S` spelled out."""
    inside = False

    def spelled(found: re.Match[str]) -> str:
        nonlocal inside
        match found.group():
            case "\\s":
                return WHITE_SPACE if inside else f"[{WHITE_SPACE}]"
            case "\\S":
                return f"[^{WHITE_SPACE}]"
            case "[" | "]" as bracket:
                inside = bracket == "["
            case _:
                pass
        return found.group()

    return re.sub(r"\\.|[\[\]]", spelled, pattern)
