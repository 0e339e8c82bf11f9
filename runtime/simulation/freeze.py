"""A component's state as a value that can be compared and hashed: how the explorer knows a state it has already seen.

Everything that is reachable from the object counts, except counters, functions and the plan, which say nothing
about the future. Dicts and sets are put in one order, so two states that differ only in history are one.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

PLAN_MODULE = "runtime.plan"
SCALARS = (int, float, str, bool, bytes, type(None))


def freeze(value: Any) -> Any:
    """A nested tuple with the same meaning."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if isinstance(value, Counter):
        return "counters"
    if isinstance(value, dict):
        return ("dict", *sorted(((freeze(k), freeze(v)) for k, v in value.items()), key=repr))
    if isinstance(value, set | frozenset):
        return ("set", *sorted((freeze(v) for v in value), key=repr))
    if isinstance(value, Enum):
        return value.name
    if kind.__module__ == PLAN_MODULE or callable(value):
        return kind.__name__
    if hasattr(value, "__dict__") or hasattr(kind, "__slots__"):
        return (kind.__name__, *((name, freeze(getattr(value, name))) for name in _attributes(value)))
    return tuple(freeze(part) for part in value)  # lists, tuples, deques


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        names.extend(getattr(kind, "__slots__", ()))
    return sorted(name for name in names if name not in ("__dict__", "__weakref__") and hasattr(value, name))
