"""From a kernel's module on disk to compiled functions: the only file that imports numba.

Both the compiling process and the one that uses the result call `load_native`: whichever comes second finds what the
first has left in numba's cache beside the module.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_kept: list[Any] = []
"""Dispatchers own the machine code of their entry points."""


def load_native(source: Path) -> tuple[Callable[..., Any], ...]:
    """The module's functions `loop_0`, `loop_1`, ..., compiled for the types that lie beside it."""
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[source.stem] = module  # where numba looks for what it finds in its cache; the folder is on no path
    spec.loader.exec_module(module)
    signatures = json.loads(source.with_suffix(".json").read_text(encoding="utf-8"))
    return tuple(_compiled(getattr(module, f"loop_{loop}"), types) for loop, types in enumerate(signatures))


def _compiled(function: Callable[..., Any], types: list[str]) -> Callable[..., Any]:
    signature = f"void({', '.join(types)})"
    dispatcher = numba.njit(signature, boundscheck=True, cache=True)(function)
    _kept.append(dispatcher)
    return _entry_point(dispatcher)


def _entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The compiled function without numba's choice among signatures, which costs half a microsecond a call.

    Not part of numba's promised interface, hence the way around.
    """
    try:
        (compiled,) = dispatcher.overloads.values()
        entry: Callable[..., Any] = compiled.entry_point
    except (AttributeError, ValueError):
        return dispatcher  # type: ignore[no-any-return]
    return entry
