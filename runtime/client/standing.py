"""Where components stand: what brokers answer to `Connection.coverages`."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.protocol.lineage_coverage import LineageCoverage


@dataclass(frozen=True, slots=True)
class Standing:
    """`failures`: components that cannot go on, with code and reason. `silent`: brokers that did not answer in time."""

    coverages: dict[str, LineageCoverage]
    failures: dict[str, tuple[str, str]]
    silent: frozenset[str]
