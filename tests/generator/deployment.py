"""Random statements about where a program runs."""

from __future__ import annotations

from random import Random

from tests.generator.literals import duration
from tests.generator.names import Names


class Deployments:
    """Writes brokers, links, placements, protection and tuning for what a program declares."""

    def __init__(self, rng: Random, names: Names) -> None:
        self.rng = rng
        self.names = names
        self.brokers: list[str] = []
        self._placed: set[str] = set()

    def broker(self) -> str:
        name = self.names.relation()
        self.brokers.append(name)
        address = self.rng.choice(("tcp://10.0.0.1:7001", "ipc://broker", "inproc://local", "tcp://w:7001"))
        cpu = f" cpu {self.rng.randint(1, 64)}" if self.rng.random() < 0.4 else ""
        unit = self.rng.choice(("kb", "MB", "gb", "KiB", "mib", "GiB"))
        memory = f" memory {self.rng.randint(1, 512)} {unit}" if self.rng.random() < 0.4 else ""
        return f'broker {name} at "{address}"{cpu}{memory}' + (" edge" if self.rng.random() < 0.4 else "")

    def link(self) -> str:
        left, right = self.rng.sample(self.brokers, 2)
        latency = f" latency {duration(self.rng)}" if self.rng.random() < 0.6 else ""
        unit = self.rng.choice(("bps", "kbps", "Mbps", "gbps"))
        bandwidth = f" bandwidth {self.rng.randint(1, 1000)} {unit}" if self.rng.random() < 0.4 else ""
        loss = f" loss {self.rng.choice(('0', '1', '0.5', '100', '12.25'))}%" if self.rng.random() < 0.5 else ""
        return f"link {left} - {right}{latency}{bandwidth}{loss}"

    def publish(self, stream: str) -> str:
        self._placed.add(stream)
        return f"publish {stream} at {self.rng.choice(self.brokers)}"

    def place(self, relations: list[str], subscriptions: list[str]) -> str:
        relation = self.rng.choice(relations)
        how = self.rng.choice(("on", "near", "with", "avoid"))
        if how == "on" and relation in self._placed:
            how = "avoid"
        if how == "on":
            self._placed.add(relation)
        if how == "with":
            return f"place {relation} with {self.rng.choice(relations)}"
        places = self.brokers if how != "near" else [*self.brokers, *relations, *subscriptions]
        return f"place {relation} {how} {self.rng.choice(places)}"

    def protect(self, relations: list[str]) -> str:
        schemes = ("upstream", "active", f"passive every {duration(self.rng)}", f"semiactive lag {duration(self.rng)}")
        on = f" on {self.rng.choice(self.brokers)}" if self.rng.random() < 0.5 else ""
        return f"protect {self._one_or_all(relations)} by {self.rng.choice(schemes)}{on}"

    def tune(self, relations: list[str]) -> str:
        options = [
            f"gap {duration(self.rng)}",
            f"idle {duration(self.rng)}",
            self.rng.choice(("pull", "push")),
            f"quench {self.rng.choice(('on', 'off'))}",
            f"checkpoint every {duration(self.rng)}",
        ]
        chosen = self.rng.sample(options, self.rng.randint(1, 4))
        return f"tune {self._one_or_all(relations)} {' '.join(chosen)}"

    def drop(self) -> str:
        return f"drop {self.rng.choice(('view', 'stream', 'subscribe'))} {self.names.relation()}"

    def _one_or_all(self, relations: list[str]) -> str:
        return "all" if self.rng.random() < 0.3 else self.rng.choice(relations)
