"""Codes MPL04xx: relations and operators."""

from mpl.diagnostic import Code

CODES: tuple[Code, ...] = ()
