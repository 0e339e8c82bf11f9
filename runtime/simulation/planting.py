"""How a mistake is planted: one method of the engine is replaced for as long as a `with` block lasts.

The lists of mistakes are in `mistakes_specified.py` (the protocol's own table) and `mistakes_further.py`;
`mistakes.py` puts them together and hunts them. Production code has no switches: its rules are methods, or lines of
generated loops, and both can be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from runtime.loops import code


@dataclass(frozen=True)
class Mistake:
    """A named bug. `patches` are (class or module, attribute, replacement)."""

    name: str
    what: str
    patches: tuple[tuple[Any, str, Any], ...]


@contextmanager
def planted(mistake: Mistake) -> Iterator[None]:
    """Make the mistake inside the block, and take it back."""
    with ExitStack() as stack:
        for owner, attribute, replacement in mistake.patches:
            stack.enter_context(replaced(owner, attribute, replacement))
        yield


@contextmanager
def replaced(owner: Any, attribute: str, replacement: Any) -> Iterator[None]:
    """Put another function, property or value in the place of one."""
    inherited = attribute not in vars(owner)
    before = vars(owner).get(attribute)
    setattr(owner, attribute, replacement)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, before)


Change = tuple[str, str | Callable[[re.Match[str]], str]]
"""A pattern of a generated loop, and what is printed in its place."""


def misprinted(template: str, *changes: Change) -> tuple[Any, str, Any]:
    """A patch: loops of these templates are printed with changes."""
    printed = code.print_template

    def print_template(name: str, context: Any) -> str:
        text = printed(name, context)
        for pattern, replacement in changes if re.fullmatch(template, name) else ():
            text = re.sub(pattern, replacement, text)
        return text

    return code, "print_template", print_template


def always(value: object) -> Callable[..., Any]:
    """A method that answers the same whatever it is asked."""
    return lambda *_, **__: value
