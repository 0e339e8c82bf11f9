"""`smile top`: a live dashboard of brokers and components."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.connecting import Address, KeysFile, Timeout, linked

if TYPE_CHECKING:
    from smile.cli.standing import Standing


def top(
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long between two looks.")] = 1.0,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = 3.0,
) -> None:
    """Watch brokers and components: who is up, how far horizons are behind, gaps, rates. q ends it.

    Example: smile top --every 0.5
    """
    from smile.cli.dashboard import Dashboard
    from smile.cli.standing import standing

    with linked(address, keys, timeout) as connection:
        deployment = connection.deployment
        brokers, placement = deployment["brokers"], deployment["placement"]
        last: list[Standing] = []

        def look() -> Standing:
            earlier = last[-1] if last else None
            last[:] = [standing(connection.status(), brokers, placement, monotonic(), earlier)]
            return last[0]

        Dashboard(f"smile top: {deployment['name']}", look, every).run()
