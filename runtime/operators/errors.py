"""Failures of a computation that the data cause, not a peer: raised by operators before they change anything."""

from __future__ import annotations

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1


class OperatorError(Exception):
    """The batch was not applied and nothing changed. `relation` is the view that could not be computed."""

    code = "operator"

    def __init__(self, relation: str, what: str) -> None:
        super().__init__(f"{relation}: {what}")
        self.relation = relation
        self.what = what


class Overflow(OperatorError):
    """A whole number would leave the 64 bits that messages, checkpoints and kernels have for it."""

    code = "overflow"


class NotFinite(OperatorError):
    """A float sum met an infinity or a not-a-number, which no later row could take back."""

    code = "not_finite"


class NoValue(OperatorError):
    """An expression has no value for some row. `code` is the language's name for why."""

    def __init__(self, relation: str, what: str, code: str) -> None:
        super().__init__(relation, what)
        self.code = code
