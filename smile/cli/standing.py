"""How a deployment stands: brokers and components as rows, made from what the brokers say about themselves.

Two looks at different times give rates. Drawn by `smile status` and `smile top`; this file asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Status = Mapping[str, Mapping[str, Any]]
"""By broker: what it answered, or {"error": why it did not}."""

REFUSED_LASTS_US = 10_000_000
"""Brokers get a new deployment one after the other, and refuse each other meanwhile; longer than this, something is
wrong."""


@dataclass(frozen=True)
class BrokerStanding:
    """Rates are None at the first look. `up_s`: for how long it runs. `deployment`: the digest of what it runs."""

    name: str
    address: str
    is_up: bool
    error: str
    up_s: float
    components: int
    peers: int
    drops: int
    commits: int
    bytes_out: int
    commits_per_s: float | None
    bytes_out_per_s: float | None
    deployment: str
    problem: str


@dataclass(frozen=True)
class ComponentStanding:
    """`behind_s`: how far its horizon is behind the clock, None if unknown. `gaps`: missing ranges of ticks."""

    name: str
    broker: str
    kind: str
    state: str
    behind_s: float | None
    gaps: int
    rows: int | None
    messages: int
    curiosity: int
    messages_per_s: float | None
    problem: str


@dataclass(frozen=True)
class Standing:
    """One look, at `now_s` of a clock that only rises."""

    now_s: float
    brokers: Mapping[str, BrokerStanding]
    components: Mapping[str, ComponentStanding]

    @property
    def is_well(self) -> bool:
        return all(broker.is_up and not broker.problem for broker in self.brokers.values()) and not any(
            component.problem for component in self.components.values()
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "well": self.is_well,
            "brokers": [asdict(broker) for broker in self.brokers.values()],
            "components": [asdict(component) for component in self.components.values()],
        }


def standing(
    status: Status,
    addresses: Mapping[str, str],
    placement: Mapping[str, str],
    now_s: float,
    earlier: Standing | None = None,
) -> Standing:
    """What was placed on a broker that does not answer is listed too, as unknown."""
    passed = now_s - earlier.now_s if earlier is not None else 0.0
    brokers = {}
    is_mixed = len({said["deployment"] for said in status.values() if "deployment" in said}) > 1
    for name, address in addresses.items():
        said = status.get(name, {"error": "it was not asked"})
        before = earlier.brokers.get(name) if earlier is not None else None
        brokers[name] = _broker(name, address.partition("?")[0], said, before, passed, is_mixed=is_mixed)
    components = {}
    for name, home in placement.items():
        said = status.get(home, {}).get("components", {}).get(name)
        known = earlier.components.get(name) if earlier is not None else None
        components[name] = _component(name, home, said, status.get(home, {}), known, passed)
    return Standing(now_s, brokers, components)


def _broker(
    name: str, address: str, said: Mapping[str, Any], before: BrokerStanding | None, passed: float, *, is_mixed: bool
) -> BrokerStanding:
    error = str(said.get("error", ""))
    deployment = str(said.get("deployment", ""))
    problem = str(said.get("why_none", ""))
    if is_mixed and not error and not problem:
        problem = f"runs {deployment[:19]}, others do not: `smile deploy` again"
    edges = said.get("edges", {}).values()
    commits = int(said.get("log", {}).get("commits", {}).get("count", 0))
    bytes_out = sum(edge["bytes_out"] for edge in edges)
    counters = said.get("counters", {})
    return BrokerStanding(
        name,
        address,
        not error,
        error,
        (said.get("now_us", 0) - said.get("began_us", 0)) / 1e6,
        len(said.get("components", {})),
        int(said.get("peers", {}).get("count", 0)),
        sum(edge["dropped"] for edge in edges) + sum(n for key, n in counters.items() if key.startswith("drops.")),
        commits,
        bytes_out,
        _rate(commits, before.commits if before else None, passed),
        _rate(bytes_out, before.bytes_out if before else None, passed),
        deployment,
        problem,
    )


def _component(
    name: str,
    home: str,
    said: Mapping[str, Any] | None,
    broker: Mapping[str, Any],
    before: ComponentStanding | None,
    passed: float,
) -> ComponentStanding:
    if said is None:
        reason = "its broker does not answer" if "error" in broker or not broker else "its broker does not have it"
        return ComponentStanding(name, home, "", "unknown", None, 0, None, 0, 0, None, reason)
    messages = sum(n for key, n in said["counters"].items() if key.startswith("sent."))
    horizon_us = said.get("horizon_us")
    return ComponentStanding(
        name,
        home,
        said["kind"],
        said["state"],
        max(0.0, (broker["now_us"] - horizon_us) / 1e6) if horizon_us is not None and horizon_us > 0 else None,
        sum(said.get("gaps", ())),
        said.get("rows"),
        messages,
        said["curiosity"]["sent"],
        _rate(messages, before.messages if before else None, passed),
        _problem(said) or _refused(name, broker),
    )


def _refused(name: str, broker: Mapping[str, Any]) -> str:
    """What a component reads is on a broker that does not let it, and not only while that one starts."""
    for home, uplink in broker.get("uplinks", {}).items():
        for edge in uplink["refused"].values():
            if edge["receiver"] == name and edge["for_us"] >= REFUSED_LASTS_US:
                return f"broker {home} refuses what it reads: {edge['reason']}"
    return ""


def _problem(said: Mapping[str, Any]) -> str:
    failure = said.get("failure")
    if failure:
        return f"{failure['code']}: {failure['reason']}"
    if said["state"] == "stopped":
        return str(said.get("reason") or "stopped")
    if said["state"] != "running":
        return ": ".join(filter(None, (said["state"], said.get("reason"))))
    return "ticks that it needs have left the log: smile recompute --install" if said.get("lost_ticks") else ""


def _rate(now: int, before: int | None, passed: float) -> float | None:
    """A counter that has fallen belongs to a new life of its broker: then it began at 0."""
    if before is None or passed <= 0:
        return None
    return (now - before if now >= before else now) / passed
