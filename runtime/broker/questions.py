"""Questions of other processes that wait for their turn. The host owns one `Questions`.

Whoever asks is answered in turn, one question each: an answer may be a whole view, and one who asks a lot must not make
the others wait for all of that.
"""

from __future__ import annotations

from runtime.protocol.messages import Message

QUESTIONS_MAX = 65_536
"""Questions that wait; one per receiver, edge and epoch. Beyond that they are dropped: receivers ask again."""

QUESTIONS_PER_PEER_MAX = 1_024
"""... and so many of one peer: as many as it may have attachments."""

Question = tuple[str, str, Message, bytes | None]
"""Component, edge, message, and who has asked."""


class Questions:
    def __init__(self) -> None:
        self._of: dict[bytes | None, dict[tuple[str, int], Question]] = {}  # by peer, whoever is next first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, component: str, edge: str, epoch: int, message: Message, source: bytes | None) -> bool:
        """In the place of an older one of the same receiver; False if there is no room."""
        waiting = self._of.get(source) or {}
        if (edge, epoch) not in waiting:
            if self._count >= QUESTIONS_MAX or len(waiting) >= QUESTIONS_PER_PEER_MAX:
                return False
            self._count += 1
        waiting[edge, epoch] = (component, edge, message, source)
        self._of[source] = waiting
        return True

    def take(self) -> Question:
        """The next one; there must be one."""
        source = next(iter(self._of))
        waiting = self._of.pop(source)
        question = waiting.pop(next(iter(waiting)))
        if waiting:
            self._of[source] = waiting
        self._count -= 1
        return question
