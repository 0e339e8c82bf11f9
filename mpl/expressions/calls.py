"""Calls: of library functions, of declared functions, and of what is neither."""

from __future__ import annotations

from mpl import nodes
from mpl.arithmetic import as_decimal, unify
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics, Note, did_you_mean
from mpl.expressions.build import FAILURE_HELP, apply, error, is_error
from mpl.expressions.comparisons import align
from mpl.expressions.conversions import assign, can_convert, convert, repair
from mpl.expressions.inlining import substitute
from mpl.expressions.table import AGGREGATES, DeclaredFunction, FunctionTable
from mpl.functions import BY_CALL
from mpl.functions.spec import FunctionSpec, Kind, Nulls, Parameter
from mpl.source import Span
from mpl.typed import Const, Expr, PythonCall
from mpl.types import BoolType, DecimalType, DurationType, EnumType, IntType, NullType, TextType, TimeType, Type

ELSEWHERE: dict[str, str] = {
    "ceiling": "it is called `ceil` here",
    "char_length": "it is called `length` here",
    "current_timestamp": "an expression has no clock: its value must be the same on every replica and at every replay",
    "date_format": "it is called `format` here, with a pattern such as '%Y-%m-%d'",
    "date_trunc": "it is called `truncate` here, with a duration: `truncate(t, 1 h)`",
    "extract": "use `year`, `month`, `day`, `hour`, `minute`, `second` or `epoch`",
    "if": "write `case when ... then ... else ... end`",
    "ifnull": "it is called `coalesce` here",
    "iif": "write `case when ... then ... else ... end`",
    "instr": "use `contains`",
    "len": "it is called `length` here",
    "now": "an expression has no clock: its value must be the same on every replica and at every replay",
    "nvl": "it is called `coalesce` here",
    "pow": "it is called `power` here",
    "random": "an expression must give the same on every replica; `hash` spreads values evenly",
    "regexp_like": "it is called `regexp_match` here",
    "strftime": "it is called `format` here",
    "strptime": "it is called `parse_time` here",
    "substr": "it is called `substring` here",
    "to_char": "use `format` for times, `cast(x as text)` for the rest",
    "to_timestamp": "it is called `parse_time` here",
    "xxhash64": "it is called `hash` here",
}
"""Names that users know from elsewhere, and what to write instead."""

_EXAMPLE_TYPES: dict[Kind, Type] = {
    Kind.TEXT: TextType(),
    Kind.INT: IntType(),
    Kind.NUMBER: IntType(),
    Kind.TIME: TimeType(),
    Kind.DURATION: DurationType(),
    Kind.BOOL: BoolType(),
}


def check_call(
    node: nodes.Call, arguments: tuple[Expr, ...], functions: FunctionTable, diagnostics: Diagnostics
) -> Expr:
    """The call with its checked arguments."""
    name = node.function.text
    declared = functions.find(name)
    if declared is not None:
        return _call_declared(node, declared, arguments, diagnostics)
    spec = BY_CALL.get(name)
    if spec is not None:
        return call_library(spec, arguments, node.span, diagnostics, name)
    if name in functions.unread:
        return error(node.span)
    if name in AGGREGATES:
        _report_aggregate(node, diagnostics)
    else:
        diagnostics.report(
            codes.FUNCTION_UNKNOWN,
            node.function.span,
            f"there is no function `{name}`",
            "not a function",
            help=lambda: ELSEWHERE.get(name.lower()) or did_you_mean(name, functions.names),
        )
    return error(node.span)


def _report_aggregate(node: nodes.Call, diagnostics: Diagnostics) -> None:
    name = node.function.text
    if name in ("min", "max") and len(node.arguments) > 1:
        other = "least" if name == "min" else "greatest"
        remedy = f"`{other}` takes the {'smallest' if name == 'min' else 'largest'} of several values of one row"
    else:
        remedy = f"first `|> aggregate x := {name}(...) group by ...`, then use `x`"
    diagnostics.report(
        codes.AGGREGATE_MISPLACED,
        node.function.span,
        f"`{name}` is an aggregate, which only `aggregate` computes",
        "this expression sees one row",
        help=remedy,
    )


