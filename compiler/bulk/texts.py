"""Functions of text as text of Spark expressions; patterns are rewritten where Java means something else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpl.functions.like import ANY_CHARACTER, ANY_TEXT, like_pieces
from mpl.functions.regexp import WHITE_SPACE
from mpl.typed import Apply, Const

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter


def java_literal(character: str) -> str:
    """One character as a Java pattern that fits it and nothing else."""
    return character if character.isalnum() and character.isascii() else f"\\x{{{ord(character):x}}}"


def like(out: ExpressionWriter, expr: Apply) -> str:
    pattern = expr.arguments[1]
    assert isinstance(pattern, Const)
    pieces = [
        "[\\s\\S]*" if piece is ANY_TEXT else "[\\s\\S]" if piece is ANY_CHARACTER else java_literal(str(piece))
        for piece in like_pieces(str(pattern.value))
    ]
    return f"{out.value(expr.arguments[0])}.rlike({out.constants.add('^' + ''.join(pieces) + chr(92) + 'z')})"


def substring(out: ExpressionWriter, expr: Apply) -> str:
    arguments = [*out.arguments(expr), "None"]
    return f"X.substring({', '.join(arguments[:3])})"


_PIECE = re.compile(r"\\.|[\[\]$.&]", re.DOTALL)


def java_pattern(pattern: str) -> str:
    """The same pattern for Java: `.` is any but a newline, `$` only the very end, white space spelled out, and `&&` in
    brackets two ordinary characters."""
    inside = False

    def spelled(found: re.Match[str]) -> str:
        nonlocal inside
        piece = found.group()
        match piece:
            case "\\s":
                return (
                    WHITE_SPACE.replace("\\v", "\\x0B") if inside else "[" + WHITE_SPACE.replace("\\v", "\\x0B") + "]"
                )
            case "\\S":
                return "[^" + WHITE_SPACE.replace("\\v", "\\x0B") + "]"
            case "[" | "]":
                inside = piece == "["
            case "$" if not inside:
                return "\\z"
            case "." if not inside:
                return "[^\\n]"
            case "&" if inside:
                return "\\&"
            case _:
                pass
        return piece

    return _PIECE.sub(spelled, pattern)


def _pattern(out: ExpressionWriter, expr: Apply) -> str:
    pattern = expr.arguments[1]
    assert isinstance(pattern, Const)
    return out.constants.add(java_pattern(str(pattern.value)))


def regexp_match(out: ExpressionWriter, expr: Apply) -> str:
    return f"{out.value(expr.arguments[0])}.rlike({_pattern(out, expr)})"


def regexp_extract(out: ExpressionWriter, expr: Apply) -> str:
    group = expr.arguments[2].value if len(expr.arguments) > 2 and isinstance(expr.arguments[2], Const) else 1
    return f"F.regexp_extract({out.value(expr.arguments[0])}, {_pattern(out, expr)}, {group})"
