"""SMILE: subscriptions as relational views over event streams.

    import smile

    program = smile.compile("tickets.mpl")
    with smile.run(program) as system:
        system.publish("Sellers", {"item_id": 1, "price": "12.50", "qty": 550})
        system.rows("Available")

`smile.aio` has the same for asyncio. The command line is in `smile/cli/`; nothing imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpl.diagnostic import Diagnostic, MplError
    from smile.errors import (
        Closed,
        LogUnusable,
        Problem,
        PublishError,
        PublishUncertain,
        SmileError,
        UnknownName,
        ViewFailed,
    )
    from smile.program import Program, compile  # noqa: A004
    from smile.subscription import Change, ChangeBatch, Subscription
    from smile.system import System, run

__all__ = [
    "Change",
    "ChangeBatch",
    "Closed",
    "Diagnostic",
    "LogUnusable",
    "MplError",
    "Problem",
    "Program",
    "PublishError",
    "PublishUncertain",
    "SmileError",
    "Subscription",
    "System",
    "UnknownName",
    "ViewFailed",
    "compile",
    "run",
]

_HOME = {
    "mpl.diagnostic": ("Diagnostic", "MplError"),
    "smile.errors": (
        *("Closed", "LogUnusable", "Problem", "PublishError", "PublishUncertain", "SmileError", "UnknownName"),
        "ViewFailed",
    ),
    "smile.program": ("Program", "compile"),
    "smile.subscription": ("Change", "ChangeBatch", "Subscription"),
    "smile.system": ("System", "run"),
}


def __getattr__(name: str) -> object:
    """Modules are loaded when they are first used: `smile check` needs neither compiler nor engine."""
    for home, names in _HOME.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
