"""Codes MPL01xx: syntax and limits."""

from mpl.diagnostic import Code

CODES: tuple[Code, ...] = ()
