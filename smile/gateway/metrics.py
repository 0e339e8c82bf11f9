"""GET /metrics: what brokers say about themselves, in the words of Prometheus. `docs/http.md` lists the names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

_COMPONENT = ("broker", "component")

_WORK = {
    "log commit": ("log", "commits"),
    "log read": ("log", "reads"),
    "checkpoint": ("checkpoints", "written"),
    "checkpoint fork": ("checkpoints", "fork"),
    "tell": ("tell",),
    "loop": ("loop",),
}
"""What brokers measure the time of, and where their status has it."""


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

    def _of_brokers(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        labels = ["broker", "what"]
        done = CounterMetricFamily("smile_work", "How often something was done.", labels=labels)
        mean = GaugeMetricFamily("smile_work_mean_seconds", "How long it takes.", labels=labels)
        longest = GaugeMetricFamily("smile_work_longest_seconds", "How long it took at most.", labels=labels)
        events = CounterMetricFamily("smile_broker", "What has happened, drops among it.", labels=labels)
        for broker, body in self._status.items():
            for what, part in _WORK.items():
                times = _at(body, part)
                if times:
                    done.add_metric([broker, what], times["count"])
                    mean.add_metric([broker, what], times["mean_us"] / 1e6)
                    longest.add_metric([broker, what], times["longest_us"] / 1e6)
            for what, number in (*body.get("counters", {}).items(), *body.get("log", {}).items()):
                if isinstance(number, int):
                    events.add_metric([broker, what], number)
        yield from (done, mean, longest, events)
        edge_labels = ["broker", "edge", "direction"]
        messages = CounterMetricFamily("smile_edge_messages", "Messages to other processes.", labels=edge_labels)
        size = CounterMetricFamily("smile_edge_bytes", "Their bytes.", labels=edge_labels)
        drops = CounterMetricFamily("smile_edge_drops", "Messages dropped at a bound.", labels=["broker", "edge"])
        quenched = CounterMetricFamily(
            "smile_edge_quenched", "Events that did not travel: not wanted.", labels=["broker", "edge"]
        )
        for broker, body in self._status.items():
            for edge, count in body.get("edges", {}).items():
                for direction in ("in", "out"):
                    messages.add_metric([broker, edge, direction], count[f"messages_{direction}"])
                    size.add_metric([broker, edge, direction], count[f"bytes_{direction}"])
                drops.add_metric([broker, edge], count["dropped"])
                quenched.add_metric([broker, edge], count["quenched"])
        yield from (messages, size, drops, quenched)


def _at(body: Mapping[str, Any], part: tuple[str, ...]) -> Mapping[str, Any]:
    for name in part:
        body = body.get(name, {})
    return body


def metrics_text(status: Mapping[str, Mapping[str, Any]], readers: int) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Status(status, readers))
    return generate_latest(registry)
