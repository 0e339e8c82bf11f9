"""Merge: all events of several streams in one relation. Streams never share a tick, so nothing can clash."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import EventOperator
from runtime.plan import OperatorSpec, Relation


@dataclass(frozen=True, slots=True)
class MergeSpec(OperatorSpec):
    def build(self, inputs: tuple[Relation, ...], output: Relation) -> EventOperator:
        return Merge(inputs, output)


class Merge(EventOperator):
    """Which source is still missing where (the paper's flags) is the component's coverage, one lineage per source."""

    def map(self, edge: int, batch: Batch) -> Batch:
        return batch
