"""GET /metrics: what brokers say about themselves, in the words of Prometheus. `docs/http.md` lists the names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

_COMPONENT = ("broker", "component")


class _Status(Collector):
    """One look at all brokers."""

    def __init__(self, status: Mapping[str, Mapping[str, Any]], readers: int) -> None:
        self._status = status
        self._readers = readers

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        up = GaugeMetricFamily("smile_broker_up", "Does the broker answer?", labels=["broker"])
        for broker, body in self._status.items():
            up.add_metric([broker], float("error" not in body))
        yield up
        yield GaugeMetricFamily("smile_http_readers", "Readers of changes over HTTP.", value=self._readers)
        yield from self._of_components()
        yield from self._of_brokers()

    def _components(self) -> Iterable[tuple[list[str], Mapping[str, Any]]]:
        for broker, body in self._status.items():
            for name, component in body.get("components", {}).items():
                yield [broker, name], component

    def _of_components(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        running = GaugeMetricFamily("smile_component_running", "1 unless stopped or failed.", labels=_COMPONENT)
        horizon = GaugeMetricFamily(
            "smile_horizon_seconds", "The tick up to which nothing is unknown, as a time.", labels=_COMPONENT
        )
        gaps = GaugeMetricFamily("smile_gaps", "Ranges of ticks that are missing.", labels=_COMPONENT)
        rows = GaugeMetricFamily("smile_rows", "Rows held, tombstones included.", labels=_COMPONENT)
        saved = GaugeMetricFamily("smile_checkpoint_seconds", "When the newest checkpoint was made.", labels=_COMPONENT)
        curiosity = CounterMetricFamily(
            "smile_curiosity", "Questions, by what became of them.", labels=[*_COMPONENT, "outcome"]
        )
        for labels, said in self._components():
            running.add_metric(labels, float(said.get("state") == "running" and said.get("failure") is None))
            if "horizon_us" in said:
                horizon.add_metric(labels, said["horizon_us"] / 1e6)
                gaps.add_metric(labels, sum(said["gaps"]))
            if "rows" in said:
                rows.add_metric(labels, said["rows"])
            if said.get("checkpoint_us"):
                saved.add_metric(labels, said["checkpoint_us"] / 1e6)
            for outcome, number in said.get("curiosity", {}).items():
                curiosity.add_metric([*labels, outcome], number)
        yield from (running, horizon, gaps, rows, saved, curiosity)

    def _of_brokers(self) -> Iterable[CounterMetricFamily]:
        """Counters of a broker: those of its log, its sockets and its edges, by their names there."""
        for part, help_text in (
            ("log", "What the log has done."),
            ("traffic", "What the sockets have carried and dropped."),
            ("checkpoints", "Checkpoints written, and what they cost."),
        ):
            made = CounterMetricFamily(f"smile_{part}", help_text, labels=["broker", "what"])
            for broker, body in self._status.items():
                for what, number in _numbers(body.get(part, {})):
                    made.add_metric([broker, what], number)
            yield made


def _numbers(found: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", float(value)


def metrics_text(status: Mapping[str, Mapping[str, Any]], readers: int) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Status(status, readers))
    return generate_latest(registry)
