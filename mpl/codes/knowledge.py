"""Codes MPL05xx: kinds, finality and state."""

from mpl.diagnostic import Code

CODES: tuple[Code, ...] = ()
