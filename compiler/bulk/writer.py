"""What a writer of one function is: the expression writer and the typed call in, text out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mpl.typed import Apply

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter

Writer = Callable[["ExpressionWriter", Apply], str]


class NotInBulk(Exception):
    """Spark would compute something else, or only row by row in Python. The text says what and why."""
