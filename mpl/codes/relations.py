"""Codes MPL04xx: relations and operators."""

from mpl.diagnostic import Code, Severity

PIPELINE_TOO_LONG = Code("MPL0401", Severity.ERROR, "a pipeline has too many operators")
MERGE_NEEDS_EVENTS = Code("MPL0402", Severity.ERROR, "only event relations can be merged")
COLUMNS_DIFFER = Code("MPL0403", Severity.ERROR, "two relations that are combined have different columns")
SAME_PHASE = Code("MPL0404", Severity.ERROR, "merged streams claim the same ticks")
JOIN_NEEDS_EQUALITY = Code("MPL0405", Severity.ERROR, "a join needs an equality between both sides")
DEFAULT_MISPLACED = Code("MPL0406", Severity.ERROR, "a join default does not fit")
WINDOW_NEEDS_TIME = Code("MPL0407", Severity.ERROR, "a window needs a time column")
BAD_WINDOW = Code("MPL0408", Severity.ERROR, "a window's durations make no sense")
ASOF_NEEDS_TIMES = Code("MPL0409", Severity.ERROR, "an asof join needs to know which times to compare")
BAD_COUNT = Code("MPL0410", Severity.ERROR, "a count is out of range")
ORDER_UNCLEAR = Code("MPL0411", Severity.ERROR, "rows have no order to take the latest or first by")
SAME_NAME_BOTH_SIDES = Code("MPL0412", Severity.ERROR, "both sides of a join have a column of this name")
NOTHING_LEFT = Code("MPL0413", Severity.ERROR, "a projection keeps no column")
ORDER_TYPE = Code("MPL0414", Severity.ERROR, "values of this type have no order")

CODES: tuple[Code, ...] = (
    PIPELINE_TOO_LONG,
    MERGE_NEEDS_EVENTS,
    COLUMNS_DIFFER,
    SAME_PHASE,
    JOIN_NEEDS_EQUALITY,
    DEFAULT_MISPLACED,
    WINDOW_NEEDS_TIME,
    BAD_WINDOW,
    ASOF_NEEDS_TIMES,
    BAD_COUNT,
    ORDER_UNCLEAR,
    SAME_NAME_BOTH_SIDES,
    NOTHING_LEFT,
    ORDER_TYPE,
)
