"""Regular expressions: the patterns that `regexp_match` and `regexp_extract` take.

A subset that means the same in Python, RE2 and Java, and that can always be matched in linear time:

    abc  .  [a-z_]  [^,]     characters; `.` is any but a newline; ranges and classes are of code points
    \\d \\w \\s \\D \\W \\S        digits, word characters, white space (ASCII), and their opposites
    \\t \\n \\r  \\. \\[ ...       control characters, and any punctuation taken literally
    ^  $                     start and end of the whole text
    (...)  (?:...)  a|b      groups, with or without a number; alternatives, the leftmost that fits
    *  +  ?  {2}  {2,}  {2,5}   repetitions, as many as fit; with `?` behind as few as fit

Not there: back-references, look-around, flags, word boundaries, repeating something that may be empty. Texts are
searched from the left; `regexp_machine.py` does it. Here the pattern is read and turned into the machine's program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

PATTERN_LENGTH_MAX = 500
PATTERN_NESTING_MAX = 20
REPEAT_MAX = 100
PROGRAM_SIZE_MAX = 2_000

_CLASSES: dict[str, tuple[tuple[str, str], ...]] = {
    "d": (("0", "9"),),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "s": (("\t", "\r"), (" ", " ")),
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}
_SPECIAL = frozenset("\\^$.|?*+()[]{}")


class PatternError(Exception):
    """The pattern is not understood; `offset` is the character of the pattern where reading stopped."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True)
