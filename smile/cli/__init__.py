"""The command `smile`: one file per subcommand, listed here.

Every file imports what it needs inside its functions, so that `smile --help` is there at once. Exit codes, the same for
every subcommand, are in `smile/cli/exits.py`.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from smile.cli.archive import archive
from smile.cli.bench import bench
from smile.cli.broker import broker
from smile.cli.check import check
from smile.cli.compile import compile as compile_command
from smile.cli.deploy import deploy
from smile.cli.explain import explain
from smile.cli.fault import fault
from smile.cli.fmt import fmt
from smile.cli.init import init
from smile.cli.keys import keys
from smile.cli.logs import logs
from smile.cli.printed import run_and_print
from smile.cli.publish import publish
from smile.cli.query import query
from smile.cli.recompute import recompute
from smile.cli.repair import repair
from smile.cli.run import run
from smile.cli.sim import sim
from smile.cli.status import status
from smile.cli.subscribe import subscribe
from smile.cli.top import top
from smile.cli.verify import verify

app = typer.Typer(
    name="smile",
    help="Write subscriptions in MPL, run them on brokers, publish events, watch views that are never false.",
    epilog="Start with: smile init shop && cd shop && smile run shop.mpl",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)

PANELS = {
    "Write": (init, check, fmt, explain, compile_command),
    "Run": (run, broker, deploy),
    "Use": (publish, subscribe, query),
    "Look after": (status, top, logs, repair),
    "Look back (Spark)": (archive, recompute, verify),
    "Try hard": (sim, bench),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(keys, rich_help_panel="Look after")
app.add_typer(fault, rich_help_panel="Try hard")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"smile {version('smile-mpl')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Write subscriptions in MPL, run them on brokers, publish events, watch views that are never false."""


def main() -> None:
    """The console script."""
    run_and_print(app)
