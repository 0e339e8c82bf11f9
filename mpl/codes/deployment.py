"""Codes MPL06xx: brokers, links, placement, protection, tuning."""

from mpl.diagnostic import Code

CODES: tuple[Code, ...] = ()
