"""Expressions and types as layout. Parentheses appear only where the binding of operators needs them."""

from __future__ import annotations

from collections.abc import Sequence

from mpl.formatter.layout import LINE, SOFT, SPACE, Doc, Group, Indent, Word
from mpl.nodes import (
    Arithmetic,
    Between,
    BoolLiteral,
    Call,
    Case,
    Cast,
    ColumnExpr,
    ColumnName,
    Compare,
    DecimalLiteral,
    DurationLiteral,
    Expr,
    FloatLiteral,
    InList,
    IntLiteral,
    IsNull,
    Like,
    Logical,
    Name,
    Negate,
    Not,
    NullLiteral,
    TextLiteral,
    TimeLiteral,
    TypeNode,
)

OR, AND, NOT, PREDICATE, CONCAT, SUM, PRODUCT, UNARY, ATOM = range(1, 10)
"""How strongly operators bind, as the grammar has them."""


def word(text: str) -> Word:
    return Word(text)


def value() -> Word:
    """A name or a literal: its text is taken from the source, as the user wrote it."""
    return Word(None)


def spaced(*parts: Doc | str) -> Doc:
    """Parts with blanks between them; a string may hold several words."""
    docs: list[Doc] = []
    for part in parts:
        for doc in [word(text) for text in part.split()] if isinstance(part, str) else [part]:
            docs += [SPACE, doc] if docs else [doc]
    return tuple(docs)


def listed(items: Sequence[Doc]) -> Doc:
    """`a, b, c`, with a possible line break after every comma."""
    docs: list[Doc] = []
    for item in items:
        docs += [word(","), LINE, item] if docs else [item]
    return tuple(docs)


def enclosed(body: Doc) -> Doc:
    """`(...)`; when it is too long, with what is inside on lines of its own."""
    return Group((word("("), Indent((SOFT, body)), SOFT, word(")")))


def name(_: Name) -> Doc:
    return value()


def names(items: Sequence[Name]) -> Doc:
    return listed([name(item) for item in items])


def column(node: ColumnName) -> Doc:
    return (value(), word("."), value()) if node.qualifier else value()


def columns(items: Sequence[ColumnName]) -> Doc:
    return listed([column(item) for item in items])


def type_doc(node: TypeNode) -> Doc:
    if node.numbers:
        numbers: list[Doc] = []
        for _ in node.numbers:
            numbers += [word(","), value()] if numbers else [value()]
        return (word(node.name), word("("), *numbers, word(")"))
    if node.values:
        return (word(node.name), enclosed(listed([value() for _ in node.values])))
    return word(node.name)


def binding(node: Expr) -> int:
    match node:
        case Logical(op=op):
            return OR if op == "or" else AND
        case Not():
            return NOT
        case Compare() | InList() | Between() | Like() | IsNull():
            return PREDICATE
        case Arithmetic(rest=rest):
            return CONCAT if rest[0][0] == "||" else SUM if rest[0][0] in "+-" else PRODUCT
        case Negate():
            return UNARY
        case _:
            return ATOM


def expr(node: Expr, at_least: int = OR) -> Doc:
    """The expression, in parentheses when it binds less than the place needs."""
    if binding(node) < at_least:
        return enclosed(_bare(node))
    return _bare(node)


def _bare(node: Expr) -> Doc:
    match node:
        case IntLiteral() | DecimalLiteral() | FloatLiteral() | TextLiteral() | DurationLiteral():
            return value()
        case BoolLiteral(value=flag):
            return word("true" if flag else "false")
        case NullLiteral():
            return word("null")
        case TimeLiteral():
            return spaced("time", value())
        case ColumnExpr(column=inner):
            return column(inner)
        case Negate(operand=operand):
            # Two minus signs in a row would begin a comment.
            gap: tuple[Doc, ...] = (SPACE,) if isinstance(operand, Negate) else ()
            return (word("-"), *gap, expr(operand, UNARY))
        case Not(operand=operand):
            return spaced("not", expr(operand, NOT))
        case Arithmetic(first=first, rest=rest):
            level = binding(node) + 1
            return _chain(expr(first, level), [(op, expr(operand, level)) for op, operand in rest])
        case Logical(op=op, operands=operands):
            first_doc, *others = [expr(operand, binding(node) + 1) for operand in operands]
            return _chain(first_doc, [(op, operand) for operand in others])
        case Compare(op=op, left=left, right=right):
            return spaced(expr(left, CONCAT), op, expr(right, CONCAT))
        case InList(operand=operand, items=items, negated=negated):
            head = spaced(expr(operand, CONCAT), "not in" if negated else "in")
            return (head, SPACE, enclosed(listed([expr(item) for item in items])))
        case Between(operand=operand, low=low, high=high, negated=negated):
            head = spaced(expr(operand, CONCAT), "not between" if negated else "between")
            return spaced(head, expr(low, CONCAT), "and", expr(high, CONCAT))
        case Like(operand=operand, pattern=pattern, negated=negated):
            return spaced(expr(operand, CONCAT), "not like" if negated else "like", expr(pattern, CONCAT))
        case IsNull(operand=operand, negated=negated):
            return spaced(expr(operand, CONCAT), "is not null" if negated else "is null")
        case Case():
            return _case(node)
        case Cast(operand=operand, type=type_node):
            return (word("cast"), enclosed(spaced(expr(operand), "as", type_doc(type_node))))
        case Call(arguments=arguments):
            return call(listed([expr(argument) for argument in arguments]))


def call(arguments: Doc) -> Doc:
    """`f(...)`; nothing inside the parentheses leaves no room for a line break."""
    return (value(), enclosed(arguments) if arguments else (word("("), word(")")))


def _chain(first: Doc, rest: list[tuple[str, Doc]]) -> Doc:
    """`a + b + c`, broken before the operators."""
    docs: list[Doc] = []
    for op, operand in rest:
        docs += [LINE, word(op), SPACE, operand]
    return Group((first, Indent(tuple(docs))))


def _case(node: Case) -> Doc:
    branches: list[Doc] = []
    for condition, result in node.branches:
        branches += [LINE, spaced("when", expr(condition), "then", expr(result))]
    if node.otherwise is not None:
        branches += [LINE, spaced("else", expr(node.otherwise))]
    return Group((word("case"), Indent(tuple(branches)), LINE, word("end")))