# --- library functions ----------------------------------------------------------------------------------------------


def call_library(
    spec: FunctionSpec, arguments: tuple[Expr, ...], span: Span, diagnostics: Diagnostics, name: str
) -> Expr:
    """A library function or an operator on any arguments; `name` is what messages call it."""
    least = sum(not parameter.optional for parameter in spec.parameters)
    most = None if spec.variadic else len(spec.parameters)
    if not _check_count(name, len(arguments), least, most, span, spec.usage, diagnostics) or is_error(*arguments):
        return error(span)
    fine = [
        _check_argument(argument, spec.parameter(position), spec, name, diagnostics)
        for position, argument in enumerate(arguments)
    ]
    if not all(fine):
        return error(span)
    if report_problem(spec, arguments, name, diagnostics):
        return error(span)
    if spec.common:
        return _apply_common(spec, arguments, span, diagnostics, name)
    if spec.name == "nullif":
        arguments = align(arguments[0], arguments[1], span, diagnostics, ordered=False)
    if not is_error(*arguments) and spec.result(arguments) is None:
        # Each fits its parameter, but not the others: `mod(1, 'x')`.
        together = " and ".join(str(argument.type) for argument in arguments)
        diagnostics.report(codes.ARGUMENT_TYPE, span, f"`{name}` does not take {together}", "these do not go together")
        return error(span)
    return apply(spec.name, arguments, span, diagnostics)


def report_problem(spec: FunctionSpec, arguments: tuple[Expr, ...], name: str, diagnostics: Diagnostics) -> bool:
    """Whether these arguments, fine one by one, fail for every row; the last one is to blame."""
    problem = spec.problem(arguments) if spec.problem else None
    if problem is None:
        return False
    failure, message = problem
    diagnostics.report(
        codes.CONSTANT_FAILS,
        arguments[-1].span,
        f"`{name}` fails for every row: {message}",
        "not possible",
        help=FAILURE_HELP.get(failure),
    )
    return True


def _check_count(
    name: str, count: int, least: int, most: int | None, span: Span, usage: str, diagnostics: Diagnostics
) -> bool:
    if least <= count and (most is None or count <= most):
        return True
    if most is None:
        wanted = f"{least} or more arguments"
    elif least == most:
        wanted = f"{least} argument{'' if least == 1 else 's'}"
    else:
        wanted = f"{least} to {most} arguments"
    diagnostics.report(
        codes.ARGUMENT_COUNT, span, f"`{name}` takes {wanted}, not {count}", f"{count} given", help=f"write `{usage}`"
    )
    return False


def _check_argument(
    argument: Expr, parameter: Parameter, spec: FunctionSpec, name: str, diagnostics: Diagnostics
) -> bool:
    if isinstance(argument.type, NullType) and (spec.nulls is Nulls.PROPAGATE or spec.name == "nullif"):
        diagnostics.report(
            codes.NULL_OPERAND, argument.span, f"`{name}` of `null` is always null", "always null", help="leave it out"
        )
        return False
    if not parameter.kind.accepts(argument.type):
        wanted = _EXAMPLE_TYPES.get(parameter.kind)
        diagnostics.report(
            codes.ARGUMENT_TYPE,
            argument.span,
            f"`{name}` takes {parameter.kind.value} as `{parameter.name}`, not {argument.type}",
            f"this is {argument.type}",
            help=repair(argument, wanted) if wanted is not None else None,
        )
        return False
    if not isinstance(argument, Const) or argument.value is None:
        if parameter.literal:
            diagnostics.report(
                codes.LITERAL_WANTED,
                argument.span,
                f"`{parameter.name}` of `{name}` must be a literal",
                "known only when a row is there",
            )
        return not parameter.literal
    problem = parameter.problem(argument.value) if parameter.problem else None
    if problem is None:
        return True
    if parameter.kind is Kind.TEXT:
        diagnostics.report(
            codes.PATTERN_INVALID, argument.span, f"this pattern is not understood: {problem}", "not a pattern"
        )
    else:
        diagnostics.report(
            codes.CONSTANT_FAILS, argument.span, f"`{name}` fails for every row: {problem}", "not possible"
        )
    return False


