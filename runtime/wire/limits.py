"""The bounds of everything that comes over a wire. At each of them the message is refused: `WireTooLarge`.

They are checked before memory is taken for what they bound. Sockets get `FRAME_BYTES_MAX` as the largest frame they
accept, so that a larger one is not even read. Rows per message are far below `ROWS_MAX` in normal operation: senders
cut at `Tuning.message_rows_max`.
"""

from __future__ import annotations

from typing import Final

FRAMES_MAX: Final = 2
"""Header and body. On a data socket the topic precedes the header in its frame and is cut off before decoding."""

HEADER_BYTES_MAX: Final = 128 * 1024
"""One byte can become an empty list of 64 bytes, so this bounds the memory of a hostile header to about 8 MB."""

HEADER_ITEMS_MAX: Final = 1_024
"""Entries of one list in a header. The decoder makes room for as many as a list claims, up to 1,024 lists deep."""

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
INLINE_BODY_BYTES_MAX: Final = 1_024
"""A body up to this size travels inside the header: one frame less."""

INLINE_ROWS_MAX: Final = 16
"""A column of so few rows is a list in the header: shorter than 8 bytes a value, and quicker."""

INLINE_BYTES_MAX: Final = 64 * 1024
"""What such columns may fill of one header; further ones go into the body."""

ROWS_MAX: Final = 262_144
COLUMNS_MAX: Final = 1_024
LINEAGES_MAX: Final = 1_024
RANGES_MAX: Final = 65_536
"""Ranges of one lineage's coverage."""

INLINE_RANGES_MAX: Final = 64
"""A coverage of one lineage with more ranges goes into the body."""

KEYS_MAX: Final = 65_536
"""Keys in one quench."""

NAME_BYTES_MAX: Final = 4_096
"""Names of edges, components, brokers, producers, addresses."""

TEXT_BYTES_MAX: Final = 1024 * 1024
"""Reasons in refusals."""

PART_BYTES_MAX: Final = 4 * 1024 * 1024
"""A part of an encoded checkpoint."""

TOPIC_BYTES_MAX: Final = 64
COMPONENTS_MAX: Final = 65_536
"""Names in one question about components."""

PLAIN_BYTES_MAX: Final = FRAME_BYTES_MAX
PLAIN_ITEMS_MAX: Final = 200_000
PLAIN_DEPTH_MAX: Final = 32
"""Plain data (deployments, status): bytes, values in all, and how deep they nest."""
