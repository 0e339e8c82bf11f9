"""Rights: what one name may publish, read and deploy, as patterns over the names of streams and views.

A pattern is a name, a prefix followed by `*`, or `*` alone: no other wildcard, so that a list can be read without
running it. Pure; `policy.py` asks, `allow_list.py` fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from runtime.security.errors import BadAllowList

PATTERNS_MAX = 256
PATTERN_LENGTH_MAX = 200

_PATTERN = re.compile(r"[^\s*\x00-\x1f\x7f]*\*?")


@dataclass(frozen=True)
class Patterns:
    """A set of names: some by name, some by prefix."""

    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.texts) > PATTERNS_MAX:
            raise BadAllowList(
                f"{len(self.texts)} patterns in one list", f"at most {PATTERNS_MAX}: use a prefix and `*`"
            )
        for text in self.texts:
            if not text or len(text) > PATTERN_LENGTH_MAX or not _PATTERN.fullmatch(text):
                raise BadAllowList(
                    f"{text[:80]!r} is no pattern", "write a name, or the beginning of names followed by one `*`"
                )

    def contain(self, name: str) -> bool:
        return any(name.startswith(text[:-1]) if text.endswith("*") else name == text for text in self.texts)

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are not in here, in order."""
        return sorted({name for name in names if not self.contain(name)})


@dataclass(frozen=True)
class Rights:
    """`is_broker`: a broker of this deployment, which may read anything. `may_operate`: stop, fault, reload."""

    publish: Patterns = Patterns()
    subscribe: Patterns = Patterns()
    deploy: Patterns = Patterns()
    is_broker: bool = False
    may_operate: bool = False

    def lacking_to_read(self, relation: str, streams: Collection[str]) -> list[str]:
        """Empty if `relation`, computed from `streams`, may be read; otherwise what a grant is missing for.

        The derivation rule: whoever may read all streams below a view could compute it, so may read it. Anything less
        needs a grant for the view itself. A relation of which no stream is known is readable by such a grant only.
        """
        if self.is_broker or self.subscribe.contain(relation):
            return []
        return self.subscribe.lacking(streams) or ([] if streams else [relation])
