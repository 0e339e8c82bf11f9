"""SMILE: subscriptions as relational views over event streams.

    import smile

    program = smile.compile("tickets.mpl")
    with smile.run(program) as system:
        system.publish("Sellers", {"item_id": 1, "price": "12.50", "qty": 550})
        system.rows("Available")

`smile.connect(address)` gives a system of the same methods that runs in brokers; `smile.aio` has both for asyncio. The
command line is in `smile/cli/`; nothing imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpl.diagnostic import Diagnostic, MplError
    from smile.errors import (
        Closed,
        ConnectFailed,
        Interrupted,
        LogUnusable,
        NotAllowed,
        Problem,
        PublishError,
        PublishUncertain,
        SmileError,
        TimedOut,
        TokenRefused,
        UnknownName,
        ViewFailed,
    )
    from smile.program import Program, compile  # noqa: A004
    from smile.remote.connect import connect
    from smile.remote.subscription import RemoteSubscription
    from smile.remote.system import RemoteSystem
    from smile.subscription import Change, ChangeBatch, Subscription
    from smile.system import System, run

__all__ = [
    "Change",
    "ChangeBatch",
    "Closed",
    "ConnectFailed",
    "Diagnostic",
    "Interrupted",
    "LogUnusable",
    "MplError",
    "NotAllowed",
    "Problem",
    "Program",
    "PublishError",
    "PublishUncertain",
    "RemoteSubscription",
    "RemoteSystem",
    "SmileError",
    "Subscription",
    "System",
    "TimedOut",
    "TokenRefused",
    "UnknownName",
    "ViewFailed",
    "compile",
    "connect",
    "run",
]

_HOME = {
    "mpl.diagnostic": ("Diagnostic", "MplError"),
    "smile.errors": (
        *("Closed", "ConnectFailed", "Interrupted", "LogUnusable", "NotAllowed", "Problem", "PublishError"),
        *("PublishUncertain", "SmileError", "TimedOut", "TokenRefused", "UnknownName", "ViewFailed"),
    ),
    "smile.program": ("Program", "compile"),
    "smile.remote.connect": ("connect",),
    "smile.remote.subscription": ("RemoteSubscription",),
    "smile.remote.system": ("RemoteSystem",),
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
