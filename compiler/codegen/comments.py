"""Names and places of a program in the comments of generated code."""

from __future__ import annotations

COMMENT_LENGTH_MAX = 80


def comment_text(text: str) -> str:
    """Text for a comment: one line of printable ASCII. A carriage return, for one, would end the comment."""
    safe = "".join(character if " " <= character <= "~" else "?" for character in text[:COMMENT_LENGTH_MAX])
    return safe if len(text) <= COMMENT_LENGTH_MAX else safe + "..."
