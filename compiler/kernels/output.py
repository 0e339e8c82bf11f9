"""The output side of a star: from the state of a key to the row that is shown, as statements.

Goes down from the view to the parts (groups and unique rows, `Part`) and writes on the way back what joins, conditions
and computed columns do, in the order in which the operators would do it. A state column gets its place when somebody
first reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.expressions import may_fail
from compiler.graph import Transform, TransformGraph
from compiler.kernels.model import Cell, Feed, Part
from compiler.kernels.scalars import Block, Constants, NotFusable, is_float, is_text
from compiler.plan.layout import Layout
from compiler.plan.planner import PlannedPart
from mpl.typed import (
    AggregateNode,
    Apply,
    ColumnRef,
    Const,
    Expr,
    ExtendNode,
    JoinNode,
    MergeNode,
    ProjectNode,
    RelationTree,
    RenameNode,
    Schema,
    StreamScan,
    TableScan,
    ViewScan,
    WhereNode,
)
from runtime.kernels.spec import StateColumn
from runtime.plan import ColumnKind, ValueType


class Cells:
    """The columns of one relation inside the star, by position; those of parts are made when first asked for."""

    def __init__(self, known: Mapping[int, Cell]) -> None:
        self.known = dict(known)

    def __getitem__(self, position: int) -> Cell:
        return self.known[position]


class PartCells(Cells):
    def __init__(self, output: Output, part: Part, schema: Schema, layout: Layout, key: Mapping[int, Cell]) -> None:
        super().__init__(key)
        self.output, self.part, self.schema, self.layout = output, part, schema, layout

    def __getitem__(self, position: int) -> Cell:
        if position not in self.known:
            self.known[position] = self._allocated(position)
        return self.known[position]

    def _allocated(self, position: int) -> Cell:
        column, cell = self.schema.columns[position], self.layout.cells[position]
        if column.nullable:
            raise NotFusable(f"`{column.name}` may be null")
        numbers = []
        for number in cell.columns:
            kind = self.layout.relation.columns[number].type
            numbers.append(len(self.output.state))
            self.output.state.append(StateColumn(kind, 0.0 if kind is ValueType.FLOAT else 0))
        self.part.columns[position] = tuple(numbers)
        return Cell(cell.form, tuple(f"s{number}" for number in numbers))


class Columns(Mapping[int, str | None]):
    """What scalar code may say for the columns of one or two relations, the left's first."""

    def __init__(self, left: Cells, border: int = 0, right: Cells | None = None) -> None:
        self._left, self._border, self._right = left, border, right

    def __getitem__(self, position: int) -> str | None:
        if self._right is not None and position >= self._border:
            return self._right[position - self._border].text
        return self._left[position].text

    def __iter__(self) -> None:  # type: ignore[override]
        raise AssertionError("columns are only looked up")

    def __len__(self) -> int:
        return self._border


@dataclass(frozen=True)
class Inner:
    """One relation inside the star. `present`: has the key a row at all? `shown`: is it visible? Both expressions.

    `bare`: a part as it is, whose columns hold their first value until something arrives. `required`: parts without
    which there is no row.
    """

    cells: Cells
    present: str
    shown: str
    required: frozenset[int]
    bare: Part | None = None


