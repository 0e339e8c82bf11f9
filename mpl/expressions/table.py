"""The functions that a program declares.

MPL bodies are checked once, against their parameters, and put in place at every call (`inlining.py`); a Python
function becomes a `PythonCall`. Bodies may call functions that are declared later, but not each other in a circle.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from mpl import nodes
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics, Note
from mpl.expressions.walk import calls_in
from mpl.expressions.written_types import declared_type
from mpl.functions import BY_CALL
from mpl.source import Span
from mpl.typed import Column, Expr
from mpl.types import Type

AGGREGATES: frozenset[str] = frozenset({"sum", "count", "min", "max", "avg", "first", "last", "any", "all"})

_PYTHON_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*):([A-Za-z_][A-Za-z0-9_]*)")


@dataclass
class DeclaredFunction:
    """One declared function. `body` is None until it was checked, and stays so if that failed."""

    decl: nodes.FunctionDecl
    parameters: tuple[Column, ...]
    result: Type
    python: tuple[str, str] | None
    body: Expr | None = None

    @property
    def name(self) -> str:
        return self.decl.name.text

    @property
    def span(self) -> Span:
        return self.decl.name.span


class FunctionTable:
    """Declared functions by name. Use: `declare` them all, then `resolve` once, then check expressions.

    `unread` are names whose declaration has a syntax error: a call of one is neither right nor wrong.
    """

    def __init__(self, unread: Collection[str] = ()) -> None:
        self._functions: dict[str, DeclaredFunction] = {}
        self.unread = unread

    def find(self, name: str) -> DeclaredFunction | None:
        return self._functions.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that can be called, for suggestions."""
        return (*self._functions, *BY_CALL)

    def declare(self, decl: nodes.FunctionDecl, diagnostics: Diagnostics) -> None:
        name = decl.name
        earlier = self._functions.get(name.text)
        if earlier is not None:
            diagnostics.report(
                codes.FUNCTION_DECLARATION,
                name.span,
                f"function `{name.text}` is declared twice",
                "the second declaration",
                note=Note("the first declaration is here", earlier.span),
            )
            return
        if name.text in BY_CALL or name.text in AGGREGATES:
            diagnostics.report(
                codes.FUNCTION_DECLARATION,
                name.span,
                f"`{name.text}` is a function of the language",
                "the name is taken",
                help="choose another name",
            )
            return
        _check_parameters(decl, diagnostics)
        self._functions[name.text] = DeclaredFunction(
            decl=decl,
            parameters=tuple(
                Column(parameter.name.text, declared_type(parameter.type, diagnostics), parameter.nullable)
                for parameter in decl.parameters
            ),
            result=declared_type(decl.result, diagnostics),
            python=_python_name(decl, diagnostics),
        )

    def resolve(self, diagnostics: Diagnostics) -> None:
        """Checks all bodies, each after those that it calls."""
        from mpl.expressions.checker import check_body  # the checker needs the table, and only here the other way

        calls = {name: self._declared_calls(function) for name, function in self._functions.items()}
        done: set[str] = set()
        waiting = list(self._functions)
        while waiting:
            ready = [name for name in waiting if calls[name].keys() <= done]
            for name in ready or waiting:
                function = self._functions[name]
                if not ready and (call := _circle(name, calls)) is not None:
                    _report_recursion(function, call, diagnostics)
                elif function.decl.body is not None and ready:
                    function.body = check_body(function, self, diagnostics)
            done.update(ready)
            waiting = [name for name in waiting if name not in done] if ready else []

    def _declared_calls(self, function: DeclaredFunction) -> dict[str, nodes.Call]:
        """The declared functions that a body calls, with one place each."""
        body = function.decl.body
        calls = calls_in(body) if body is not None else ()
        return {call.function.text: call for call in calls if call.function.text in self._functions}


def _circle(name: str, calls: dict[str, dict[str, nodes.Call]]) -> nodes.Call | None:
    """The call in the body of `name` that leads back to it, if there is one."""
    for first, call in calls[name].items():
        seen: set[str] = set()
        waiting = [first]
        while waiting:
            reached = waiting.pop()
            if reached == name:
                return call
            if reached not in seen:
                seen.add(reached)
                waiting.extend(calls[reached])
    return None


def _report_recursion(function: DeclaredFunction, call: nodes.Call, diagnostics: Diagnostics) -> None:
    by_way = "" if call.function.text == function.name else f" by way of `{call.function.text}`"
    diagnostics.report(
        codes.FUNCTION_RECURSIVE,
        call.function.span,
        f"function `{function.name}` calls itself{by_way}",
        "this call leads back",
        note=Note("functions are put in place where they are called, so that they must end"),
    )


def _check_parameters(decl: nodes.FunctionDecl, diagnostics: Diagnostics) -> None:
    seen: dict[str, Span] = {}
    for parameter in decl.parameters:
        name = parameter.name
        if name.text in seen:
            diagnostics.report(
                codes.FUNCTION_DECLARATION,
                name.span,
                f"parameter `{name.text}` is declared twice",
                "the second one",
                note=Note("the first one is here", seen[name.text]),
            )
        seen.setdefault(name.text, name.span)
    if decl.monotone and decl.python is None:
        diagnostics.report(
            codes.FUNCTION_DECLARATION,
            decl.name.span,
            f"`monotone` is only said of Python functions, and `{decl.name.text}` is MPL",
            "its direction is derived from its body",
            help="leave out `monotone`",
        )
    elif decl.monotone and len(decl.monotone) != len(decl.parameters):
        diagnostics.report(
            codes.FUNCTION_DECLARATION,
            decl.name.span,
            f"`{decl.name.text}` has {len(decl.parameters)} parameters but {len(decl.monotone)} directions",
            "one direction per parameter",
        )


def _python_name(decl: nodes.FunctionDecl, diagnostics: Diagnostics) -> tuple[str, str] | None:
    if decl.python is None:
        return None
    found = _PYTHON_NAME.fullmatch(decl.python)
    if found is not None:
        return found.group(1), found.group(2)
    diagnostics.report(
        codes.FUNCTION_DECLARATION,
        decl.name.span,
        f'"{decl.python}" does not name a Python function',
        "the function behind this name",
        help='write the module and the function: `python "shop.prices:discount"`',
    )
    return None
