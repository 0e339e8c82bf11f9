"""One call that says everything about a text: parse, check, derive knowledge.

What `smile check`, `smile explain` and the compiler begin with. Never raises for what a user wrote; the result says
whether there were errors.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpl import typed
from mpl.checker import check_program
from mpl.diagnostic import Diagnostic, Diagnostics, MplError
from mpl.knowledge import ProgramKnowledge, analyse
from mpl.parser import parse
from mpl.source import Source


@dataclass(frozen=True)
class Checked:
    """`program` and `knowledge` are complete when `ok`; `diagnostics` come in source order, warnings included."""

    source: Source
    program: typed.TypedProgram
    knowledge: ProgramKnowledge | None
    diagnostics: tuple[Diagnostic, ...]
    dropped: int

    @property
    def ok(self) -> bool:
        return self.knowledge is not None

    def require(self) -> Checked:
        """Itself, or `MplError` with all the diagnostics."""
        if not self.ok:
            raise MplError(self.diagnostics)
        return self


def check(source: Source) -> Checked:
    diagnostics = Diagnostics()
    syntax = parse(source, diagnostics)
    program = check_program(syntax, diagnostics)
    # Kinds of half a program would be guesses: derive them only when every relation is known.
    knowledge = None if diagnostics.has_errors else analyse(program, diagnostics)
    return Checked(source, program, knowledge, tuple(diagnostics), diagnostics.dropped)
