"""`smile recompute --install`: what Spark computes takes the place of what the brokers have, while they go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from smile.cli.files import fail
from smile.cli.histories import Past, spark_session

if TYPE_CHECKING:
    from smile.bulk.sources import Sources


def install_view(
    past: Past, view: str, sources: Sources, tick: int | None, timeout: float, master: str | None, *, as_json: bool
) -> None:
    """All components of the view that read events, which the others follow by themselves."""
    from smile.bulk.install import needing_state, not_in_bulk
    from smile.bulk.progress import watched
    from smile.bulk.switching import holding

    system = past.system
    if system is None:
        fail("--install is for a deployment that runs: leave out --program")
    relation = system.program.relation(view).name  # or says what there is
    if tick is not None:
        past.wait_for(relation, tick, sources, timeout)
    components = needing_state(system.program, [view])
    for name, reason in not_in_bulk(system.program, components).items():
        typer.echo(f"{name}: Spark only reads its events, and they are replayed here: {reason}", err=True)
    with (
        holding(system.connection, system.deployment, system.program, components, timeout) as held,
        spark_session(master) as spark,
    ):
        installed = held.install(
            spark, sources, tick, watch=lambda events: watched(spark, view, rows=events, quiet=as_json)
        )
    if as_json:
        typer.echo(json.dumps({"view": view, "installed": [asdict(one) for one in installed]}))
        return
    for one in installed:
        typer.echo(
            f"{one.component} on {one.broker}: computed as of tick {one.as_of}, {one.bytes:,} bytes;"
            f" caught up and took over {one.seconds:.1f} s after its logs were held"
        )
