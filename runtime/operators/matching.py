"""Which rows of an in-edge have which values in the columns that a join or a semi-join matches on.

Rows are listed whether visible or not: a partner that vanished still says when its pairs became invisible (T1). Null
matches nothing, unless rows are compared as members of sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.operators.row_operator import EarlyStore, Row, names_of, picker
from runtime.rows import Rows
from runtime.values import Key

Move = tuple[int, Key | None, Key | None]  # slot, match key before, match key now


@dataclass(frozen=True)
class _Loop:
    read: tuple[int, ...]
    key: tuple[str, ...]
    null_matches: bool


class MatchIndex:
    """Slots by match key. A slot is listed once, under the key of its present row."""

    def __init__(self, columns: Sequence[int], *, null_matches: bool = False) -> None:
        self._pick = picker(columns)
        self._null_matches = null_matches
        loop = _Loop(tuple(dict.fromkeys(columns)), names_of(columns), null_matches)
        self.code = Code("match_index.py.j2", loop)
        self._moves = self.code.load()["moves"]
        self.by_key: dict[Key, dict[int, None]] = {}
        self._keys: dict[int, Key] = {}

    def slots(self, key: Key | None) -> Sequence[int]:
        return list(self.by_key.get(key, ())) if key is not None else ()

    def key(self, slot: int) -> Key | None:
        return self._keys.get(slot)

    def key_of(self, row: Row) -> Key | None:
        """The match key of a row; None if it matches nothing."""
        picked = self._pick(row)
        return None if None in picked and not self._null_matches else picked

    def store(self, batch: Batch, slots: Sequence[int]) -> list[Move]:
        """List the rows of a batch; the moves are what `undo` needs."""
        moves: list[Move] = []
        self._moves(batch.columns, slots, self._keys.get, self._move, moves.append)
        return moves

    def undo(self, moves: list[Move]) -> None:
        for slot, before, key in reversed(moves):
            if before != key:
                self._move(slot, key, before)

    def _move(self, slot: int, before: Key | None, key: Key | None) -> None:
        if before is not None:
            del self.by_key[before][slot], self._keys[slot]
            if not self.by_key[before]:
                del self.by_key[before]
        if key is not None:
            self.by_key.setdefault(key, {})[slot] = None
            self._keys[slot] = key

    def rebuild(self, rows: Rows) -> None:
        self.by_key, self._keys = {}, {}
        slots = rows.slots()
        self.store(rows.select(slots), slots)


class Matching(EarlyStore):
    """An operator over two inputs."""

    def sides(self) -> list[object]:
        """Columns, visibility and ticks of the left rows and of the right ones, as loops take them."""
        found: list[object] = []
        for copy in self.inputs:
            assert copy is not None, "both sides are remembered"
            found += [copy.columns, copy.visible, copy.max_tick]
        return found
