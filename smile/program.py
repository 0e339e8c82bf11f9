"""A compiled program: what `smile.compile` gives and `smile.run` takes.

It is made once and can be run many times, also in several systems at once: nothing in it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from compiler.graph import TransformGraph, build_graph, validate
from compiler.modules import module_texts
from compiler.passes import optimise
from compiler.plan.build import ProgramPlan, ViewPlan, build_plan
from compiler.unsupported import refuse_unsupported
from mpl.check import Checked, check
from mpl.diagnostic import MplError, did_you_mean
from mpl.source import Source
from mpl.typed import Subscription
from runtime.plan import Plan
from smile.errors import UnknownName

PythonFunctions = Mapping[tuple[str, str], Callable[..., Any]]
"""Functions that a program may call, by module and name."""


@dataclass(frozen=True, eq=False)
class Program:
    """`checked` is the text with its diagnostics (warnings among them), `graph` the optimised transform graph."""

    checked: Checked
    graph: TransformGraph
    python: PythonFunctions
    folder: Path
    """Where files that the program names are looked for."""

    @cached_property
    def plan(self) -> ProgramPlan:
        return build_plan(self.graph, python=self.python)

    def plan_for(self, views: Collection[str]) -> Plan:
        """The components that these views need, and no others."""
        return self.plan.plan_for(views)

    @property
    def streams(self) -> Mapping[str, ViewPlan]:
        return self.plan.streams

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        return self.checked.program.subscriptions

    @property
    def modules(self) -> dict[str, str]:
        """The generated code, by component; those that pass rows on as they are have none."""
        return module_texts(self.plan)

    def relation(self, name: str) -> ViewPlan:
        """The view, stream or table of this name."""
        plan = self.plan
        for found in (plan.views, plan.streams, plan.tables):
            if name in found:
                return found[name]
        raise self.unknown("view, stream or table", name, [*plan.views, *plan.streams, *plan.tables])

    def unknown(self, what: str, name: str, known: Collection[str]) -> UnknownName:
        hint = did_you_mean(name, known)
        return UnknownName(f"{self.checked.source.name} has no {what} `{name}`" + (f"; {hint}" if hint else ""))


def compile(source: str | PathLike[str], *, python: PythonFunctions | None = None) -> Program:  # noqa: A001
    """Compile MPL: a path (a `Path`, or text on one line that ends in .mpl) or the program itself.

    Raises `MplError` with all diagnostics, also for what is correct but cannot run yet. `python` are the Python
    functions that the program may call.
    """
    text, folder = _read(source)
    return compile_source(text, folder, python)


def compile_source(source: Source, folder: Path, python: PythonFunctions | None = None) -> Program:
    """The same for a text that is at hand. Its name goes into messages and into the generated code."""
    checked = check(source).require()
    graph = validate(build_graph(checked))
    python = python or {}
    refused = refuse_unsupported(graph, {module for module, _ in python})
    if refused:
        raise MplError((*checked.diagnostics, *refused))
    return Program(checked, optimise(graph), python, folder)


def _read(source: str | PathLike[str]) -> tuple[Source, Path]:
    is_path = not isinstance(source, str) or (source.endswith(".mpl") and "\n" not in source)
    if not is_path:
        assert isinstance(source, str)
        return Source("<text>", source), Path.cwd()
    path = Path(source)
    return Source(str(source), path.read_text(encoding="utf-8")), path.parent
