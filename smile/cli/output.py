"""Printing diagnostics, the same way for every subcommand: text on standard error, JSON on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from mpl.check import Checked
    from mpl.diagnostic import Diagnostic


WIDTH_WITHOUT_TERMINAL = 120


def show_diagnostics(checked: Checked) -> None:
    """Errors and warnings as text, with a summary line; nothing when there are none."""
    show(checked.diagnostics, checked.dropped)


def console() -> Console:
    """For tables: as wide as the terminal, and of one width without one."""
    from rich.console import Console

    made = Console()
    return made if made.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def has_terminal() -> bool:
    """To draw on, and with keys."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def show(diagnostics: Sequence[Diagnostic], dropped: int = 0) -> None:
    from mpl.render import render_all, wants_color

    if diagnostics:
        typer.echo(render_all(diagnostics, color=wants_color(sys.stderr), dropped=dropped), err=True)
