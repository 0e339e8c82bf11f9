"""What planning one transform always needs: its inputs, its generated functions, and the layout of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.codegen.module import Function, Module
from compiler.graph import Transform, operator_word
from compiler.plan.functions import Functions, Side
from compiler.plan.layout import Layout, Shape, lay_out, passed_on
from mpl.knowledge import Knowledge
from mpl.typed import Schema
from mpl.types import Type
from runtime.plan import OperatorSpec, Relation


@dataclass(frozen=True)
class Input:
    """A relation that a transform reads: the component that has it, and what its columns mean."""

    component: str
    side: Side

    @property
    def layout(self) -> Layout:
        return self.side.layout


@dataclass(frozen=True)
class PlannedPart:
    """One component of a transform. `inputs` are names of components."""

    name: str
    operator: OperatorSpec
    inputs: tuple[str, ...]
    layout: Layout
    module: Module


@dataclass(frozen=True)
class Planned:
    """`parts` in order, the last one being the relation itself; none at all if it is another relation renamed."""

    parts: tuple[PlannedPart, ...]
    side: Side
    component: str


class Planner:
    """Plans one transform; `operators.py` and `joins.py` say how for each kind of node."""

    def __init__(
        self,
        transform: Transform,
        knowledge: Knowledge,
        inputs: Sequence[Input],
        must_be_plain: frozenset[int],
        python: Mapping[tuple[str, str], Function],
    ) -> None:
        self.transform = transform
        self.knowledge = knowledge
        self.inputs = inputs
        self.must_be_plain = must_be_plain
        origin = str(transform.origins[0])
        self.module = Module(transform.id, operator_word(transform.node), origin)
        self.functions = Functions(self.module, [source.side for source in inputs], python)

    @property
    def schema(self) -> Schema:
        return self.transform.schema

    # What all have in common

    def done(self, spec: OperatorSpec, layout: Layout, averages: Mapping[int, Type] | None = None) -> Planned:
        part = PlannedPart(
            self.transform.id, spec, tuple(source.component for source in self.inputs), layout, self.module
        )
        # Most operators only append columns, so those of the first input that are averages stay where they were.
        kept = self.inputs[0].side.averages if averages is None else averages
        return Planned((part,), Side(layout, self.schema, kept), self.transform.id)

    def renamed(self) -> Planned:
        (source,) = self.inputs
        layout = replace(source.layout, relation=self._relation(source.layout))
        return Planned((), Side(layout, self.schema, source.side.averages), source.component)

    def _relation(self, layout: Layout) -> Relation:
        """The same physical columns under this transform's names."""
        return self._same_columns_of(layout).relation

    def same_columns(self, *, versioned: bool = False) -> Layout:
        """The first input's columns, in its physical order."""
        return self._same_columns_of(self.inputs[0].layout, versioned=versioned)

    def _same_columns_of(self, layout: Layout, *, versioned: bool = False) -> Layout:
        columns = range(len(self.schema.columns))
        shapes = passed_on(self.schema, self.knowledge, [(layout, position) for position in columns])
        return self.like(layout, shapes, versioned=versioned)

    def like(self, layout: Layout, shapes: Sequence[Shape], *, versioned: bool = False) -> Layout:
        """Columns in the physical order of `layout`, further ones after them; a tick without a name stays in front."""
        known = sorted(range(len(layout.cells)), key=lambda position: layout.cells[position].columns)
        order = (*known, *range(len(layout.cells), len(shapes)))
        return self.lay_out(shapes, order, layout.relation.key_width, front=layout.front, versioned=versioned)

    def lay_out(
        self,
        shapes: Sequence[Shape],
        order: Sequence[int],
        key_width: int,
        *,
        front: int = 0,
        is_event: bool | None = None,
        versioned: bool = False,
    ) -> Layout:
        """The layout of this relation. `versioned`: the operator says so, whatever the analysis proves of the rows.

        What reads versioned rows is versioned too, even where the analysis did not see that they are.
        """
        sources = [source.layout.relation for source in self.inputs]
        replaced = versioned or any(relation.versioned for relation in sources)
        if is_event is None:
            is_event = self.knowledge.is_event and all(relation.is_event for relation in sources)
        return lay_out(
            self.transform.id,
            self.schema,
            self.knowledge,
            shapes,
            order,
            key_width,
            front=front,
            is_event=is_event,
            versioned=replaced,
        )
