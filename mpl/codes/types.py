"""Codes MPL03xx: types and expressions."""

from mpl.diagnostic import Code

CODES: tuple[Code, ...] = ()
