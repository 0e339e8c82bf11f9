"""The command `smile`: one file per subcommand, listed here.

Every file imports what it needs inside its functions, so that `smile --help` is there at once. Exit codes, the same for
every subcommand, are in `smile/cli/exits.py`.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from smile.cli.broker import broker
from smile.cli.check import check
from smile.cli.compile import compile as compile_command
from smile.cli.explain import explain
from smile.cli.fmt import fmt
from smile.cli.sim import sim

app = typer.Typer(
    name="smile",
    help="Write subscriptions in MPL, check them, see what they promise, attack the protocol that keeps it.",
    epilog="Start with: smile check examples/tickets/tickets.mpl",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)

COMMANDS = (check, fmt, explain, compile_command, sim, broker)
for command in COMMANDS:
    app.command()(command)


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
    """Write subscriptions in MPL, check them, see what they promise."""


def main() -> None:
    """The console script."""
    app()
