"""What can go wrong with keys, lists and signatures: each names the place, the reason and the remedy."""

from __future__ import annotations


class SecurityError(Exception):
    """Everything below."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}" if remedy else reason)


class BadKey(SecurityError):
    """A text or file that is no key of ours."""


class ExposedSecret(SecurityError):
    """A secret file that others can read or write."""


class BadAllowList(SecurityError):
    """An allow-list that cannot be used as it stands."""


class NotSecured(SecurityError):
    """A connection that would leave this machine without keys."""


class BadSignature(SecurityError):
    """Not signed by the one who is said to have signed it, or not this text."""


class OldDeployment(SecurityError):
    """Genuine, but older than what runs: a replay, or a deployer who was overtaken."""
