"""Delays and bounds of components in brokers, and of leaves in clients."""

from __future__ import annotations

from dataclasses import replace

from runtime.plan import Tuning

ROWS_MAX = 65_536
"""Rows of one publish, and of one message. At eight bytes a value and ten columns this is 5 MB."""

TEXT_ROWS_MAX = 8_192
"""Rows of one message of a relation with texts, which may be long: 64 MiB, the most that a frame may have, is 8 KiB a
row. Senders cut further what is still too large."""

BROKER = Tuning(
    ask_delay_us=50_000,  # an answer waits its turn behind a commit or another answer
    ask_delay_us_max=1_600_000,
    idle_us=2_000_000,  # heartbeats and silence come first; this is for when both were lost
    heartbeat_us=500_000,
    ack_us=200_000,
    silence_us=200_000,  # each is one small message per edge, to every subscriber of a view
    reserve_us=2_000_000,
    message_rows_max=ROWS_MAX,
    publish_rows_max=ROWS_MAX,
    answer_rows_max=ROWS_MAX,
    appends_max=4_096,
)
"""`checkpoint_us` stays 0: the host decides when, for all components together."""

LOCAL = replace(BROKER, trusts_peers=True)
"""Of components that read from their own broker only: what they get was checked when it came in."""

LEAF = Tuning(
    ask_delay_us=BROKER.ask_delay_us,
    ask_delay_us_max=BROKER.ask_delay_us_max,
    idle_us=BROKER.idle_us,
    ack_us=60_000_000,  # brokers do not listen to acknowledgements of guests
    quench_keys=False,  # nor to quenches: one guest's word is not every guest's
    message_rows_max=ROWS_MAX,
)
