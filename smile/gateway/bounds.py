"""What the gateway takes and keeps at most, and what happens then."""

from __future__ import annotations

BODY_BYTES_MAX = 8 * 1024 * 1024
"""Of a POST; more is refused with 413."""

BODY_SECONDS_MAX = 30.0
"""A body that takes longer to arrive is given up with 408."""

POST_ROWS_MAX = 65_536
"""Rows of one POST, which are all in or all out; more is refused with 413."""

SNAPSHOT_ROWS_MAX = 100_000
"""Rows of one JSON snapshot; a larger view is refused with 413: filter it, or read its changes: they come in pieces."""

FILTERED_ROWS_MAX = 1_000_000
"""Rows of a view or stream that is read to answer with those that have certain values; more is refused with 413."""

CLIENTS_MAX = 1_000
"""Readers of changes at once; one more is refused with 503."""

WAITING_MAX = 64
"""Requests that wait for brokers at once, each in a thread; more wait for their turn. Python's own choice, a few
threads, would let one silent broker keep everybody from the others."""

FEEDS_MAX = 64
"""Views, each in one emit mode, whose changes somebody reads; for one more the longest unread is closed, or 503."""

FEED_ROWS_MAX = 1_000_000
"""Rows of a view whose changes are read over HTTP; a larger one fails."""

RING_ROWS_MAX = 65_536
"""Changes of a feed that are kept for readers that lag or come back; one that has missed more gets the latest state."""

EVENT_ROWS_MAX = 1_000
"""Rows in one event; what has more is cut into several."""

QUEUE_ROWS = 8_192
"""Rows that may wait between the connection and a feed; beyond that only the latest change of each row stays."""

LINGER_SECONDS = 60.0
"""A feed that nobody reads is kept so long, so that a reader whose connection broke can go on."""

HEARTBEAT_SECONDS = 15.0
"""A quiet stream of events says so, so that proxies do not cut it and a vanished reader is noticed."""

KEYS_REMEMBERED_MAX = 10_000
"""Idempotency keys without a number whose answers are remembered; the oldest are forgotten."""

KEY_LENGTH_MAX = 200
"""Of an idempotency key."""