class Output:
    """Writes the evaluation of one star."""

    def __init__(
        self,
        graph: TransformGraph,
        planned: Mapping[str, PlannedPart],
        bases: Mapping[str, Layout],
        constants: Constants,
    ) -> None:
        self.graph = graph
        self.planned = planned
        self.bases = bases
        self.constants = constants
        self.block = Block("v", constants)
        self.parts: list[Part] = []
        self.state: list[StateColumn] = []
        self.can_die = False
        self.final_locals: set[str] = set()

    def relation(self, id: str, key: tuple[int, ...]) -> Inner:
        """A relation of the star. `key`: positions of the star's key in its columns."""
        if id not in self.graph.nodes or id in self.graph.event_ids:
            return self._row(id, key)
        transform = self.graph.nodes[id]
        node = transform.node
        match node:
            case StreamScan() | TableScan() | ViewScan() | RenameNode():
                return self.relation(transform.inputs[0], key)
            case WhereNode():
                return self._where(transform, node, key)
            case ProjectNode():
                return self._project(transform, node, key)
            case ExtendNode():
                return self._extend(transform, node, key)
            case AggregateNode():
                return self._group(transform, node, key)
            case JoinNode():
                return self._join(transform, node, key)
            case _:
                raise NotFusable(f"`{id}` is neither a group nor a join by the same key")

    def _layout(self, id: str) -> Layout:
        if id not in self.planned or f"{id}.sums" in self.planned:
            raise NotFusable(f"`{id}` is computed in several steps")
        return self.planned[id].layout

    # Parts

    def _row(self, id: str, key: tuple[int, ...]) -> Inner:
        schema = self.graph.schema_of(id)
        if set(schema.key) != set(key):
            raise NotFusable(f"the rows of `{id}` are not identified by the key")
        return self._part(id, id, key, key, None)

    def _group(self, transform: Transform, node: AggregateNode, key: tuple[int, ...]) -> Inner:
        (source,) = transform.inputs
        if source in self.graph.nodes and source not in self.graph.event_ids:
            raise NotFusable(f"`{transform.id}` groups rows that are not events")
        if not node.group or set(key) != set(range(len(node.group))):
            raise NotFusable(f"`{transform.id}` is grouped by something else")
        return self._part(transform.id, source, key, tuple(node.group[position] for position in key), node)

    def _part(
        self, id: str, source: str, key: tuple[int, ...], source_key: tuple[int, ...], node: AggregateNode | None
    ) -> Inner:
        feeds = tuple(Feed(stream, chain, source_key) for stream, chain in self._ways(source))
        part = Part(len(self.parts), id, source, feeds, None if node is None else node.items)
        self.parts.append(part)
        schema = self.graph.schema_of(id)
        for position in key:
            column = schema.columns[position]
            if column.nullable or is_float(column.type):
                raise NotFusable(f"the key `{column.name}` may be null or is a float")
        keys = {position: Cell("plain", (f"q{number}",)) for number, position in enumerate(key)}
        cells = PartCells(self, part, schema, self._event_layout(id) if node is None else self._layout(id), keys)
        return Inner(cells, part.flag, part.flag, frozenset((part.number,)), part)

    def _event_layout(self, id: str) -> Layout:
        """Events have plain columns, whichever operators they passed; only types are taken from here."""
        source = id
        while source in self.graph.nodes and source not in self.planned:
            (source,) = self.graph.nodes[source].inputs
        return self.bases[source] if source in self.bases else self._layout(source)

    def _ways(self, id: str) -> list[tuple[str, tuple[RelationTree, ...]]]:
        """All ways from streams to an event relation, with the operators on them."""
        if id not in self.graph.nodes:
            return [(id, ())]
        transform = self.graph.nodes[id]
        if not isinstance(
            transform.node, (MergeNode, WhereNode, ExtendNode, ProjectNode, RenameNode, StreamScan, ViewScan)
        ):
            raise NotFusable(f"`{id}` is not made of events one by one")
        return [
            (stream, (*chain, transform.node)) for source in transform.inputs for stream, chain in self._ways(source)
        ]

    # Operators on state

    def _project(self, transform: Transform, node: ProjectNode, key: tuple[int, ...]) -> Inner:
        if node.drops_key:
            raise NotFusable(f"`{transform.id}` drops the key")
        inner = self.relation(transform.inputs[0], tuple(node.kept[position] for position in key))
        cells = _Moved(inner.cells, node.kept)
        return Inner(cells, inner.present, inner.shown, inner.required)

    def _where(self, transform: Transform, node: WhereNode, key: tuple[int, ...]) -> Inner:
        inner = self.relation(transform.inputs[0], key)
        dies = transform.keeping is not None and transform.keeping.rejected_for_good
        shown = self._shown_if(inner.shown, node.predicate, Columns(inner.cells), dies)
        return Inner(inner.cells, inner.present, shown, inner.required)

    def _shown_if(self, shown: str, condition: Expr | None, columns: Columns, dies: bool = False) -> str:
        """A local: was it shown, and does the condition hold? Rows that are not shown are not looked at."""
        if condition is None:
            return shown
        block, name = self.block, self.block.name()
        block.line(f"{name} = False")
        with block.when(shown):
            block.line(f"{name} = {block.value(condition, columns)}")
            if dies:
                self.can_die = True
                block.line(f"is_dead = not {name}")
        return name

    def _extend(self, transform: Transform, node: ExtendNode, key: tuple[int, ...]) -> Inner:
        width = len(node.input.schema.columns)
        if any(position >= width for position in key):
            raise NotFusable(f"`{transform.id}` computes a part of the key")
        inner = self.relation(transform.inputs[0], key)
        layout = self._layout(transform.id)
        made: dict[int, Cell] = {}
        for position, value in enumerate(node.values, start=width):
            cell = layout.cells[position]
            values: tuple[Expr, ...] = (value,)
            if cell.form == "difference":
                assert isinstance(value, Apply), "only differences are kept as pairs"
                values = value.arguments
            kinds = [layout.relation.columns[number].kind for number in cell.columns]
            names = tuple(
                self._computed(part, inner, kind is ColumnKind.FINAL) for part, kind in zip(values, kinds, strict=True)
            )
            made[position] = Cell(cell.form, names)
        return Inner(_Extended(inner.cells, width, made), inner.present, inner.shown, inner.required)

    def _computed(self, value: Expr, inner: Inner, is_final: bool) -> str:
        """A local with the value, if the row is shown; a final column also before that, like the operators do."""
        if value.nullable:
            raise NotFusable("a computed column that may be null")
        if is_final and may_fail(value) and inner.present != inner.shown:
            raise NotFusable("a computed column that rows that are not shown may not have")
        columns = Columns(inner.cells)
        if isinstance(value, ColumnRef):
            cell = inner.cells[value.index]
            if cell.form == "plain":
                return cell.locals[0]
        block, name = self.block, self.block.name()
        block.line(f"{name} = {self.constants.value(0.0) if is_float(value.type) else 0}")
        with block.when(inner.present if is_final else inner.shown):
            block.line(f"{name} = {block.value(value, columns)}")
        if is_final:
            self.final_locals.add(name)
        return name

    # Joins

    def _join(self, transform: Transform, node: JoinNode, key: tuple[int, ...]) -> Inner:
        if node.side == "full":
            raise NotFusable("a full join")
        border = len(node.left.schema.columns)
        left_of = {right: left for left, right in node.equal}
        right_of = dict(node.equal)
        left_key = tuple(p if p < border else left_of.get(node.right_kept[p - border], -1) for p in key)
        if set(left_key) != set(right_of) or len(node.equal) != len(key):
            raise NotFusable(f"`{transform.id}` joins by something else than the key")
        left_id, right_id = transform.inputs
        left = self.relation(left_id, left_key)
        right = self.relation(right_id, tuple(right_of[position] for position in left_key))
        columns = Columns(left.cells, border, right.cells)
        if node.side == "inner":
            both = self.block.name()
            self.block.line(f"{both} = {left.shown} and {right.shown}")
            shown = self._shown_if(both, node.rest, columns)
            cells: Cells = _Joined(left.cells, border, _Moved(right.cells, node.right_kept))
            return Inner(cells, f"{left.present} and {right.present}", shown, left.required | right.required)
        matched = right.shown
        if node.rest is not None:
            both = self.block.name()
            self.block.line(f"{both} = {left.shown} and {right.shown}")
            matched = self._shown_if(both, node.rest, columns)
        bare = right.bare if node.rest is None else None
        filled = _Filled(
            {
                number: self._filled(right, other, default, matched, bare)
                for number, (other, default) in enumerate(zip(node.right_kept, node.defaults, strict=True))
                if default.value is not None
            }
        )
        return Inner(_Joined(left.cells, border, filled), left.present, left.shown, left.required)

    def _filled(self, right: Inner, position: int, default: Const, matched: str, bare: Part | None) -> Cell:
        """A right column, or its default. A part that holds the default until something arrives needs no choice."""
        cell = right.cells[position]
        assert cell.form == "plain", "an outer join fills in single columns"
        (local,) = cell.locals
        assert default.value is not None
        if bare is not None and local.startswith("s") and not is_text(default.type):
            number = int(local[1:])
            column = self.state[number]
            initial = float(default.value) if column.type is ValueType.FLOAT else int(default.value)
            if initial == column.initial:
                return cell
        name = self.block.name()
        self.block.line(f"{name} = {self.constants.value(default.value)}")
        self.block.line(f"if {matched}:")
        self.block.line(f"    {name} = {local}")
        return Cell("plain", (name,))


class _Moved(Cells):
    """Other positions of the same columns."""

    def __init__(self, cells: Cells, kept: tuple[int, ...]) -> None:
        super().__init__({})
        self._cells, self._kept = cells, kept

    def __getitem__(self, position: int) -> Cell:
        return self._cells[self._kept[position]]


class _Filled(Cells):
    """Right columns of an outer join; those that are filled with nulls may be there but cannot be read."""

    def __getitem__(self, position: int) -> Cell:
        if position not in self.known:
            raise NotFusable("an outer join that fills in nulls")
        return self.known[position]


class _Extended(Cells):
    def __init__(self, cells: Cells, width: int, added: Mapping[int, Cell]) -> None:
        super().__init__(added)
        self._cells, self._width = cells, width

    def __getitem__(self, position: int) -> Cell:
        return self._cells[position] if position < self._width else self.known[position]


class _Joined(Cells):
    def __init__(self, left: Cells, border: int, right: Cells) -> None:
        super().__init__({})
        self._left, self._border, self._right = left, border, right

    def __getitem__(self, position: int) -> Cell:
        return self._left[position] if position < self._border else self._right[position - self._border]
