"""What builders share: places of tokens and nodes, and results that are not nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mpl.diagnostic import Diagnostic
from mpl.nodes import Node
from mpl.source import Span
from mpl.syntax.tokens import Token

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Phrase(Generic[T]):
    """A value with its place, for a rule that has no node of its own."""

    value: T
    span: Span


Part = Token | Node | Phrase[Any]


class Refused(Exception):
    """The statement follows the grammar but breaks a rule that only its builder sees."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def cover(first: Part, *others: Part | None) -> Span:
    """From the beginning of `first` to the end of the last part that is there."""
    last = first
    for other in others:
        if other is not None:
            last = other
    return Span(first.span.source, first.span.start, last.span.end)


def every_second(parts: tuple[T | Token, ...]) -> tuple[T, ...]:
    """The items of a list without the commas between them."""
    return parts[::2]  # type: ignore[return-value]
