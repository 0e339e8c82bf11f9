"""What subscribers are told: true, never taken back, and in the end everything.

`checks.py` calls this with the deliveries of a leaf. The subscriber's copy is kept here as a client would keep it: a
snapshot replaces it, changes replace rows by key. C is the view of all durable events, D what was delivered.
"""

from __future__ import annotations

from typing import Any

from runtime.plan import Emit
from runtime.protocol.events import Deliver, Event, Restarted, Stepped
from runtime.simulation.oracle import Flat, Masks
from runtime.simulation.violation import Violation
from runtime.simulation.world import Instance, World

RowKey = tuple[Any, ...]


class DeliveryChecks:
    """One copy for each subscriber, and every row that was ever called final."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._told: dict[tuple[str, int], dict[RowKey, Flat]] = {}  # by incarnation
        self._final: dict[str, dict[RowKey, tuple[bool, Flat]]] = {}
        self._kept: dict[tuple[str, int], set[RowKey]] = {}  # final rows that this incarnation's subscriber has
        self._truth: dict[str, tuple[Masks, dict[RowKey, Flat]]] = {}

    def check(self, instance: Instance, event: Event, delivers: list[Deliver | Stepped], masks: Masks) -> None:
        """After a leaf handled an event: what it said, and what its subscriber has now.

        One that watches is told every change of a step, so each state in between has to be safe too.
        """
        name = instance.name
        told = self._told.setdefault((name, instance.epoch), {})
        width = self.world.plan.by_name[name].relation.key_width
        if isinstance(event, Restarted) and event.now_us >= 0:  # C7: a token belongs to the rows that were kept with it
            told.clear()
            rows = instance.component.operator.rows
            told.update((key, rows.row_at(slot)) for key, slot in rows.index.items() if rows.visible[slot])
            known = self._final.get(name, {})
            self._kept[name, instance.epoch] = {key for key, row in told.items() if known.get(key) == (True, row)}
        for deliver in delivers:
            finals = deliver.final if isinstance(deliver, Deliver) else (False,) * len(deliver.rows)
            if isinstance(deliver, Deliver) and deliver.kind == "snapshot":
                told.clear()
            for row, visible, final in zip(deliver.rows.rows(), deliver.rows.visible, finals, strict=True):
                self._check_final(instance, row[:width], visible, row, final)
                if visible:
                    self._check_safe(name, row[:width], row)
                    told[row[:width]] = row  # type: ignore[assignment]
                else:
                    told.pop(row[:width], None)
        self._check_whole(instance, [one for one in delivers if isinstance(one, Deliver)], told, masks)

    def _check_final(self, instance: Instance, key: RowKey, visible: bool, row: RowKey, final: bool) -> None:
        """Final stays final. Only a subscriber that lost its rows may be told less again, and then not as final."""
        name = instance.name
        known = self._final.setdefault(name, {})
        kept = self._kept.setdefault((name, instance.epoch), set())
        before = known.get(key)
        now = (visible, row if visible else ())
        if before is not None and before != now and (final or key in kept):
            raise Violation("final", name, f"{key} was final as {before}, now {now}")
        if final:
            known[key] = now
            kept.add(key)
            truth = self._all(name).get(key)
            if truth != (row if visible else None):
                raise Violation("final", name, f"{key} is called final as {now}, all events give {truth}")

    def _check_safe(self, name: str, key: RowKey, row: RowKey) -> None:
        """C => D for every cell of a monotone row."""
        kinds = self.world.oracle.kinds[name]
        if kinds.rows != "stays":
            return  # absent, visible, gone: D may be any earlier state of C
        truth = self._all(name).get(key)
        if truth is None:
            raise Violation("safety", name, f"delivers {row}, no events give {key}")
        width = len(key)
        for kind, told, true in zip(kinds.cells, row[width:], truth[width:], strict=True):
            if (
                (kind == "final" and told != true)
                or (kind == "rising" and told > true)
                or (kind == "falling" and told < true)
            ):
                raise Violation("safety", name, f"delivers {row}, all events give {truth}")

    def _check_whole(self, instance: Instance, delivers: list[Deliver], told: dict[RowKey, Flat], masks: Masks) -> None:
        """The subscriber's copy as a whole, by what its emit mode promises."""
        name, oracle = instance.name, self.world.oracle
        emit = self.world.plan.by_name[name].emit
        if emit in (Emit.CHANGES, Emit.BOUNDS):
            wanted = oracle.flat(name, masks)
            if set(told.values()) != wanted:
                raise Violation("delivery", name, f"subscriber has {_some(told)}, its coverage gives {_some(wanted)}")
        elif emit is Emit.AS_OF_HORIZON and delivers:
            horizon = delivers[-1].horizon
            wanted = oracle.flat(name, oracle.up_to(name, horizon))
            if set(told.values()) != wanted:
                raise Violation("delivery", name, f"cut at {horizon} is {_some(told)}, should be {_some(wanted)}")
        if emit is Emit.BOUNDS:
            for deliver in delivers:
                self._check_bounds(name, deliver)

    def _check_bounds(self, name: str, deliver: Deliver) -> None:
        """Section 8: as of the horizon, each shown value lies within its bounds."""
        if deliver.low is None or deliver.high is None:
            raise Violation("bounds", name, "a delivery without bounds")
        relation = self.world.plan.by_name[name].relation
        wanted = self.world.oracle.flat(name, self.world.oracle.up_to(name, deliver.horizon))
        then: dict[RowKey, Flat] = {row[: relation.key_width]: row for row in wanted}
        shown = relation.shown
        for i, row in enumerate(deliver.rows.rows()):
            true = then.get(row[: relation.key_width])
            if true is None or not deliver.rows.visible[i]:
                continue
            values = [_shown(true, column.form, column.columns) for column in shown] if shown else list(true)
            bounds: Any = zip(deliver.low[i], values, deliver.high[i], strict=True)
            for low, value, high in bounds:
                if value is not None and ((low is not None and value < low) or (high is not None and value > high)):
                    raise Violation("bounds", name, f"{row}: {low}..{high} as of {deliver.horizon}, truth {value}")

    def _all(self, name: str) -> dict[RowKey, Flat]:
        """C, by key."""
        everything = self.world.oracle.everything(name)
        cached = self._truth.get(name)
        if cached is None or cached[0] != everything:
            width = self.world.plan.by_name[name].relation.key_width
            cached = (everything, {row[:width]: row for row in self.world.oracle.flat(name, everything)})
            self._truth[name] = cached
        return cached[1]


def _shown(row: Flat, form: str, columns: tuple[int, ...]) -> float | None:
    if form == "difference":
        return row[columns[0]] - row[columns[1]]
    if form == "average":
        return row[columns[0]] / row[columns[1]] if row[columns[1]] else None
    return row[columns[0]]


def _some(rows: Any) -> str:
    found = sorted(rows.values() if isinstance(rows, dict) else rows, key=repr)
    return f"{found[:5]}{' ...' if len(found) > 5 else ''}"
