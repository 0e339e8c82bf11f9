"""Which runtime operator computes a transform, with which parameters, over which physical columns.

One method per kind of node. Each takes the inputs' layouts and gives the parts that make up the transform: usually one,
several where rows have to be brought into shape first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from compiler.expressions import column_ref, columns_in, may_fail
from compiler.plan.aggregates import is_ordered, plan_aggregates
from compiler.plan.functions import Functions, Side
from compiler.plan.joins import plan_asof, plan_join, plan_match
from compiler.plan.layout import Layout, Shape, passed_on, plain_shape, unit_of, value_type, with_nulls
from compiler.plan.orders import are_final, by_key, by_tick, is_key_order
from compiler.plan.planner import Planned, PlannedPart, Planner
from mpl.knowledge import Kind, Path
from mpl.relations.keys import closure
from mpl.typed import (
    AggregateNode,
    Apply,
    AsofNode,
    ColumnRef,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RenameNode,
    StreamScan,
    TableScan,
    TopNode,
    UnionNode,
    ViewScan,
    WhereNode,
    WindowNode,
)
from runtime.operators.best import BestSpec
from runtime.operators.distinct import DistinctSpec
from runtime.operators.extend import ExtendSpec
from runtime.operators.group_by import GroupBySpec
from runtime.operators.latest import LatestSpec
from runtime.operators.merge import MergeSpec
from runtime.operators.ordering import Order
from runtime.operators.project import ProjectSpec
from runtime.operators.select import SelectSpec
from runtime.operators.top import TopSpec
from runtime.operators.union import UnionSpec
from runtime.plan import Column, ColumnKind, ValueType


class OperatorPlanner(Planner):
    """One method per kind of node."""

    def plan(self) -> Planned:
        return self._keyed(self._operator())

    def _operator(self) -> Planned:
        node = self.transform.node
        match node:
            case StreamScan() | TableScan() | ViewScan() | RenameNode():
                return self.renamed()
            case MergeNode():
                return self.done(MergeSpec(), self.same_columns())
            case WhereNode():
                return self._where(node)
            case ProjectNode():
                return self._project(node.kept, is_set=node.drops_key)
            case ExtendNode():
                return self._extend(node)
            case AggregateNode():
                return self._aggregate(node)
            case JoinNode():
                return plan_join(self, node)
            case MatchingNode():
                condition = self.functions.condition(node.rest) if node.rest is not None else None
                return plan_match(self, node.equal, negated=node.negated, condition=condition)
            case MinusNode():
                pairs = tuple(zip(node.left_compared, node.right_order, strict=True))
                return plan_match(self, pairs, negated=True, null_matches=True)
            case TopNode():
                return self._top(node)
            case LatestNode():
                return self._latest(node)
            case DistinctNode():
                # With its key among them, the columns of a row are a set already.
                return self._project(node.kept, is_set=not set(node.input.schema.key) <= set(node.kept))
            case UnionNode():
                return self._union(node)
            case AsofNode():
                return plan_asof(self, node)
            case WindowNode():
                raise AssertionError("refused before planning")
            case _:
                assert_never(node)

    def _keyed(self, planned: Planned) -> Planned:
        """A view may declare a key by which other rows take the place of a row; then it is told apart by that key."""
        old = planned.side.layout
        width = old.relation.key_width
        positions = range(len(old.cells))
        in_key = {position for position in positions if old.cells[position].columns[0] < width}
        same = in_key.issuperset(self.schema.key) and closure(self.schema.key, self.schema.determined) >= in_key
        if same or old.relation.is_event or self.knowledge.path is not Path.VERSIONED:
            return planned
        parts, component = planned.parts, planned.component
        if parts:
            # Here they are still told apart by the operator's key, and what is said of columns is not true yet.
            component = f"{self.transform.id}.rows"
            columns = (
                column if number < width else replace(column, kind=ColumnKind.VERSIONED, contribution_max=None)
                for number, column in enumerate(old.relation.columns)
            )
            relation = replace(old.relation, name=component, columns=tuple(columns), shown=())
            parts = (*parts[:-1], replace(parts[-1], name=component, layout=replace(old, relation=relation)))
        order = (*self.schema.key, *(position for position in positions if position not in self.schema.key))
        shapes = passed_on(self.schema, self.knowledge, [(old, position) for position in positions])
        layout = self.lay_out(shapes, order, len(self.schema.key), versioned=True)
        ranking = tuple(Order(number) for number in range(width))
        spec = BestSpec(old.flat(order), ranking)
        last = PlannedPart(self.transform.id, spec, (component,), layout, self.module)
        return Planned((*parts, last), Side(layout, self.schema, planned.side.averages), self.transform.id)

    # Operators on one row

    def _where(self, node: WhereNode) -> Planned:
        name = self.functions.condition(node.predicate)
        only_falls = self.transform.keeping is not None and self.transform.keeping.rejected_for_good
        return self.done(SelectSpec(self.functions.load()[name], only_falls), self.same_columns())

    def _project(self, kept: Sequence[int], *, is_set: bool) -> Planned:
        source = self.inputs[0].layout
        key = set(range(source.relation.key_width))
        kept_numbers = set(source.flat(kept)) | set(range(source.front))
        if is_set or not key <= kept_numbers:
            return self._set_of(kept)
        where = {old: new for new, old in enumerate(kept)}
        shapes = passed_on(self.schema, self.knowledge, [(source, old) for old in kept])
        old_order = sorted(kept, key=lambda position: source.cells[position].columns)
        in_key = [position for position in old_order if source.cells[position].columns[0] in key]
        others = [position for position in kept if position not in in_key]
        order = [where[position] for position in (*in_key, *others)]
        layout = self.lay_out(shapes, order, source.relation.key_width, front=source.front)
        numbers = (*range(source.front), *source.flat((*in_key, *others)))
        averages = {where[old]: type_ for old, type_ in self.inputs[0].side.averages.items() if old in where}
        return self.done(ProjectSpec(numbers), layout, averages)

    def _extend(self, node: ExtendNode) -> Planned:
        source = self.inputs[0].layout
        width = len(source.cells)
        shapes = passed_on(self.schema, self.knowledge, [(source, position) for position in range(width)])
        names: list[str] = []
        for position, value in enumerate(node.values, start=width):
            pair = self._pair(position, value)
            if pair is None:
                names.append(self.functions.value(value))
                shape = plain_shape(self.schema.columns[position], self.knowledge, position)
                shapes.append(with_nulls(shape) if self._may_lack(value) else shape)
            else:
                names += [self.functions.value(part) for part in pair]
                shapes.append(self._pair_shape(position, pair))
        functions = self.functions.load()
        spec = ExtendSpec(tuple(functions[name] for name in names))
        return self.done(spec, self.like(source, shapes))

    def _may_lack(self, value: Expr) -> bool:
        """May a row that is not visible have no value? Somebody may use it as a key."""
        source = self.inputs[0].layout
        lacks = any(source.relation.columns[number].nullable for number in source.flat(columns_in(value)))
        return not source.relation.is_event and (lacks or may_fail(value))

    def _pair(self, position: int, value: Expr) -> tuple[Expr, Expr] | None:
        """`a - b` of rising numbers is kept as (a, b), unless somebody needs the difference itself."""
        column = self.knowledge.columns[position]
        if position in self.must_be_plain or column.kind is not Kind.PN or column.parts is None:
            return None
        match value:
            case Apply(function="subtract", arguments=(left, right)):
                alike = left.type == value.type and right.type == value.type
                whole = all(part.non_negative for part in column.parts)
                return (left, right) if alike and whole and not value.nullable else None
            case _:
                return None

    def _pair_shape(self, position: int, pair: tuple[Expr, Expr]) -> Shape:
        knowledge = self.knowledge.columns[position].parts
        assert knowledge is not None
        name = self.schema.columns[position].name
        columns = [
            Column(
                f"{name}{sign}",
                ValueType.INT,
                ColumnKind.UP if part.rises else ColumnKind.FINAL,
                contribution_max=self._contribution(value),
                unit=unit_of(self.schema.columns[position].type),
            )
            for sign, part, value in zip("+-", knowledge, pair, strict=True)
        ]
        return Shape("difference", tuple(columns))

    def _contribution(self, value: Expr) -> int | None:
        """The most that one tick can add, for a part that is a column as it is."""
        source = self.inputs[0].layout
        if isinstance(value, ColumnRef) and source.cells[value.index].form == "plain":
            return source.relation.columns[source.plain(value.index)].contribution_max
        return None

    # Groups

    def _aggregate(self, node: AggregateNode) -> Planned:
        source = self.inputs[0]
        ranking = tuple(part.column for part in by_tick(source.layout, node.input.schema)) if is_ordered(node) else ()
        planned = plan_aggregates(node, self.schema, self.knowledge, self.functions, self.must_be_plain, ranking)
        functions = self.functions.load()
        group_shapes = passed_on(self.schema, self.knowledge, [(source.layout, position) for position in node.group])
        layout = self.lay_out(
            [*group_shapes, *(aggregate.shape for aggregate in planned)],
            range(len(self.schema.columns)),
            len(node.group),
            # The runtime's groups stay, or count their members; those of rows that only vanish go for good.
            versioned=not self.knowledge.path.stays or not are_final(source.layout, ranking),
        )
        by = tuple(source.layout.plain(position) for position in node.group)
        spec = GroupBySpec(by, tuple(one.make(functions) for one in planned), one_row=not node.group)
        averages = {
            len(node.group) + position: one.sum_type for position, one in enumerate(planned) if one.sum_type is not None
        }
        done = self.done(spec, layout, averages)
        return self._with_plain_averages(done) if self.must_be_plain & averages.keys() else done

    def _with_plain_averages(self, done: Planned) -> Planned:
        """Somebody needs averages as values, so they are computed as columns and take the place of their pairs."""
        sums, computed = f"{self.transform.id}.sums", f"{self.transform.id}.values"
        (part,) = done.parts
        functions = Functions(self.module, [done.side], {})
        columns = self.schema.columns
        needed = sorted(self.must_be_plain & done.side.averages.keys())
        names = [
            functions.value(column_ref(position, columns[position], self.transform.origins[0])) for position in needed
        ]
        added = [plain_shape(columns[position], self.knowledge, position) for position in needed]
        old = done.side.layout
        wide = replace(
            old.relation,
            name=computed,
            columns=(*old.relation.columns, *(shape.parts[0] for shape in added)),
            shown=(),
        )
        loaded = functions.load()
        place = {position: old.relation.width + number for number, position in enumerate(needed)}
        shapes = [
            plain_shape(columns[position], self.knowledge, position)
            if position in place
            else Shape(cell.form, tuple(old.relation.columns[number] for number in cell.columns))
            for position, cell in enumerate(old.cells)
        ]
        layout = self.lay_out(shapes, range(len(shapes)), old.relation.key_width, versioned=old.relation.versioned)
        numbers = [
            number
            for position, cell in enumerate(old.cells)
            for number in ((place[position],) if position in place else cell.columns)
        ]
        parts = (
            replace(part, name=sums, layout=replace(old, relation=replace(old.relation, name=sums))),
            PlannedPart(
                computed,
                ExtendSpec(tuple(loaded[name] for name in names)),
                (sums,),
                replace(old, relation=wide),
                part.module,
            ),
            PlannedPart(self.transform.id, ProjectSpec(tuple(numbers)), (computed,), layout, part.module),
        )
        left = {position: type_ for position, type_ in done.side.averages.items() if position not in place}
        return Planned(parts, Side(layout, self.schema, left), self.transform.id)

    def _top(self, node: TopNode) -> Planned:
        source = self.inputs[0].layout
        width = len(source.cells)
        shapes = passed_on(self.schema, self.knowledge, [(source, position) for position in range(width)])
        if node.rank:
            shapes.append(plain_shape(self.schema.columns[width], self.knowledge, width))
        layout = self.like(source, shapes)
        order, computed = self._order(node)
        if not node.ties and not is_key_order(source, node.input.schema):
            order = (*order, *by_key(source, node.input.schema))
        group = tuple(source.plain(position) for position in node.per)
        spec = TopSpec(node.count, order, group, node.rank, node.ties)
        return self._top_by_computed(spec, layout, computed) if computed else self.done(spec, layout)

    def _order(self, node: TopNode) -> tuple[tuple[Order, ...], list[Expr]]:
        """The order by physical columns; values that no column holds are appended to the row in this order."""
        source = self.inputs[0].layout
        computed: list[Expr] = []
        order: list[Order] = []
        for item in node.ordering:
            value = item.value
            if isinstance(value, ColumnRef) and source.cells[value.index].form == "plain":
                order.append(Order(source.plain(value.index), item.descending))
            else:
                order.append(Order(source.relation.width + len(computed), item.descending))
                computed.append(value)
        return tuple(order), computed

    def _top_by_computed(self, spec: TopSpec, layout: Layout, computed: list[Expr]) -> Planned:
        """Compute what to order by, take the best, and drop it again."""
        source = self.inputs[0]
        wide, best = f"{self.transform.id}.ordered", f"{self.transform.id}.best"
        names = [self.functions.value(value) for value in computed]
        loaded = self.functions.load()
        old = source.layout.relation
        # Nothing is proved about a computed order, and nobody is shown it.
        added = tuple(
            Column(f"order {number}", value_type(value.type), ColumnKind.VERSIONED, value.nullable)
            for number, value in enumerate(computed)
        )
        ordered = replace(old, name=wide, columns=(*old.columns, *added), shown=())
        if old.is_event:
            ordered = replace(ordered, columns=(*old.columns, *(replace(c, kind=ColumnKind.FINAL) for c in added)))
        rank = layout.relation.columns[old.width :]
        taken = replace(layout.relation, name=best, columns=(*ordered.columns, *rank), shown=())
        kept = (*range(old.width), *range(ordered.width, ordered.width + len(rank)))
        parts = (
            PlannedPart(
                wide,
                ExtendSpec(tuple(loaded[name] for name in names)),
                (source.component,),
                replace(source.layout, relation=ordered),
                self.module,
            ),
            PlannedPart(best, spec, (wide,), replace(layout, relation=taken), self.module),
            PlannedPart(self.transform.id, ProjectSpec(kept), (best,), layout, self.module),
        )
        return Planned(parts, Side(layout, self.schema, source.side.averages), self.transform.id)

    def _latest(self, node: LatestNode) -> Planned:
        source = self.inputs[0].layout
        others = [position for position in range(len(source.cells)) if position not in node.per]
        order = (*node.per, *others)
        shapes = passed_on(self.schema, self.knowledge, [(source, p) for p in range(len(source.cells))])
        if source.relation.is_event and not source.front:  # the tick of a table's row orders nothing
            layout = self.lay_out(shapes, order, len(node.per))
            by = source.plain(node.by) if node.by is not None else 0
            return self.done(LatestSpec(source.flat(order), by, node.which == "first"), layout)
        descending = node.which == "latest"
        ranking = by_tick(source, node.input.schema, descending=descending)
        if node.by is not None:
            ranking = (Order(source.plain(node.by), descending), *ranking)
        is_steady = are_final(source, [part.column for part in ranking])
        layout = self.lay_out(shapes, order, len(node.per), versioned=not is_steady)
        return self.done(BestSpec(source.flat(order), ranking), layout)

    # Sets

    def _set_of(self, kept: Sequence[int]) -> Planned:
        source = self.inputs[0].layout
        return self.done(DistinctSpec(source.flat(kept)), self._all_key([(source, old) for old in kept]), {})

    def _all_key(self, kept: Sequence[tuple[Layout, int]], others: Sequence[tuple[Layout, int]] = ()) -> Layout:
        """A set of the columns `kept`; `others` are what takes their places in rows of another input."""
        shapes = passed_on(self.schema, self.knowledge, kept)
        width = len(self.schema.columns)
        # The runtime's sets grow only, or count what supports each row; the analysis knows more shades.
        are_fixed = all(are_final(layout, layout.flat((old,))) for layout, old in (*kept, *others))
        grows = self.knowledge.path.stays and are_fixed
        return self.lay_out(shapes, range(width), width, is_event=False, versioned=not grows)

    def _union(self, node: UnionNode) -> Planned:
        parts: list[PlannedPart] = []
        left, right = (
            [(source.layout, old) for old in kept]
            for source, kept in zip(self.inputs, (node.left_kept, node.right_order), strict=True)
        )
        for source, kept, word in zip(self.inputs, (left, right), ("left", "right"), strict=True):
            layout = self._all_key(kept)
            name = f"{self.transform.id}.{word}"
            layout = replace(layout, relation=replace(layout.relation, name=name))
            spec = DistinctSpec(source.layout.flat(old for _, old in kept))
            parts.append(PlannedPart(name, spec, (source.component,), layout, self.module))
        layout = self._all_key(left, right)
        names = tuple(part.name for part in parts)
        parts.append(PlannedPart(self.transform.id, UnionSpec(), names, layout, self.module))
        return Planned(tuple(parts), Side(layout, self.schema, {}), self.transform.id)
