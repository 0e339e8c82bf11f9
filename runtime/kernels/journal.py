"""Which slots were touched in which step: the part of a table of flat arrays that answers "what since then?".

Append-only, by step; an entry counts only while the slot was not touched later. Marks wait in small lists until
somebody asks or there are many: entering all of them at once costs little more than one. The tables of kernels and of
columnar copies each have one; `runtime/rows.py` does the same with lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

SLACK = 1_024
"""The journal may hold this many entries beyond four times those that count before stale ones are squeezed out."""

MARKS_MAX = 16_384
"""So many touched rows may wait to be entered: all at once they cost little more than one batch."""


FEW = 16
"""Slots of one mark that are kept as they are: making an array of them would take longer than all the rest."""


class Journal:
    """`last_step` by slot is up to date only after `enter`."""

    __slots__ = ("_count", "_few_slots", "_few_steps", "_last_step", "_marks", "_marks_count", "_slots", "_steps")

    def __init__(self) -> None:
        self._last_step: Integers = np.zeros(0, np.int64)
        self._steps: Integers = np.zeros(SLACK, np.int64)
        self._slots: Integers = np.zeros(SLACK, np.int64)
        self._count = 0
        # What is not entered yet, in this order: batches as (steps, slots), then marks of few slots, one by one.
        self._marks: list[tuple[Integers, Integers]] = []
        self._marks_count = 0
        self._few_steps: list[int] = []
        self._few_slots: list[int] = []

    def grow(self, capacity: int) -> None:
        """Room for slots below this number."""
        grown = np.zeros(capacity, np.int64)
        grown[: len(self._last_step)] = self._last_step
        self._last_step = grown

    def mark(self, slots: Sequence[int], step: int) -> None:
        """These slots were touched in this step, which is not lower than any before; each is named once."""
        count = len(slots)
        if count <= FEW:
            for slot in slots:
                self._few_slots.append(slot)
                self._few_steps.append(step)
        else:
            self._gather_few()
            self._marks.append((np.full(count, step, np.int64), np.array(slots, np.int64)))
        self._marks_count += count
        if self._marks_count > MARKS_MAX:
            self._enter()

    def _gather_few(self) -> None:
        if self._few_slots:
            self._marks.append((np.array(self._few_steps, np.int64), np.array(self._few_slots, np.int64)))
            self._few_steps, self._few_slots = [], []

    def last_step(self) -> Integers:
        """By slot."""
        self._enter()
        return self._last_step

    def touched_since(self, step: int) -> Integers:
        """Slots whose last touch is above `step`, in the order of these touches."""
        self._enter()
        first = int(np.searchsorted(self._steps[: self._count], step, side="right"))
        slots, steps = self._slots[first : self._count], self._steps[first : self._count]
        found: Integers = slots[self._last_step[slots] == steps]
        return found

    def _enter(self) -> None:
        self._gather_few()
        if not self._marks:
            return
        slots = np.concatenate([slots for _, slots in self._marks])
        steps = np.concatenate([steps for steps, _ in self._marks])
        self._marks, self._marks_count = [], 0
        if self._count + len(slots) > len(self._steps):
            self._squeeze(len(slots))
        end = self._count + len(slots)
        self._last_step[slots] = steps  # of a slot that is there several times the last one counts
        self._slots[self._count : end] = slots
        self._steps[self._count : end] = steps
        self._count = end

    def _squeeze(self, added: int) -> None:
        """Drop stale entries; if that frees too little, make the journal longer."""
        slots, steps = self._slots[: self._count], self._steps[: self._count]
        live = self._last_step[slots] == steps
        slots, steps = slots[live], steps[live]
        self._count = len(slots)
        if 2 * (len(slots) + added) > len(self._steps):
            size = 4 * (len(slots) + added) + SLACK
            self._slots = np.zeros(size, np.int64)
            self._steps = np.zeros(size, np.int64)
        self._slots[: len(slots)] = slots
        self._steps[: len(slots)] = steps
