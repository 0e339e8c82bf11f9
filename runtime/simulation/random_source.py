"""The one source of randomness of a simulated run.

Every concern (the graph, the workload, each link, each disk, the faults) draws from its own stream, so
that taking something away from one of them while shrinking leaves the others as they were. Called by
everything in this folder that has to choose. Nothing here depends on the clock, on the process or on the
hash seed: `random.Random` seeded with text uses SHA-512 of that text.
"""

from __future__ import annotations

import random


class RandomSource:
    """Named, independent streams of random numbers from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, concern: str) -> random.Random:
        """The stream of one concern, from its beginning: the same name always gives the same numbers."""
        return random.Random(f"{self.seed}/{concern}")
