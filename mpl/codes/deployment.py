"""Codes MPL06xx: brokers, links, placement, protection, tuning."""

from mpl.diagnostic import Code, Severity

UNKNOWN_BROKER = Code("MPL0601", Severity.ERROR, "no broker has this name")
LINK_TO_ITSELF = Code("MPL0602", Severity.ERROR, "a link joins two different brokers")
BAD_QUANTITY = Code("MPL0603", Severity.ERROR, "a quantity is out of range")
PLACED_TWICE = Code("MPL0604", Severity.ERROR, "two placements contradict each other")
UNKNOWN_SUBJECT = Code("MPL0605", Severity.ERROR, "nothing of this kind has this name")
BAD_ADDRESS = Code("MPL0606", Severity.ERROR, "a broker's address cannot be used")
SAID_TWICE = Code("MPL0607", Severity.ERROR, "two statements say different things about one relation")

CODES: tuple[Code, ...] = (
    UNKNOWN_BROKER,
    LINK_TO_ITSELF,
    BAD_QUANTITY,
    PLACED_TWICE,
    UNKNOWN_SUBJECT,
    BAD_ADDRESS,
    SAID_TWICE,
)
