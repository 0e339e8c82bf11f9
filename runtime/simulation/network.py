"""The simulated network: directed links between nodes that lose, repeat, delay, corrupt and stop.

The simulator hands every message between two nodes to `send` and gets it back, or not, through `deliver`.
Components on one node do not come here. A corrupted message is one whose checksum fails at the receiver: it is
dropped and counted there, never seen. Queues are bounded: a link with `IN_FLIGHT_MAX` messages under way drops new
ones, as a sender does whose receiver is slow; the protocol repairs that like any loss.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

from runtime.simulation.clock import VirtualClock
from runtime.simulation.decisions import USUAL_DELAY_US, USUAL_FATE, Fate, FateName, LinkName, Rates
from runtime.simulation.random_source import RandomSource

IN_FLIGHT_MAX = 2_048

M = TypeVar("M")


class Network(Generic[M]):
    """All links of a run."""

    def __init__(
        self,
        clock: VirtualClock,
        source: RandomSource,
        rates: Rates,
        fates: dict[FateName, Fate] | None,
        deliver: Callable[[str, str, M], None],
        counts: Counter[str],
    ) -> None:
        self.clock = clock
        self.rates = rates
        self.recorded: dict[FateName, Fate] = {}
        self.in_flight_peak = 0
        self._source = source
        self._replayed = fates
        self._deliver = deliver
        self._counts = counts
        self._sent: Counter[LinkName] = Counter()
        self._in_flight: Counter[LinkName] = Counter()
        self._stopped: Counter[LinkName] = Counter()  # a link may be stopped for several reasons at once
        self._random: dict[LinkName, random.Random] = {}

    def stop(self, sender: str, receiver: str) -> None:
        """Lose everything in one direction until `heal`."""
        self._stopped[sender, receiver] += 1

    def heal(self, sender: str, receiver: str) -> None:
        """Take back one `stop`."""
        self._stopped[sender, receiver] -= 1

    def calm(self) -> None:
        """From now on everything arrives, in order: the faults are over."""
        self.rates = Rates()
        self._replayed = {}
        self._stopped.clear()

    def send(self, sender: str, receiver: str, message: M) -> None:
        """Let the network do with a message what it will."""
        link = (sender, receiver)
        number = self._sent[link] = self._sent[link] + 1
        fate = self._fate(link, number)
        if fate is not USUAL_FATE:
            self.recorded[sender, receiver, number] = fate
        if self._stopped[link] > 0:
            self._counts["partitioned"] += 1
            return
        if not fate.delays_us:
            self._counts["lost"] += 1
            return
        if self._in_flight[link] >= IN_FLIGHT_MAX:
            self._counts["queue overflow"] += 1
            return
        if len(fate.delays_us) > 1:
            self._counts["duplicated"] += 1
        if fate.delays_us[0] > USUAL_DELAY_US * 2:
            self._counts["delayed"] += 1
        for delay_us in fate.delays_us:
            self._in_flight[link] += 1
            self.in_flight_peak = max(self.in_flight_peak, self._in_flight[link])
            self.clock.after(delay_us, lambda: self._arrive(link, message, fate.corrupt))

    def _arrive(self, link: LinkName, message: M, corrupt: bool) -> None:
        self._in_flight[link] -= 1
        if corrupt:
            self._counts["corrupted"] += 1
            return
        if self._stopped[link] > 0:
            self._counts["partitioned"] += 1
            return
        self._deliver(link[0], link[1], message)

    def _fate(self, link: LinkName, number: int) -> Fate:
        if self._replayed is not None:
            return self._replayed.get((*link, number), USUAL_FATE)
        rates = self.rates
        generator = self._random.get(link)
        if generator is None:
            generator = self._random[link] = self._source.stream(f"link {link[0]}>{link[1]}")
        draw = generator.random()
        if draw < rates.loss:
            return Fate(())
        draw -= rates.loss
        if draw < rates.corruption:
            return Fate((USUAL_DELAY_US,), corrupt=True)
        draw -= rates.corruption
        if draw < rates.duplication:
            return Fate((USUAL_DELAY_US, USUAL_DELAY_US + int(generator.random() * rates.delay_us_max)))
        draw -= rates.duplication
        if draw < rates.delay:
            return Fate((USUAL_DELAY_US + int(generator.random() * rates.delay_us_max),))
        return USUAL_FATE
