"""Layout: a tree of words and possible line breaks, printed to a width.

A `Group` is printed on one line if it fits and otherwise broken at all of its own breaks; groups inside it decide for
themselves. Comments hang on words. One that stood after a word stays at the end of that word's line; one that had a
line of its own keeps it. Either breaks every group that it stands in the middle of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

WIDTH = 100
INDENT = 2


class Break(Enum):
    SPACE = "never a line break"
    LINE = "a space or a line break"
    SOFT = "nothing or a line break"


SPACE, LINE, SOFT = Break.SPACE, Break.LINE, Break.SOFT


@dataclass(eq=False, slots=True)
class Word:
    """One token. `text` is None for a name or literal until it is taken from the source."""

    text: str | None
    leading: list[str] = field(default_factory=list)
    trailing: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    body: Doc


@dataclass(frozen=True, eq=False, slots=True)
class Indent:
    body: Doc
    columns: int = INDENT


Doc = Word | Break | Group | Indent | tuple["Doc", ...]


def words_of(doc: Doc) -> list[Word]:
    """All words of a tree, in order."""
    words: list[Word] = []
    waiting: list[Doc] = [doc]
    while waiting:
        match waiting.pop():
            case Word() as word:
                words.append(word)
            case Group(body) | Indent(body):
                waiting.append(body)
            case tuple() as parts:
                waiting.extend(reversed(parts))
            case Break():
                pass
    return words


@dataclass(frozen=True, slots=True)
class _Item:
    """Something still to be printed: at which indentation, and whether its group fits on one line."""

    indent: int
    flat: bool
    doc: Doc


class _Page:
    """The text so far. Blanks and trailing comments are held back until it is known what follows them."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.column = 0
        self.fresh = True
        self._space = False
        self.comments: list[str] = []

    def space(self) -> None:
        self._space = not self.fresh

    def write(self, text: str) -> None:
        if self._space:
            self.parts.append(" ")
            self.column += 1
        self.parts.append(text)
        self.column += len(text)
        self.fresh = self._space = False

    def newline(self, indent: int) -> None:
        if self.fresh:
            return
        for number, comment in enumerate(self.comments):
            self.parts.append(f"  {comment}" if number == 0 else f"\n{' ' * indent}{comment}")
        self.comments.clear()
        self.parts.append("\n" + " " * indent)
        self.column = indent
        self.fresh = True
        self._space = False

    def finish(self) -> str:
        self.newline(0)
        return "".join(self.parts).rstrip()


def layout(doc: Doc, width: int = WIDTH) -> str:
    """The text of a statement, without a newline at its end."""
    page = _Page()
    waiting = [_Item(0, False, doc)]
    while waiting:
        item = waiting.pop()
        indent = item.indent
        match item.doc:
            case Word() as word:
                if page.comments or word.leading:
                    page.newline(indent)
                for comment in word.leading:
                    page.write(comment)
                    page.newline(indent)
                assert word.text is not None
                page.write(word.text)
                page.comments += word.trailing
            case Break() as kind:
                if kind is not SPACE and not item.flat:
                    page.newline(indent)
                elif kind is not SOFT:
                    page.space()
            case tuple() as parts:
                waiting.extend(_Item(indent, item.flat, part) for part in reversed(parts))
            case Indent(body, columns):
                waiting.append(_Item(indent + columns, item.flat, body))
            case Group(body):
                flat = item.flat or _fits(body, width - page.column, waiting)
                waiting.append(_Item(indent, flat, body))
    return page.finish()


def _fits(body: Doc, room: int, after: list[_Item]) -> bool:
    """Whether `body` has room on one line, with what follows it up to the next possible line break."""
    waiting: list[tuple[bool, Doc]] = [(True, body)]
    next_after = len(after) - 1
    inside = True
    first = True
    ended_by_comment = False
    while True:
        if not waiting:
            if next_after < 0 or ended_by_comment:
                return True
            inside = False
            waiting.append((after[next_after].flat, after[next_after].doc))
            next_after -= 1
        flat, doc = waiting.pop()
        match doc:
            case Word() as word:
                if ended_by_comment or (word.leading and not first):
                    return not inside
                first = False
                ended_by_comment = bool(word.trailing)
                room -= len(word.text or "")
                if room < 0:
                    return False
            case Break() as kind:
                if not inside and not flat and kind is not SPACE:
                    return True
                room -= kind is not SOFT
            case tuple() as parts:
                waiting.extend((flat, part) for part in reversed(parts))
            case Indent(body_inside) | Group(body_inside):
                waiting.append((flat, body_inside))
