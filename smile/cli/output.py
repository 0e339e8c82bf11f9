"""Printing diagnostics, the same way for every subcommand: text on standard error, JSON on standard output."""

from __future__ import annotations

import sys

import typer

from mpl.check import Checked
from mpl.render import render_all, wants_color


def show_diagnostics(checked: Checked) -> None:
    """Errors and warnings as text, with a summary line; nothing when there are none."""
    if checked.diagnostics:
        text = render_all(checked.diagnostics, color=wants_color(sys.stderr), dropped=checked.dropped)
        typer.echo(text, err=True)
