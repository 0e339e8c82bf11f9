"""Pipelines and their steps as layout."""

from __future__ import annotations

from mpl.formatter.expressions import call, column, columns, enclosed, expr, listed, name, names, spaced, value, word
from mpl.formatter.layout import LINE, SPACE, Doc, Group, Indent
from mpl.nodes import (
    Aggregate,
    AggregateCall,
    AsofJoin,
    Definition,
    Distinct,
    Extend,
    Join,
    JoinCondition,
    LatestFirst,
    Matching,
    Minus,
    On,
    Operator,
    OrderItem,
    Project,
    Relation,
    Rename,
    SourceRef,
    Top,
    Union,
    Using,
    Where,
    Window,
)


def relation(node: Relation) -> Doc:
    """`from X |> ...`; its line breaks, before every `|>`, belong to the group around it."""
    steps: list[Doc] = []
    for operator in node.operators:
        steps += [LINE, word("|>"), SPACE, Group(step(operator))]
    sources = listed([source(item) for item in node.sources])
    return (word("merge" if node.is_merge else "from"), SPACE, Group(Indent(sources)), *steps)


def source(node: SourceRef) -> Doc:
    inner = enclosed(relation(node.relation)) if isinstance(node.relation, Relation) else value()
    return spaced(inner, "as", value()) if node.alias else inner


def definition(node: Definition) -> Doc:
    return spaced(value(), ":=", Indent(expr(node.value)))


def _hanging(head: str, items: Doc) -> Doc:
    """A step's words and its list, which goes to lines of its own when it is too long."""
    return (spaced(head), Group(Indent((LINE, items), 4)))


def step(node: Operator) -> Doc:
    match node:
        case Where(predicate=predicate):
            return spaced("where", expr(predicate))
        case Project(columns=chosen, all_but=all_but):
            return _hanging("project all but" if all_but else "project", columns(chosen))
        case Extend(definitions=definitions):
            return _hanging("extend", listed([definition(item) for item in definitions]))
        case Rename(pairs=pairs):
            return _hanging("rename", listed([spaced(column(old), "as", name(new)) for old, new in pairs]))
        case Window():
            return spaced("window", _window(node))
        case Aggregate():
            return _aggregate(node)
        case Join(side=side, source=inner, condition=join_condition, defaults=defaults):
            head = spaced("join" if side == "inner" else f"{side} join", source(inner))
            given: Doc = listed([definition(item) for item in defaults])
            tail: tuple[Doc, ...] = (Group(Indent((LINE, word("default"), SPACE, given))),) if defaults else ()
            return (head, _joined(join_condition), *tail)
        case AsofJoin(left=left, source=inner, condition=join_condition):
            head = spaced("asof left join" if left else "asof join", source(inner))
            return (head, _joined(join_condition))
        case Matching(negated=negated, source=inner, condition=join_condition):
            head = spaced("not matching" if negated else "matching", source(inner))
            return (head, _joined(join_condition))
        case Top():
            return _top(node)
        case LatestFirst(which=which, per=per, by=by):
            head = spaced(which, "per", columns(per))
            return spaced(head, "by", column(by)) if by else head
        case Distinct():
            return word("distinct")
        case Union(source=inner):
            return spaced("union", source(inner))
        case Minus(source=inner):
            return spaced("minus", source(inner))


def _joined(node: JoinCondition) -> Doc:
    """A join's condition, on the line where its source ends if there is room."""
    return Group(Indent((LINE, condition(node))))


def condition(node: JoinCondition) -> Doc:
    match node:
        case Using(columns=shared):
            return spaced("using", names(shared))
        case On(predicate=predicate):
            return spaced("on", expr(predicate))


def _window(node: Window) -> Doc:
    head: Doc = (column(node.column), word(","), SPACE)
    match node.shape:
        case "tumble":
            body: Doc = (head, value())
        case "hop":
            body = (head, spaced(value(), "every", value()))
        case "session":
            gap = spaced("gap", value())
            body = (head, spaced(gap, "per", columns(node.per)) if node.per else gap)
    return (word(node.shape), enclosed(body))


def _aggregate(node: Aggregate) -> Doc:
    definitions = listed([spaced(value(), ":=", _aggregate_call(item.value)) for item in node.definitions])
    head = _hanging("aggregate", definitions)
    if node.group_by is None:
        return head
    return (head, Indent((LINE, spaced("group by", Group(Indent(columns(node.group_by)))))))


def _aggregate_call(node: AggregateCall) -> Doc:
    argument: Doc = expr(node.argument) if node.argument is not None else ()
    function = call(spaced("distinct", argument) if node.distinct else argument)
    return spaced(function, "where", expr(node.where)) if node.where is not None else function


def _top(node: Top) -> Doc:
    parts: list[Doc] = [spaced("top", value())]
    if node.per:
        parts += [LINE, spaced("per", columns(node.per))]
    parts += [LINE, spaced("by", listed([_order_item(item) for item in node.ordering]))]
    if node.rank is not None:
        parts += [LINE, spaced("with rank", value())]
    if node.ties:
        parts += [LINE, spaced("with ties")]
    return Indent(tuple(parts))


def _order_item(node: OrderItem) -> Doc:
    """`asc` is what happens anyway and is left out."""
    return spaced(expr(node.value), "desc") if node.descending else expr(node.value)
