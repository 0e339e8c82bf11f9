"""Typed scalar expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mpl.source import Span
from mpl.types import OPEN, Bounds, Type, Value


@dataclass(frozen=True, kw_only=True)
class TypedExpr:
    """`nullable` = the value may be null; `bounds` = a range the value is known to stay in (numbers only)."""

    type: Type
    nullable: bool = False
    bounds: Bounds = OPEN
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Const(TypedExpr):
    """A canonical value (see `mpl/types.py`)."""

    value: Value


@dataclass(frozen=True)
class ColumnRef(TypedExpr):
    """Column at `index` of the input; `name` is for people."""

    index: int
    name: str


@dataclass(frozen=True)
class Apply(TypedExpr):
    """A library function or operator on arguments; see `mpl/functions/` for the list of names.

    Operators are functions here: add subtract multiply divide modulo negate concat, equal unequal less less_equal
    greater greater_equal, and or not, in_list like is_null coalesce cast ... `between` has become `and`, `not in` has
    become `not`. `cast` converts to this node's own type.
    """

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class CaseOf(TypedExpr):
    """`otherwise` is always there: a missing `else` has become a null constant."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


@dataclass(frozen=True)
class PythonCall(TypedExpr):
    """A declared function whose body is Python. `monotone` has one direction per argument or is empty."""

    module: str
    function: str
    arguments: tuple[Expr, ...]
    monotone: tuple[Literal["up", "down"], ...]


Expr = Const | ColumnRef | Apply | CaseOf | PythonCall
