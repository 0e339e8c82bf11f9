"""Which rows of an in-edge have which values in the columns that a join or a semi-join matches on.

Rows are listed whether visible or not: a partner that vanished still says when its pairs became invisible (T1). Null
matches nothing, unless rows are compared as members of sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.batch import Batch
from runtime.operators.row_operator import Row, picker
from runtime.rows import Rows
from runtime.values import Key

Move = tuple[int, Key | None, Key | None]  # slot, match key before, match key now


class MatchIndex:
    """Slots by match key. A slot is listed once, under the key of its present row."""

    def __init__(self, columns: Sequence[int], *, null_matches: bool = False) -> None:
        self._pick = picker(columns)
        self._null_matches = null_matches
        self._slots: dict[Key, dict[int, None]] = {}
        self._keys: dict[int, Key] = {}

    def slots(self, key: Key | None) -> Sequence[int]:
        return list(self._slots.get(key, ())) if key is not None else ()

    def key(self, slot: int) -> Key | None:
        return self._keys.get(slot)

    def key_of(self, row: Row) -> Key | None:
        """The match key of a row; None if it matches nothing."""
        picked = self._pick(row)
        return None if None in picked and not self._null_matches else picked

    def store(self, batch: Batch, slots: Sequence[int]) -> list[Move]:
        """List the rows of a batch; the moves are what `undo` needs."""
        moves: list[Move] = []
        for row, slot in zip(batch.rows(), slots, strict=True):
            key = self.key_of(row)
            before = self._keys.get(slot)
            moves.append((slot, before, key))
            if before != key:
                self._move(slot, before, key)
        return moves

    def undo(self, moves: list[Move]) -> None:
        for slot, before, key in reversed(moves):
            if before != key:
                self._move(slot, key, before)

    def _move(self, slot: int, before: Key | None, key: Key | None) -> None:
        if before is not None:
            del self._slots[before][slot], self._keys[slot]
            if not self._slots[before]:
                del self._slots[before]
        if key is not None:
            self._slots.setdefault(key, {})[slot] = None
            self._keys[slot] = key

    def rebuild(self, rows: Rows) -> None:
        self._slots, self._keys = {}, {}
        slots = rows.slots()
        self.store(rows.select(slots), slots)
