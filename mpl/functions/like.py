"""The patterns of `like`: `%` any text, `_` any one character, `\\` makes the next character ordinary."""

from __future__ import annotations

from functools import lru_cache

from mpl.types import Value

ANY_TEXT, ANY_CHARACTER = object(), object()
Piece = str | object


def like_problem(pattern: Value) -> str | None:
    """What is wrong with a pattern, or None."""
    assert isinstance(pattern, str)
    position = 0
    while position < len(pattern):
        if pattern[position] == "\\":
            if position + 1 == len(pattern):
                return "the pattern ends with a single `\\`; write `\\\\` for a backslash"
            position += 1
        position += 1
    return None


@lru_cache(maxsize=256)
def like_pieces(pattern: str) -> tuple[Piece, ...]:
    """The pattern as ordinary characters and the two wildcards."""
    pieces: list[Piece] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            pieces.append(next(characters))
        else:
            pieces.append({"%": ANY_TEXT, "_": ANY_CHARACTER}.get(character, character))
    return tuple(pieces)


def like_matches(text: str, pattern: str) -> bool:
    """Whether the whole text fits. Only the last `%` is ever reconsidered, so time is at most text * pattern."""
    pieces = like_pieces(pattern)
    at_text = at_piece = 0
    last_any: int | None = None
    resume_text = 0
    while at_text < len(text):
        piece = pieces[at_piece] if at_piece < len(pieces) else None
        if piece is ANY_TEXT:
            last_any, resume_text = at_piece, at_text
            at_piece += 1
        elif piece is ANY_CHARACTER or piece == text[at_text]:
            at_text += 1
            at_piece += 1
        elif last_any is not None:
            resume_text += 1
            at_text, at_piece = resume_text, last_any + 1
        else:
            return False
    return all(piece is ANY_TEXT for piece in pieces[at_piece:])
