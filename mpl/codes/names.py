"""Codes MPL02xx: names and declarations."""

from mpl.diagnostic import Code

CODES: tuple[Code, ...] = ()
