"""Codes MPL01xx: syntax and limits."""

from mpl.diagnostic import Code, Severity

UNEXPECTED = Code("MPL0101", Severity.ERROR, "something else was expected here")

CODES: tuple[Code, ...] = (UNEXPECTED,)
