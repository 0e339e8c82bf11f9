"""Codes MPL02xx: names and declarations."""

from mpl.diagnostic import Code, Severity

UNKNOWN_RELATION = Code("MPL0201", Severity.ERROR, "no stream, table or view has this name")
UNKNOWN_COLUMN = Code("MPL0202", Severity.ERROR, "no column has this name here")
DUPLICATE_NAME = Code("MPL0203", Severity.ERROR, "this name is declared twice")
DUPLICATE_COLUMN = Code("MPL0204", Severity.ERROR, "two columns would have the same name")
REPEATED_OPTION = Code("MPL0205", Severity.ERROR, "an option is given twice")
VIEW_CYCLE = Code("MPL0206", Severity.ERROR, "views read each other in a circle")
BAD_STREAM_OPTION = Code("MPL0207", Severity.ERROR, "a stream option does not fit its column")
BAD_TICK_PHASE = Code("MPL0208", Severity.ERROR, "a tick phase must be below its count")
KEY_NOT_UNIQUE = Code("MPL0209", Severity.ERROR, "the declared key does not identify rows")
DROPPED_AND_DECLARED = Code("MPL0210", Severity.ERROR, "something is declared and dropped in one program")
ALIAS_TWICE = Code("MPL0211", Severity.ERROR, "two relations go by the same name in one pipeline")

CODES: tuple[Code, ...] = (
    UNKNOWN_RELATION,
    UNKNOWN_COLUMN,
    DUPLICATE_NAME,
    DUPLICATE_COLUMN,
    REPEATED_OPTION,
    VIEW_CYCLE,
    BAD_STREAM_OPTION,
    BAD_TICK_PHASE,
    KEY_NOT_UNIQUE,
    DROPPED_AND_DECLARED,
    ALIAS_TWICE,
)
