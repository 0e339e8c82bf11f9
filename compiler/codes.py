"""Codes CMP01xx: what the language allows and the engine does not run yet. Every code has an entry in docs/errors/."""

from mpl.diagnostic import Code, Severity

WINDOW_UNSUPPORTED = Code("CMP0101", Severity.ERROR, "windows do not run yet")
PYTHON_NOT_ALLOWED = Code("CMP0104", Severity.ERROR, "a Python function is not allowed here")

CODES: tuple[Code, ...] = (WINDOW_UNSUPPORTED, PYTHON_NOT_ALLOWED)
