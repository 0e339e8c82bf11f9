"""Was everything that a subscriber showed implied by the truth, and did it end at the whole truth?

What "implied" means for each kind of subscription, with K the (unknown) set of events that the shown state includes:

- Whatever was shown at a moment can only come from events whose publish had begun by then, and must include every
  event at or below the `as_of` that came with it. So  {tick <= as_of}  is a subset of K, and K of  {begun <= moment}.
- `Sold` changes: (total, bought) must be the sums over such a K. Where few events are open, all their subsets are
  tried, so the pair must be that of real events and not merely lie between two limits.
- A batch may tell several changes of one row. Its `as_of` is that of the last of them; those before it count from the
  `as_of` of the batch before.
- `Available` changes: qty - avail must be such a total; a row may go only if such a total reaches qty, and once gone it
  must stay gone, because a total never falls.
- A row that has gone comes with what it went with. Where its sender had already forgotten it (T2), nobody knows that
  any more: a complete snapshot does not list the row (S6), and it comes with the last values the subscriber's leaf
  held. Whoever is told every change was told those; with cuts, later ones may have been held back, which are then
  values that the row had since the cut before.
- Bounds: the value as of `as_of` itself must lie in [low..high].
- Cuts: after every batch, all rows together must be exactly the view as of that tick.
- Events: each once, with the values that were published; never taken back.
- A value may not go back: totals never fall, across kills, reconnects and resumes. Nothing is told again as if it were
  new (except with bounds, which may become narrower).
- In the end the rows must be the view of all logged events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.chaos.records import Entry, Shown
from tests.chaos.truth import Offer, Totals, Truth

OPEN_EVENTS_MAX = 8
"""Subsets of so many open events are tried one by one: at most 256."""
WRONG_MAX = 20

_NOTHING = Totals([])


Rows = dict[tuple[int, ...], dict[str, int]]


@dataclass
class View:
    """The rows that a subscriber has at one point of its record, and what it showed before."""

    truth: Truth
    rows: Rows = field(default_factory=dict)
    gone: Rows = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    batches: int = 0
    shown: int = 0
    exact: int = 0
    """How many shown values were compared with subsets of real events."""
    as_of: int = -1
    is_cut: bool = False

    def note(self, text: str) -> None:
        if len(self.wrong) < WRONG_MAX:
            self.wrong.append(text)

    def total_is_possible(self, totals: Totals, total: int, bought: int | None, as_of: int, at: float) -> bool:
        least, most = totals.as_of(as_of), totals.begun_by(at)
        if not least[0] <= total <= most[0] or (bought is not None and not least[1] <= bought <= most[1]):
            return False
        if most[1] - least[1] > OPEN_EVENTS_MAX:
            return True
        self.exact += 1
        sums = {least}
        for buy in totals.open_at(as_of, at):
            sums |= {(made + buy.quantity, count + 1) for made, count in sums}
        return any(made == total and bought in (None, count) for made, count in sums)


def check_sold(view: View, shown: Shown, at: float) -> None:
    (item,) = shown.key
    totals = view.truth.totals.get(item, _NOTHING)
    total, bought = shown.row["total"], shown.row["bought"]
    if not shown.visible:
        view.note(f"Sold: item {item} is gone")
    elif not view.total_is_possible(totals, total, bought, shown.as_of, at):
        view.note(
            f"Sold: item {item} shown with {(total, bought)} as of {shown.as_of}: "
            f"at least {totals.as_of(shown.as_of)}, at most {totals.begun_by(at)}"
        )
    before = view.rows.get(shown.key)
    if before is not None and (before["total"] > total or before["bought"] > bought):
        view.note(f"Sold: item {item} fell from {before} to {shown.row}")


def check_available(view: View, shown: Shown, at: float) -> None:
    (item,) = shown.key
    offer = view.truth.offers.get(item)
    if offer is None or offer.begun > at:
        view.note(f"Available: item {item} was shown before anybody offered it")
        return
    totals = view.truth.totals.get(item, _NOTHING)
    avail = shown.row["avail"]
    if not shown.visible:
        _check_gone(view, shown, offer, totals, at)
        return
    if not view.total_is_possible(totals, offer.quantity - avail, None, shown.as_of, at):
        view.note(
            f"Available: item {item} shown with {avail} of {offer.quantity} as of {shown.as_of}: sold at least "
            f"{totals.as_of(shown.as_of)[0]}, at most {totals.begun_by(at)[0]}"
        )
    if avail <= 0:
        view.note(f"Available: item {item} is shown with {avail} left")
    before = view.rows.get(shown.key)
    if before is not None and before["avail"] < avail:
        view.note(f"Available: item {item} rose from {before['avail']} to {avail}")
    if shown.low is not None and shown.high is not None:
        _check_bounds(view, shown, offer, totals)


def _check_gone(view: View, shown: Shown, offer: Offer, totals: Totals, at: float) -> None:
    (item,) = shown.key
    avail, most = shown.row["avail"], totals.begun_by(at)[0]
    if most < offer.quantity:
        view.note(f"Available: item {item} is gone, and at most {most} of {offer.quantity} were sold")
    before = view.rows.get(shown.key, {"avail": 0})["avail"]
    went_with = offer.quantity - most <= avail <= 0
    is_held_back = (
        view.is_cut and avail < before and view.total_is_possible(totals, offer.quantity - avail, None, view.as_of, at)
    )
    if not (went_with or is_held_back or avail == before):
        view.note(f"Available: item {item} is gone with {avail} left, which it never had")


def _check_bounds(view: View, shown: Shown, offer: Offer, totals: Totals) -> None:
    assert shown.low is not None
    assert shown.high is not None
    (item,) = shown.key
    if offer.tick > shown.as_of:
        return  # as of that tick the row was not there yet
    value = offer.quantity - totals.as_of(shown.as_of)[0]
    low, high = shown.low["avail"], shown.high["avail"]
    if (low is not None and value < low) or (high is not None and value > high):
        view.note(f"Available: item {item} had {value} as of {shown.as_of}, not in [{low}..{high}]")


def check_event(view: View, shown: Shown, at: float) -> None:
    tick = shown.row["offer_id"]
    buy = view.truth.buys.get(tick)
    row = shown.row
    if buy is None or (row["item_id"], row["buy_id"], row["qty"]) != (buy.item, buy.buy_id, buy.quantity):
        view.note(f"Buyers: {row} is not what was published ({buy})")
    elif buy.begun > at:
        view.note(f"Buyers: {row} was shown before it was published")
    if not shown.visible:
        view.note(f"Buyers: {row} was taken back")
    if shown.key in view.rows:
        view.note(f"Buyers: {row} was told twice")


Check = Callable[[View, Shown, float], None]


def replay(entries: Iterable[Entry], truth: Truth, check: Check, *, is_cut: bool = False) -> View:
    """Goes through a record, checks everything in it, and returns what it ends with."""
    view = View(truth, is_cut=is_cut)
    kept: dict[int, tuple[Rows, Rows]] = {}
    for entry in entries:
        if entry.what == "token":
            kept[entry.number] = dict(view.rows), dict(view.gone)
        elif entry.what in ("resume", "start"):
            if entry.what == "resume" and entry.number not in kept:
                view.note(f"resumed from token {entry.number}, which was never taken")
            rows, gone = kept.get(entry.number, ({}, {})) if entry.what == "resume" else ({}, {})
            view.rows, view.gone, view.as_of = dict(rows), dict(gone), -1
        else:
            _apply(view, entry, check)
            if is_cut:
                _check_cut(view, entry)
    return view


def _apply(view: View, entry: Entry, check: Check) -> None:
    if entry.what == "snapshot" and (view.rows or view.gone):
        view.note("a snapshot in the middle of a subscription")
    view.batches += 1
    last = {shown.key: number for number, shown in enumerate(entry.rows)}
    for number, shown in enumerate(entry.rows):
        view.shown += 1
        if number < last[shown.key]:  # superseded in the same batch: complete up to where the batch before was
            shown = replace(shown, as_of=min(shown.as_of, view.as_of))
        check(view, shown, entry.at)
        if shown.visible:
            if shown.key in view.gone:
                view.note(f"{shown.key} came back after it was gone")
            if shown.low is None and view.rows.get(shown.key) == shown.row:
                view.note(f"{shown.key} was told again with nothing new: {shown.row}")
            view.rows[shown.key] = shown.row
        else:
            if shown.key in view.gone:
                view.note(f"{shown.key} was told again to be gone")
            view.rows.pop(shown.key, None)
            view.gone[shown.key] = shown.row
    view.as_of = max([view.as_of, *(shown.as_of for shown in entry.rows)])


def _check_cut(view: View, entry: Entry) -> None:
    ticks = {shown.as_of for shown in entry.rows}
    if not ticks:
        return
    tick = max(ticks)  # several only where a slow reader's queue was squeezed
    shown = {key[0]: row["avail"] for key, row in view.rows.items()}
    meant = view.truth.available(tick)
    if shown != meant:
        odd = sorted(set(shown.items()) ^ set(meant.items()))[:4]
        view.note(f"Available: the cut at {tick} is not the view as of that tick: {odd}")
