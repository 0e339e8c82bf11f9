"""A broken promise, found by the simulator."""

from __future__ import annotations


class Violation(Exception):
    """Which rule, at which component, and what was seen."""

    def __init__(self, rule: str, component: str, what: str) -> None:
        super().__init__(f"[{rule}] {component}: {what}")
        self.rule = rule
        self.component = component
        self.what = what
