"""SMILE: subscriptions as relational views over event streams.

    import smile

    program = smile.compile("tickets.mpl")
    with smile.run(program) as system:
        system.publish("Sellers", {"item_id": 1, "price": "12.50", "qty": 550})
        system.rows("Available")

`smile.aio` has the same for asyncio. The command line is in `smile/cli/`; nothing imports it.
"""

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
