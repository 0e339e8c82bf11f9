"""The small components that the rule tests are made of."""

from runtime.operators.copy import CopySpec
from runtime.operators.group_by import GroupBySpec
from runtime.operators.merge import MergeSpec
from runtime.operators.select import SelectSpec
from runtime.operators.totals import SumSpec
from runtime.plan import Component, Mode, Relation, Tuning
from tests.protocol.net import EVENT_COLUMNS, state


def total(name: str, *senders: str, tuning: Tuning | None = None, mode: Mode = Mode.PULL) -> Component:
    """sum(v) by k over events."""
    return state(name, GroupBySpec((1,), (SumSpec(lambda tick, k, v: v),)), *senders, tuning=tuning, mode=mode)


def small(name: str, sender: str, tuning: Tuning | None = None) -> Component:
    """where total < 4: falls for ever once the total has grown."""
    return state(name, SelectSpec(lambda k, v: v < 4, only_falls=True), sender, tuning=tuning)


def copy(name: str, sender: str, tuning: Tuning | None = None, mode: Mode = Mode.PULL) -> Component:
    return state(name, CopySpec(), sender, tuning=tuning, mode=mode)


def merge(name: str, *senders: str, tuning: Tuning | None = None, mode: Mode = Mode.PULL) -> Component:
    relation = Relation(name, EVENT_COLUMNS, 1, is_event=True)
    return state(name, MergeSpec(), *senders, relation=relation, tuning=tuning, mode=mode)


def large_events(name: str, sender: str) -> Component:
    """Events with v >= 10."""
    relation = Relation(name, EVENT_COLUMNS, 1, is_event=True)
    return state(name, SelectSpec(lambda tick, k, v: v >= 10), sender, relation=relation)
