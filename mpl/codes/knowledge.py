"""Codes MPL05xx: kinds, finality and state. All of them are warnings: such a program runs, and does what it says."""

from mpl.diagnostic import Code, Severity

COLUMN_VERSIONED = Code("MPL0501", Severity.WARNING, "the values of a column do not refine each other")
ROWS_VERSIONED = Code("MPL0502", Severity.WARNING, "rows may come and go")
STATE_GROWS = Code("MPL0503", Severity.WARNING, "state can grow without end")
NEVER_FINAL = Code("MPL0504", Severity.WARNING, "`emit final` can never deliver anything")
BOUNDS_OPEN = Code("MPL0505", Severity.WARNING, "`emit bounds` has no bounds to show")

CODES: tuple[Code, ...] = (COLUMN_VERSIONED, ROWS_VERSIONED, STATE_GROWS, NEVER_FINAL, BOUNDS_OPEN)
