"""`smile top`: a live dashboard of brokers and components."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count as naturals
from itertools import islice
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli import output
from smile.cli.connecting import Address, AsJson, KeysFile, Timeout, linked

if TYPE_CHECKING:
    from smile.cli.standing import Standing


def top(
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long between two looks.")] = 1.0,
    count: Annotated[int | None, typer.Option(min=1, help="Print so many looks one after the other, and end.")] = None,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = 3.0,
    as_json: AsJson = False,
) -> None:
    """Watch brokers and components: who is up, how far horizons are behind, gaps, rates. q ends it.

    Without a terminal, and with --count, plain tables are printed one after the other; with --json one line each.
    Ctrl-C ends that.

    Example: smile top --every 0.5
    """
    from smile.cli.standing import standing

    with linked(address, keys, timeout) as connection:
        deployment = connection.deployment
        brokers, placement = deployment["brokers"], deployment["placement"]
        last: list[Standing] = []

        def look() -> Standing:
            earlier = last[-1] if last else None
            last[:] = [standing(connection.status(), brokers, placement, monotonic(), earlier)]
            return last[0]

        if as_json or count is not None or not output.has_terminal():
            _print_looks(deployment["name"], look, every, count, as_json=as_json)
            return
        from smile.cli.dashboard import Dashboard

        Dashboard(f"smile top: {deployment['name']}", look, every).run()


def _print_looks(name: str, look: Callable[[], Standing], every: float, count: int | None, *, as_json: bool) -> None:
    from smile.cli.status import print_standing

    try:
        for number in islice(naturals(), count):
            if number:
                sleep(every)
            found = look()
            if as_json:
                typer.echo(json.dumps({"deployment": name, **found.to_json()}))
            else:
                print_standing(found, name)
            sys.stdout.flush()  # whoever reads a pipe sees each look when it is made
    except KeyboardInterrupt:  # the usual way to end it
        pass
