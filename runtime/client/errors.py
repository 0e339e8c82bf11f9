"""What a connection raises, besides what its callers did wrong."""

from __future__ import annotations


class ConnectFailed(Exception):
    """No broker could be reached, or it would not talk to us."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


class ConnectionClosed(Exception):
    """By us, while something was under way."""


class RequestRefused(Exception):
    """The broker said no."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class PublishRefused(Exception):
    """These rows are not published. `uncertain`: they may be all the same; publishing them again could repeat them."""

    def __init__(self, code: str, reason: str, uncertain: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.uncertain = uncertain
