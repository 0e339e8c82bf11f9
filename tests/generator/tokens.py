"""A text cut into rough tokens, for changing it: layout, mutations and shrinking work on these.

Deliberately not the lexer under test: it takes any text, also one that is no MPL, and joins back to the same text.
"""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"""\s+ | --[^\n]* | '(?:[^'\n]|'')*' | "[^"\n]*"
    | [0-9]+\s*(?:us|ms|s|min|h|d)\b | [0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?
    | (?:[A-Za-z_]\w*|`[^`\n]+`)(?:\.(?:[A-Za-z_]\w*|`[^`\n]+`))?
    | \|> | \|\| | := | <> | <= | >= | \.\. | .""",
    re.VERBOSE | re.DOTALL,
)


def cut(text: str) -> list[str]:
    """All tokens, blanks and comments among them: they join to the text again."""
    return TOKEN.findall(text)


def words(text: str) -> list[str]:
    """Only the tokens that mean something."""
    return [token for token in cut(text) if not token.isspace() and not token.startswith("--")]