def _apply_common(
    spec: FunctionSpec, arguments: tuple[Expr, ...], span: Span, diagnostics: Diagnostics, name: str
) -> Expr:
    common = common_type(arguments, f"the arguments of `{name}`", diagnostics)
    if common is None:
        return error(span)
    return apply(spec.name, tuple(convert(argument, common) for argument in arguments), span, diagnostics)


def common_type(values: tuple[Expr, ...], what: str, diagnostics: Diagnostics) -> Type | None:
    """The one type of values that must have one, or None after a diagnostic.

    Next to decimals an int literal only counts with the digits it has: `coalesce(price, 0)` is of the price's type.
    """
    types = [value.type for value in values]
    if any(isinstance(each, DecimalType) for each in types):
        types = [as_decimal(value.type, value.bounds) if _is_int(value) else value.type for value in values]
    common = unify(*types)
    if common is not None:
        return common
    first = next(value for value in values if not isinstance(value.type, NullType))
    other = next(value for value in values if unify(first.type, value.type) is None)
    diagnostics.report(
        codes.NO_COMMON_TYPE,
        other.span,
        f"{what} must have one type, but there are {first.type} and {other.type}",
        f"this is {other.type}",
        note=Note(f"this is {first.type}", first.span),
        help=repair(other, first.type),
    )
    return None


def _is_int(value: Expr) -> bool:
    return isinstance(value, Const) and isinstance(value.type, IntType)


# --- declared functions ---------------------------------------------------------------------------------------------


def _call_declared(
    node: nodes.Call, function: DeclaredFunction, arguments: tuple[Expr, ...], diagnostics: Diagnostics
) -> Expr:
    count = len(function.parameters)
    usage = f"{function.name}({', '.join(parameter.name for parameter in function.parameters)})"
    if not _check_count(function.name, len(arguments), count, count, node.span, usage, diagnostics):
        return error(node.span)
    ready = tuple(
        _as_parameter(argument, function, position, diagnostics) for position, argument in enumerate(arguments)
    )
    if is_error(*ready):
        return error(node.span)
    if function.python is not None:
        module, python_name = function.python
        return PythonCall(
            type=function.result,
            nullable=function.decl.result_nullable,
            module=module,
            function=python_name,
            arguments=ready,
            monotone=function.decl.monotone,
            span=node.span,
        )
    if function.body is None:
        return error(node.span)  # whatever is wrong with the body was said there
    return substitute(function.body, ready)


def _as_parameter(argument: Expr, function: DeclaredFunction, position: int, diagnostics: Diagnostics) -> Expr:
    parameter = function.parameters[position]
    what = f"parameter `{parameter.name}` of `{function.name}`"
    if argument.nullable and not parameter.nullable and not is_error(argument):
        diagnostics.report(
            codes.ARGUMENT_NULL,
            argument.span,
            f"{what} takes no null, but this may be null",
            "may be null",
            note=Note("declared here without `null`", function.decl.parameters[position].span),
            help="use `coalesce`, or declare the parameter `null`",
        )
        return error(argument.span)
    if can_convert(argument, parameter.type) or isinstance(parameter.type, EnumType):
        return assign(argument, parameter.type, what, diagnostics)
    diagnostics.report(
        codes.ARGUMENT_TYPE,
        argument.span,
        f"{what} is {parameter.type}, not {argument.type}",
        f"this is {argument.type}",
        help=repair(argument, parameter.type),
    )
    return error(argument.span)
