"""What generated code may contain. Walked over the syntax tree of every module before it is compiled.

A second line of defence: the writers put no user text into code, and if one ever did, the tree would have a shape that
is not on this list.
"""

from __future__ import annotations

import ast
import re

ALLOWED_NODES: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Expr, ast.Pass),
        *(ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Break, ast.Continue),
        *(ast.Name, ast.Load, ast.Store, ast.Constant, ast.Tuple, ast.Subscript, ast.Call, ast.Starred, ast.IfExp),
        *(ast.List, ast.Dict),
        *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitXor, ast.RShift, ast.LShift),
        *(ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or),
        *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot),
    )
)
"""No attribute access, no import, no lambda, no comprehension, no exception handling, no class."""

NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}|[KFP]")
CALLABLE_PATTERN = re.compile(
    r"overflow|too_large|range|len|zip|find|enter|leave|touch|keep|key_of|down|bisect|(add|get)(_[0-9]+)?"
)
"""Built-in functions, and parameters by which templates get the methods of the tables they work on."""

CALLABLE_TABLES = frozenset(("F", "P"))


class UnsafeCode(AssertionError):
    """Generated code has a shape that no template makes: our own mistake, never the user's."""


def check_module(text: str) -> ast.Module:
    """The syntax tree of a generated module, if everything in it is allowed."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        _check_node(node)
    return tree


def _check_node(node: ast.AST) -> None:
    if type(node) not in ALLOWED_NODES:
        raise UnsafeCode(f"{type(node).__name__} at line {getattr(node, 'lineno', '?')}")
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            if not NAME_PATTERN.fullmatch(name) or "__" in name:
                raise UnsafeCode(f"name {name!r}")
        case ast.Constant(value=value):
            # Text constants can only be docstrings, which say what our templates say.
            if not isinstance(value, bool | int | str | None.__class__):
                raise UnsafeCode(f"constant of type {type(value).__name__}")
        case ast.Call(func=function, keywords=keywords):
            if keywords or not _may_be_called(function):
                raise UnsafeCode(f"call at line {node.lineno}")
        case _:
            pass


def _may_be_called(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name):
            return CALLABLE_PATTERN.fullmatch(name) is not None
        case ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=int())):
            return table in CALLABLE_TABLES
        case _:
            return False
