"""What a broker asks before it obeys: may this name do that?

Two policies: on the loopback address without keys everybody is trusted; otherwise the allow-list decides, at the
moment of asking, so that a right taken away is gone with the next request. The name must come from the authenticated
connection (`zap.sender_name`), never from what a message says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto

from runtime.security.allow_list import Entry, WatchedAllowList
from runtime.security.refusals import Refusals

NAMES_SHOWN_MAX = 5


class Action(Enum):
    PUBLISH = auto()
    """`object`: a stream."""
    SUBSCRIBE = auto()
    """`object`: a stream or view, empty for what is below views; `relations`: the streams it is computed from."""
    DEPLOY = auto()
    """`object`: a deployment; `relations`: all its streams and views."""
    OPERATE = auto()
    """Stop, inject faults, read settings again."""
    PEER = auto()
    """Act as a broker: take part in a plan's edges."""


@dataclass(frozen=True)
class Refusal:
    code: str
    reason: str


class Policy:
    """`watched` is None for the policy that trusts everybody."""

    def __init__(self, watched: WatchedAllowList | None, refusals: Refusals | None = None) -> None:
        self.watched = watched
        self.refusals = refusals or Refusals()

    @staticmethod
    def local() -> Policy:
        """Everybody who can reach a loopback address is trusted, as with a file on this machine."""
        return Policy(None)

    @staticmethod
    def listed(watched: WatchedAllowList, refusals: Refusals | None = None) -> Policy:
        return Policy(watched, refusals)

    def knows(self, name: str) -> bool:
        """Is it still on the list? A connection outlives the entry that let it in."""
        return self.watched is None or name in self.watched.current.by_name

    def allows(self, name: str, action: Action, object: str = "", relations: Collection[str] = ()) -> bool:
        """As `may`, where a no is no refusal: whoever asks gets something else instead."""
        if self.watched is None:
            return True
        entry = self.watched.current.by_name.get(name)
        return entry is not None and _judge(entry, action, object, relations) is None

    def may(self, name: str, action: Action, object: str = "", relations: Collection[str] = ()) -> Refusal | None:
        """None: yes. A refusal is counted and logged here, with the reason that the asker gets too."""
        if self.watched is None:
            return None
        entry = self.watched.current.by_name.get(name)
        if entry is None:
            refusal: Refusal | None = Refusal("not-listed", f"{name[:80]!r} is not on the allow-list")
        else:
            refusal = _judge(entry, action, object, relations)
        if refusal is not None:
            self.refusals.note(refusal.code, name, refusal.reason)
        return refusal


def _judge(entry: Entry, action: Action, object: str, relations: Collection[str]) -> Refusal | None:
    rights = entry.rights
    shown = object[:80]
    match action:
        case Action.PUBLISH:
            if not rights.publish.contain(object):
                return Refusal("publish", f"`{entry.name}` has no right to publish to `{shown}`")
        case Action.SUBSCRIBE:
            lacking = rights.lacking_to_read(object, relations)
            if lacking:
                what, which = f"`{shown}`" if object else "what is below views", _shown(lacking)
                return Refusal(
                    "subscribe",
                    f"`{entry.name}` may not read {what}: it has a right neither to that nor to all of {which}",
                )
        case Action.DEPLOY:
            lacking = rights.deploy.lacking(relations)
            if lacking or not rights.deploy.texts:
                which = _shown(lacking or [object])
                return Refusal("deploy", f"`{entry.name}` has no right to deploy `{shown}`: lacking for {which}")
        case Action.OPERATE:
            if not rights.may_operate:
                return Refusal("operate", f"`{entry.name}` is no operator")
        case Action.PEER:
            if not rights.is_broker:
                return Refusal("peer", f"`{entry.name}` is no broker")
    return None


def _shown(names: list[str]) -> str:
    text = ", ".join(f"`{name[:80]}`" for name in names[:NAMES_SHOWN_MAX])
    return text if len(names) <= NAMES_SHOWN_MAX else f"{text} and {len(names) - NAMES_SHOWN_MAX} more"