class CharacterSet:
    """Code points in (or, negated, not in) any of the ranges, both ends included."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def holds(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) is not self.negated


@dataclass(frozen=True)
class Edge:
    """The start or the end of the text."""

    at_start: bool


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Alternatives:
    choices: tuple[Tree, ...]


@dataclass(frozen=True)
class Group:
    """`number` is None for `(?:...)`."""

    number: int | None
    inner: Tree


@dataclass(frozen=True)
class Repeat:
    """`most` is None when there is no limit."""

    inner: Tree
    least: int
    most: int | None
    lazy: bool


Tree = CharacterSet | Edge | Sequence | Alternatives | Group | Repeat


def may_be_empty(tree: Tree) -> bool:
    match tree:
        case CharacterSet():
            return False
        case Edge():
            return True
        case Sequence():
            return all(may_be_empty(part) for part in tree.parts)
        case Alternatives():
            return any(may_be_empty(choice) for choice in tree.choices)
        case Group():
            return may_be_empty(tree.inner)
        case Repeat():
            return tree.least == 0 or may_be_empty(tree.inner)


class _Reader:
    """Recursive descent over the characters of one pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0
        self.nesting = 0

    def read(self) -> Tree:
        if len(self.pattern) > PATTERN_LENGTH_MAX:
            raise PatternError(f"the pattern is longer than {PATTERN_LENGTH_MAX} characters", PATTERN_LENGTH_MAX)
        tree = self._alternatives()
        if self.at < len(self.pattern):
            raise PatternError("`)` without `(`", self.at)
        return tree

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _alternatives(self) -> Tree:
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else Alternatives(tuple(choices))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return Sequence(tuple(parts))

    def _atom(self) -> Tree:
        start = self.at
        character = self._peek()
        self.at += 1
        match character:
            case "(":
                return self._group(start)
            case "[":
                return self._class(start)
            case ".":
                return CharacterSet((("\n", "\n"),), negated=True)
            case "^" | "$":
                return Edge(at_start=character == "^")
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{":
                raise PatternError(f"`{character}` has nothing to repeat", start)
            case "]" | "}":
                raise PatternError(f"write `\\{character}` for the character itself", start)
            case _:
                return CharacterSet(((character, character),))

    def _group(self, start: int) -> Tree:
        number: int | None = None
        if not self._take("?:"):
            if self._peek() == "?":
                raise PatternError("only `(...)` and `(?:...)`: no look-around, names or flags", start)
            self.groups += 1
            number = self.groups
        self.nesting += 1
        if self.nesting > PATTERN_NESTING_MAX:
            raise PatternError(f"groups are nested more than {PATTERN_NESTING_MAX} deep", start)
        inner = self._alternatives()
        if not self._take(")"):
            raise PatternError("`(` without `)`", start)
        self.nesting -= 1
        return Group(number, inner)

    def _escape(self) -> CharacterSet:
        start = self.at - 1
        character = self._peek()
        self.at += 1
        if character.lower() in _CLASSES:
            return CharacterSet(_CLASSES[character.lower()], negated=character.isupper())
        if character in _CONTROLS:
            character = _CONTROLS[character]
        elif character == "" or character.isalnum() or not character.isascii() or not character.isprintable():
            hint = "back-references are not available" if character.isdigit() else "is not an escape"
            raise PatternError(f"`\\{character}` {hint}", start)
        return CharacterSet(((character, character),))

    def _class(self, start: int) -> CharacterSet:
        negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        while not self._take("]"):
            if self._peek() == "":
                raise PatternError("`[` without `]`", start)
            item_at = self.at
            low = self._class_item()
            if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                high = self._class_item()
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
                    raise PatternError("a range needs one character at each end", item_at)
                if low[0][0] > high[0][0]:
                    raise PatternError("the range goes backwards", item_at)
                ranges.append((low[0][0], high[0][0]))
            else:
                ranges.extend(low)
        if not ranges:
            raise PatternError("an empty class", start)
        return CharacterSet(tuple(ranges), negated)

    def _class_item(self) -> tuple[tuple[str, str], ...]:
        start = self.at
        character = self._peek()
        self.at += 1
        if character == "\\":
            escaped = self._escape()
            if escaped.negated:
                raise PatternError("an opposite class such as `\\D` cannot stand inside `[...]`", start)
            return escaped.ranges
        # Java reads `[` and `&&` inside a class as set operations, so they must be escaped to mean themselves.
        if character == "[" or (character == "&" and self._peek() == "&"):
            raise PatternError(f"write `\\{character}` inside `[...]`", start)
        return ((character, character),)

    def _repeated(self, atom: Tree) -> Tree:
        start = self.at
        least, most = 0, None
        if self._take("*"):
            pass
        elif self._take("+"):
            least = 1
        elif self._take("?"):
            most = 1
        elif self._take("{"):
            least, most = self._counts(start)
        else:
            return atom
        lazy = self._take("?")
        if self._peek() in ("*", "+", "?", "{") and self._peek():
            raise PatternError("a repetition of a repetition; put the first into `(?:...)`", self.at)
        if may_be_empty(atom):
            raise PatternError("what is repeated here may be empty", start)
        return Repeat(atom, least, most, lazy)

    def _counts(self, start: int) -> tuple[int, int | None]:
        end = self.pattern.find("}", self.at)
        body = self.pattern[self.at : end] if end >= 0 else ""
        low, comma, high = body.partition(",")
        if not _is_count(low) or (high and not _is_count(high)):
            raise PatternError("a repetition looks like `{2}`, `{2,}` or `{2,5}`; write `\\{` for the character", start)
        self.at = end + 1
        least = int(low)
        most = None if comma and not high else int(high or low)
        if max(least, most or 0) > REPEAT_MAX:
            raise PatternError(f"a repetition goes up to {REPEAT_MAX}", start)
        if most is not None and most < max(least, 1):
            raise PatternError("the second number of a repetition is smaller than the first, or 0", start)
        return least, most


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


# --- the program ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Consumes one character of the set."""

    characters: CharacterSet


@dataclass(frozen=True)
class Fork:
    """Goes on at the first place, and if that fails at the second."""

    first: int
    second: int


@dataclass(frozen=True)
class Mark:
    """Notes the position: where group n starts (2n) or ends (2n + 1)."""

    slot: int


@dataclass(frozen=True)
class Found:
    """The whole pattern fitted."""


Instruction = Step | Fork | Mark | Edge | Found


@dataclass(frozen=True)
class Program:
    instructions: tuple[Instruction, ...]
    groups: int


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Program:
    """The machine's program for a pattern; raises PatternError."""
    reader = _Reader(pattern)
    tree = reader.read()
    code: list[Instruction] = []
    _emit(Group(0, tree), code)
    code.append(Found())
    return Program(tuple(code), reader.groups)


def _emit(tree: Tree, code: list[Instruction]) -> None:
    if len(code) > PROGRAM_SIZE_MAX:
        raise PatternError("the pattern is too large; use smaller repetitions", 0)
    match tree:
        case CharacterSet():
            code.append(Step(tree))
        case Edge():
            code.append(tree)
        case Sequence():
            for part in tree.parts:
                _emit(part, code)
        case Group():
            if tree.number is None:
                _emit(tree.inner, code)
            else:
                code.append(Mark(2 * tree.number))
                _emit(tree.inner, code)
                code.append(Mark(2 * tree.number + 1))
        case Alternatives():
            _emit_alternatives(tree, code)
        case Repeat():
            _emit_repeat(tree, code)


def _fork(first: int, second: int, *, lazy: bool) -> Fork:
    return Fork(second, first) if lazy else Fork(first, second)


def _emit_alternatives(tree: Alternatives, code: list[Instruction]) -> None:
    exits: list[int] = []
    for choice in tree.choices[:-1]:
        fork = len(code)
        code.append(Found())  # replaced below, when the place of the next choice is known
        _emit(choice, code)
        exits.append(len(code))
        code.append(Found())
        code[fork] = Fork(fork + 1, len(code))
    _emit(tree.choices[-1], code)
    for place in exits:
        code[place] = Fork(len(code), len(code))


def _emit_repeat(tree: Repeat, code: list[Instruction]) -> None:
    for _ in range(tree.least):
        _emit(tree.inner, code)
    if tree.most is None:
        fork = len(code)
        code.append(Found())
        _emit(tree.inner, code)
        code.append(Fork(fork, fork))
        code[fork] = _fork(fork + 1, len(code), lazy=tree.lazy)
        return
    forks: list[int] = []
    for _ in range(tree.most - tree.least):
        forks.append(len(code))
        code.append(Found())
        _emit(tree.inner, code)
    for fork in forks:
        code[fork] = _fork(fork + 1, len(code), lazy=tree.lazy)
