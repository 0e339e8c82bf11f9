"""Letting go of a component whose state is large, a little at a time.

To free a dictionary of a million rows takes Python a tenth of a second in one piece, during which a broker answers
nobody. So the containers of an operator are emptied in slices, one per round, before the last reference goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.kernels.operator import KernelOperator
from runtime.operators.operator import Operator
from runtime.protocol.build import AnyComponent
from runtime.protocol.state_component import StateComponent
from runtime.rows import Rows

SLICE = 8_192


def dismantled(component: AnyComponent) -> Iterator[None]:
    """Empties a little whenever it is asked for more. Nobody may use the component any more."""
    if isinstance(component, StateComponent) and not isinstance(component.operator, KernelOperator):
        for large in _large(component.operator):
            while large:
                _shrink(large)
                yield


def _large(operator: Operator) -> Iterator[Any]:
    """Lists, sets and dictionaries that are the operator's own: its rows, its inputs' rows, and its indexes."""
    owners: list[Rows | Operator] = [operator.rows, operator, *(one for one in operator.inputs if one is not None)]
    for owner in owners:
        for value in _attributes(owner):
            for one in value if isinstance(value, list | tuple) and len(value) <= SLICE else (value,):
                if isinstance(one, dict | list | set) and len(one) > SLICE:
                    yield one


def _attributes(owner: Rows | Operator) -> list[Any]:
    names = {name for kind in type(owner).__mro__ for name in getattr(kind, "__slots__", ())} | set(
        getattr(owner, "__dict__", ())
    )
    return [getattr(owner, name) for name in names if hasattr(owner, name)]


def _shrink(large: Any) -> None:
    if isinstance(large, list):
        del large[-SLICE:]
    elif isinstance(large, dict):
        for _ in range(min(SLICE, len(large))):
            large.popitem()
    else:
        for _ in range(min(SLICE, len(large))):
            large.pop()
