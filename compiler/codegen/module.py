"""One generated module: the functions of one component, their text, and the functions themselves.

The text is printed by `codegen_templates/component.py.j2`. A module is loaded with no builtins: what it can reach is
its constants table, the library functions and Python functions named there, and `overflow`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, NoReturn

from jinja2 import Environment, PackageLoader, StrictUndefined

from compiler.codegen.safety import check_module
from compiler.codegen.scalars import Constants, ScalarWriter
from mpl.evaluate import is_value_of
from mpl.failures import EvaluationError, Failure
from mpl.functions.library import bound_function
from mpl.typed import Expr
from mpl.types import Type, Value

Function = Callable[..., Any]
NO_PYTHON: Mapping[tuple[str, str], Function] = MappingProxyType({})


@dataclass(frozen=True)
class GeneratedFunction:
    """`summary` says what it computes, in our words; `lines` are its statements."""

    name: str
    parameters: tuple[str, ...]
    lines: tuple[str, ...]
    result: str
    summary: str


@dataclass
class Module:
    """What a component's module will contain. `origin` is a place (`tickets.mpl:12`), checked to be one line."""

    component: str
    operator: str
    origin: str
    constants: Constants = field(default_factory=Constants)
    functions: list[GeneratedFunction] = field(default_factory=list)

    def add(self, role: str, expr: Expr, columns: Mapping[int, str], width: int, *, is_condition: bool = False) -> str:
        """Write a function of `width` physical columns that computes `expr`; returns its name."""
        writer = ScalarWriter(self.constants, columns)
        result = writer.truth(expr) if is_condition else writer.value(expr)
        name = f"{role}_{len(self.functions)}"
        parameters = tuple(f"c{number}" for number in range(width))
        self.functions.append(GeneratedFunction(name, parameters, tuple(writer.lines), result, role))
        return name

    @property
    def header(self) -> dict[str, str]:
        """What the comment at the top says; names and places are the user's, so only what is safe of them."""
        return {
            "origin": comment_text(self.origin),
            "component": comment_text(self.component),
            "operator": self.operator,
        }

    @property
    def text(self) -> str:
        body = environment().get_template("component.py.j2")
        return body.render(module=self, header=self.header, digest=self._digest())

    def _digest(self) -> str:
        """Of everything that decides the text, so that equal programs give equal bytes."""
        parts = [repr((f.name, f.parameters, f.lines, f.result)) for f in self.functions]
        return hashlib.sha256("\n".join([self.component, self.operator, *parts]).encode()).hexdigest()[:16]

    def load(self, python: Mapping[tuple[str, str], Function] = NO_PYTHON) -> dict[str, Function]:
        """The functions by name."""
        code = compile(check_module(self.text), f"<generated {self.component}>", "exec")
        names: dict[str, Any] = {
            "__builtins__": {},
            "K": tuple(self.constants.values),
            "F": tuple(bound_function(*wanted) for wanted in self.constants.functions),
            "P": tuple(_python_function(wanted, python) for wanted in self.constants.python),
            "overflow": overflow,
        }
        exec(code, names)  # noqa: S102  the tree was checked against the list of what our templates can make
        return {function.name: names[function.name] for function in self.functions}


COMMENT_LENGTH_MAX = 80


def comment_text(text: str) -> str:
    """Text for a comment: one line of printable ASCII. A carriage return, for one, would end the comment."""
    safe = "".join(character if " " <= character <= "~" else "?" for character in text[:COMMENT_LENGTH_MAX])
    return safe if len(text) <= COMMENT_LENGTH_MAX else safe + "..."


def overflow(type: str) -> NoReturn:
    raise EvaluationError(Failure.OVERFLOW, f"the result is too large for {type}")


def _python_function(wanted: tuple[str, str, Type, bool], python: Mapping[tuple[str, str], Function]) -> Function:
    """A declared Python function that checks what it is given back."""
    module, name, result_type, nullable = wanted
    function = python.get((module, name))

    def call(*values: Value) -> Value:
        if function is None:
            raise EvaluationError(Failure.PYTHON, f"the Python function {module}:{name} is not allowed here")
        try:
            result: Value = function(*values)
        except Exception as error:
            raise EvaluationError(Failure.PYTHON, f"{module}:{name} raised {error!r}") from error
        if not (nullable if result is None else is_value_of(result, result_type)):
            raise EvaluationError(Failure.PYTHON, f"{module}:{name} did not return {result_type}")
        return result

    return call


@cache
def environment() -> Environment:
    return Environment(
        loader=PackageLoader("codegen_templates", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
