"""Fresh names for generated programs: plain ones, soft keywords, and ones that need backticks."""

from __future__ import annotations

from random import Random

SOFT_KEYWORDS = (
    *("key", "final", "first", "day", "rank", "tick", "late", "every", "per", "top", "by", "group", "left", "full"),
    *("window", "session", "gap", "latest", "view", "stream", "emit", "at", "to", "of", "with", "until", "live"),
    *("union", "minus", "merge", "default", "project", "extend", "rename", "matching", "asof", "desc"),
    *("text", "int", "float", "enum", "bool", "duration", "decimal", "hop", "up", "down", "cpu", "edge", "loss"),
)
QUOTED = ("`where`", "`from`", "`a b`", "`join`", "`naïve`", "`100%`", "`select *`", "`;`", "`--x`", "`'q'`", "`on`")
SYLLABLES = ("ka", "lo", "mi", "ru", "ten", "Sa", "qty", "pri", "x", "_id", "Oz", "bel")


class Names:
    """Hands out each name once per program, so that nothing is ambiguous by accident."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.issued: set[str] = set()

    def relation(self) -> str:
        """Streams, views, aliases, brokers: seldom strange."""
        return self._fresh(strange=0.08)

    def column(self) -> str:
        return self._fresh(strange=0.25)

    def _fresh(self, strange: float) -> str:
        while True:
            name = self._strange() if self.rng.random() < strange else self._plain()
            if name.strip("`") not in self.issued:
                self.issued.add(name.strip("`"))
                return name

    def _strange(self) -> str:
        return self.rng.choice(SOFT_KEYWORDS if self.rng.random() < 0.6 else QUOTED)

    def _plain(self) -> str:
        name = "".join(self.rng.choice(SYLLABLES) for _ in range(self.rng.randint(1, 3)))
        if self.rng.random() < 0.3 or len(self.issued) > 60:
            name += str(self.rng.randint(0, 9999))
        return f"`{name}`" if self.rng.random() < 0.02 else name
