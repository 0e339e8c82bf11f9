"""Checks scalar expressions: one method per kind of node, syntax in, typed out.

Every independent mistake is reported; whatever contains a mistake gets `ErrorType` and is not complained about again.
What is written twice in one way becomes one thing here: `between` is `and`, `not in` is `not`, a missing `else` is
null, calls of MPL functions are their bodies.
"""

from __future__ import annotations

from mpl import nodes
from mpl.codes import types as codes
from mpl.codes.names import UNKNOWN_COLUMN
from mpl.diagnostic import Diagnostics, Note
from mpl.expressions.arithmetic import check_arithmetic, check_negation
from mpl.expressions.build import apply, constant, error, is_error
from mpl.expressions.calls import call_library, check_call, common_type
from mpl.expressions.comparisons import SYMBOLS, align
from mpl.expressions.conditions import warn_if_constant
from mpl.expressions.conversions import can_convert, convert, repair, shown_operand
from mpl.expressions.literals import LITERALS, literal
from mpl.expressions.table import DeclaredFunction, FunctionTable
from mpl.expressions.walk import measure
from mpl.expressions.written_types import declared_type
from mpl.functions import BY_NAME
from mpl.functions.casts import can_cast
from mpl.functions.conditional import union_of_bounds
from mpl.scope import Scope
from mpl.typed import CaseOf, ColumnRef, Expr, Schema
from mpl.types import BoolType, DurationType, ErrorType, NullType, Type

EXPRESSION_SIZE_MAX = 10_000
EXPRESSION_DEPTH_MAX = 200
"""Limits of one expression after functions were put in place, so that nobody who walks it runs out of stack."""

SMALL_EXPRESSION = 40
"""So few nodes as written cannot reach the limits without functions: a node becomes at most three levels."""

BOOL = BoolType()


