"""Records: small values that nobody changes once they are made, and that every message makes several of.

A frozen dataclass enters its fields one by one around its own ban, which takes four times as long as plain assignment.
So that nobody changes a record is left to the type checker, which sees a frozen dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, slots):
        """As `dataclass(frozen=True, slots=True)`: equal and hashed by value, without room for anything else."""
        assert frozen is slots is True
        return dataclass(slots=True, unsafe_hash=True)
