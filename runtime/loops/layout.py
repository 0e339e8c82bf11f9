"""One line of generated code as lines that are short enough, broken where a formatter would break them.

Only what our templates print gets long: loops over many columns, and conditions about them.
"""

from __future__ import annotations

LINE_MAX = 120
INDENT = " " * 4


def laid_out(line: str) -> list[str]:
    """The same statement, or the same head of one."""
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    word, _, rest = text.partition(" ")
    if rest.startswith("= (") and _is_in_parentheses(rest[2:]):
        return laid_out(f"{indent}{word} = {rest[3:-1]}")
    if len(line) > LINE_MAX and word == "for" and text.endswith("):"):
        head, _, arguments = text.removesuffix("):").partition("(")
        return [f"{indent}{head}(", *_arguments(indent + INDENT, arguments), f"{indent}):"]
    if len(line) > LINE_MAX and word in ("if", "elif") and text.endswith(":"):
        head, inner = _opened(rest.removesuffix(":"))
        return [f"{indent}{word} {head}(", *_inner(indent + INDENT, inner), f"{indent}):"]
    return [line]


def _arguments(indent: str, text: str) -> list[str]:
    together = indent + text
    return [together] if len(together) <= LINE_MAX else [f"{indent}{one}," for one in _split(text, ", ")]


def _opened(condition: str) -> tuple[str, str]:
    """What comes before the parentheses that are opened, and what is in them: its own at the end, or new ones."""
    *others, last = _operands(condition)
    word, _, operand = last.partition(" ")
    if len(others) <= 1 and word in ("or", "and", "not") and _is_in_parentheses(operand):
        return " ".join((*others, word, "")), operand[1:-1]
    return "", condition


def _inner(indent: str, text: str) -> list[str]:
    """One operand a line, each with the word before it."""
    if len(indent + text) <= LINE_MAX:
        return [indent + text]
    match _split(text, " if "):
        case [_]:
            return [indent + operand for operand in _operands(text)]
        case [first, choice] if len(parts := _split(choice, " else ")) == 2:
            return [indent + first, f"{indent}if {parts[0]}", f"{indent}else {parts[1]}"]
        case _:
            return [indent + text]


def _operands(text: str) -> list[str]:
    """Of `or` and `and`, each but the first with that word."""
    first, *others = _split(text, " or ")
    found = _split(first, " and ")
    parts = [found[0], *(f"and {one}" for one in found[1:])]
    for other in others:
        found = _split(other, " and ")
        parts += [f"or {found[0]}", *(f"and {one}" for one in found[1:])]
    return parts


def _split(text: str, separator: str) -> list[str]:
    """At separators outside of all brackets."""
    found, begin, depth = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and text.startswith(separator, at):
            found.append(text[begin:at])
            begin = at + len(separator)
    return [*found, text[begin:]]


def _is_in_parentheses(text: str) -> bool:
    """One pair around all of it, which is not that of a tuple."""
    inner = text[1:-1]
    if not inner or not (text.startswith("(") and text.endswith(")")) or len(_split(inner, ",")) > 1:
        return False
    depth = 0
    for character in inner:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return True