def check_expression(expr: nodes.Expr, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> Expr:
    """The typed expression. Never raises on user text: where an error was reported the type is `ErrorType`.

    A bare `null` gives a constant of `NullType`; `convert` gives it a type.
    """
    checker = _Checker(scope, functions, diagnostics)
    checked = checker.check(expr)
    if checker.visited <= SMALL_EXPRESSION and not checker.inlined:
        return checked
    size, depth = measure(checked)
    if size <= EXPRESSION_SIZE_MAX and depth <= EXPRESSION_DEPTH_MAX:
        return checked
    if depth > EXPRESSION_DEPTH_MAX:
        message = f"this expression is {depth} levels deep; {EXPRESSION_DEPTH_MAX} is the limit"
    else:
        message = f"this expression has more than {EXPRESSION_SIZE_MAX} parts"
    diagnostics.report(
        codes.EXPRESSION_TOO_LARGE,
        expr.span,
        message,
        "with all functions put in place",
        help="compute parts of it with `extend` first",
    )
    return error(expr.span)


def check_value(expr: nodes.Expr, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> Expr:
    """As `check_expression`, but a value that stays without a type (a bare `null`) is an error: for `extend`."""
    checked = check_expression(expr, scope, functions, diagnostics)
    if not isinstance(checked.type, NullType):
        return checked
    diagnostics.report(
        codes.VALUE_UNTYPED,
        expr.span,
        "a bare `null` has no type",
        "null of which type?",
        help="write `cast(null as int)`, or the type that is meant",
    )
    return error(expr.span)


def check_predicate(expr: nodes.Expr, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> Expr:
    """As `check_expression`, of type bool (or `ErrorType`)."""
    checked = _as_condition(check_expression(expr, scope, functions, diagnostics), diagnostics)
    warn_if_constant(checked, diagnostics)
    return checked


def check_body(function: DeclaredFunction, functions: FunctionTable, diagnostics: Diagnostics) -> Expr | None:
    """The body of a declared function in the declared type; its parameters are columns. None after a diagnostic."""
    assert function.decl.body is not None
    scope = Scope.of_schema(Schema(columns=function.parameters, key=()), None)
    body = check_expression(function.decl.body, scope, functions, diagnostics)
    if is_error(body):
        return None
    if not can_convert(body, function.result):
        diagnostics.report(
            codes.FUNCTION_RESULT,
            body.span,
            f"`{function.name}` returns {function.result}, but its body is {body.type}",
            f"this is {body.type}",
            note=Note("declared here", function.decl.result.span),
            help=repair(body, function.result),
        )
        return None
    if body.nullable and not function.decl.result_nullable:
        diagnostics.report(
            codes.FUNCTION_RESULT,
            body.span,
            f"`{function.name}` returns no null, but its body may be null",
            "may be null",
            note=Note("declared here without `null`", function.decl.result.span),
            help=f"declare `returns {function.result} null`, or use `coalesce`",
        )
        return None
    converted = convert(body, function.result)
    return None if is_error(converted) else converted


def _as_condition(expr: Expr, diagnostics: Diagnostics) -> Expr:
    if is_error(expr) or isinstance(expr.type, BoolType):
        return expr
    remedy = None
    if isinstance(expr.type, NullType):
        remedy = "`null` is never true; leave the condition out or write `false`"
    elif expr.span.text.isidentifier():
        remedy = f"compare it: `{expr.span.text} = ...`"
    diagnostics.report(
        codes.CONDITION_TYPE,
        expr.span,
        f"a condition must be true or false, not {expr.type}",
        f"this is {expr.type}",
        help=remedy,
    )
    return error(expr.span)


class _Checker:
    """One expression, one scope."""

    def __init__(self, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> None:
        self.scope = scope
        self.functions = functions
        self.diagnostics = diagnostics
        self.visited = 0
        self.inlined = False

    def check(self, node: nodes.Expr) -> Expr:
        self.visited += 1
        if isinstance(node, LITERALS):
            return literal(node, self.diagnostics)
        match node:
            case nodes.ColumnExpr():
                return self._column(node)
            case nodes.Arithmetic():
                operands = [self.check(operand) for _, operand in node.rest]
                return check_arithmetic(node, self.check(node.first), operands, self.diagnostics)
            case nodes.Negate():
                return check_negation(node, lambda: self.check(node.operand), self.diagnostics)
            case nodes.Compare():
                return self._compare(node)
            case nodes.Logical():
                operands = [self._condition(operand) for operand in node.operands]
                return apply(node.op, tuple(operands), node.span, self.diagnostics)
            case nodes.Not():
                return apply("not", (self._condition(node.operand),), node.span, self.diagnostics)
            case nodes.InList():
                return self._negated(self._in_list(node), node)
            case nodes.Between():
                return self._negated(self._between(node), node)
            case nodes.Like():
                texts = (self.check(node.operand), self.check(node.pattern))
                return self._negated(call_library(BY_NAME["like"], texts, node.span, self.diagnostics, "like"), node)
            case nodes.IsNull():
                return self._negated(apply("is_null", (self.check(node.operand),), node.span, self.diagnostics), node)
            case nodes.Case():
                return self._case(node)
            case nodes.Cast():
                return self._cast(node)
            case nodes.Call():
                arguments = tuple([self.check(argument) for argument in node.arguments])
                self.inlined = self.inlined or self.functions.find(node.function.text) is not None
                return check_call(node, arguments, self.functions, self.diagnostics)

    def _condition(self, node: nodes.Expr) -> Expr:
        return _as_condition(self.check(node), self.diagnostics)

    def _negated(self, expr: Expr, node: nodes.InList | nodes.Between | nodes.Like | nodes.IsNull) -> Expr:
        return apply("not", (expr,), node.span, self.diagnostics) if node.negated else expr

    def _column(self, node: nodes.ColumnExpr) -> Expr:
        qualifier = node.column.qualifier.text if node.column.qualifier else None
        found = self.scope.find(qualifier, node.column.name.text)
        if found is None:
            self._report_column(node, qualifier)
            return error(node.span)
        column = found.column
        return ColumnRef(
            type=column.type,
            nullable=column.nullable,
            bounds=column.bounds,
            index=found.index,
            name=column.name,
            span=node.span,
        )

    def _report_column(self, node: nodes.ColumnExpr, qualifier: str | None) -> None:
        def remedy() -> str | None:
            close = self.scope.suggest(qualifier, node.column.name.text)
            names = list(self.scope.names)
            if close is not None or not names:
                return close
            return f"the columns are {', '.join(f'`{name}`' for name in names[:8])}{', ...' if len(names) > 8 else ''}"

        self.diagnostics.report(
            UNKNOWN_COLUMN, node.span, f"there is no column `{node.column.text}` here", "not found", help=remedy
        )

    def _compare(self, node: nodes.Compare) -> Expr:
        left, right = self.check(node.left), self.check(node.right)
        function = SYMBOLS.get(node.op)
        if function is None:
            return error(node.span)  # the parser has reported `==` and gone on
        ordered = function not in ("equal", "unequal")
        operands = align(left, right, node.span, self.diagnostics, ordered=ordered)
        return apply(function, operands, node.span, self.diagnostics)

    def _in_list(self, node: nodes.InList) -> Expr:
        operand = self.check(node.operand)
        items = []
        for written in node.items:
            item = self.check(written)
            operand_or_error, item = align(operand, item, item.span, self.diagnostics, ordered=False)
            items.append(item)
            if is_error(operand_or_error):
                items.append(operand_or_error)
        return apply("in_list", (operand, *items), node.span, self.diagnostics)

    def _between(self, node: nodes.Between) -> Expr:
        operand = self.check(node.operand)
        low, high = self.check(node.low), self.check(node.high)
        from_low = align(operand, low, node.span, self.diagnostics, ordered=True)
        to_high = align(operand, high, node.span, self.diagnostics, ordered=True)
        parts = (
            apply("greater_equal", from_low, node.span, self.diagnostics),
            apply("less_equal", to_high, node.span, self.diagnostics),
        )
        return apply("and", parts, node.span, self.diagnostics)

    def _case(self, node: nodes.Case) -> Expr:
        conditions = [self._condition(condition) for condition, _ in node.branches]
        values = [self.check(value) for _, value in node.branches]
        last = self.check(node.otherwise) if node.otherwise else constant(None, NullType(), node.span)
        common = common_type((*values, last), "the branches of `case`", self.diagnostics)
        if common is None or is_error(*conditions, *values, last):
            return error(node.span)
        values = [convert(value, common) for value in values]
        last = convert(last, common)
        return CaseOf(
            type=common,
            nullable=last.nullable or any(value.nullable for value in values),
            bounds=union_of_bounds((*values, last), common),
            branches=tuple(zip(conditions, values, strict=True)),
            otherwise=last,
            span=node.span,
        )

    def _cast(self, node: nodes.Cast) -> Expr:
        operand = self.check(node.operand)
        target = declared_type(node.type, self.diagnostics)
        if is_error(operand) or isinstance(target, ErrorType):
            return error(node.span)
        if isinstance(operand.type, NullType):
            return constant(None, target, node.span)
        if not can_cast(operand.type, target):
            self._report_cast(node, operand, target)
            return error(node.span)
        if operand.type == target:
            return operand
        return apply("cast", (operand,), node.span, self.diagnostics, target)

    def _report_cast(self, node: nodes.Cast, operand: Expr, target: Type) -> None:
        remedy = repair(operand, target)
        if isinstance(operand.type, DurationType):
            remedy = f"`{shown_operand(operand)} / 1 s` is a number"
        elif isinstance(target, BoolType):
            remedy = f"compare it: `{shown_operand(operand)} <> 0`"
        self.diagnostics.report(
            codes.CAST_IMPOSSIBLE,
            node.span,
            f"there is no cast from {operand.type} to {target}",
            f"this is {operand.type}",
            help=remedy,
        )
