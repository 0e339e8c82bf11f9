"""A graph in the making: what `build.py` and the passes add transforms to.

The only mutable thing about graphs. It hands out references and free ids, and when it is finished it drops what nobody
reads, so that no pass leaves rubbish for the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from compiler.graph.transform import (
    Output,
    Scan,
    Transform,
    TransformGraph,
    base_schema,
    references_of,
    with_inputs,
)
from mpl.source import Span
from mpl.typed import ProjectNode, RelationTree, Schema, StreamScan, TableScan, TypedProgram, ViewScan


class Draft:
    """`before` is the graph that is being replaced: its ids keep their meaning, so new ones must differ."""

    def __init__(self, program: TypedProgram, before: TransformGraph | None = None) -> None:
        self.program = program
        self.nodes: dict[str, Transform] = {}
        self.outputs: dict[str, Output] = dict(before.outputs) if before else {}
        self._before = before.nodes if before else {}
        self._output_ids = before.output_ids if before else frozenset()
        self._numbers: dict[str, int] = {}

    def schema_of(self, id: str) -> Schema:
        return self.nodes[id].schema if id in self.nodes else base_schema(self.program, id)

    def reference(self, id: str, span: Span) -> Scan:
        schema = self.schema_of(id)
        if id in self.nodes:
            return ViewScan(id, schema=schema, span=span)
        if id in self.program.streams:
            return StreamScan(id, schema=schema, span=span)
        return TableScan(id, schema=schema, span=span)

    def add(self, transform: Transform) -> str:
        assert transform.id not in self.nodes, f"two transforms called {transform.id}"
        self.nodes[transform.id] = transform
        return transform.id

    def is_taken(self, id: str) -> bool:
        program = self.program
        return (
            id in self.nodes
            or id in self._before
            or id in program.streams
            or id in program.tables
            or id in program.views
        )

    def fresh_id(self, view: str, word: str) -> str:
        stem = f"{view}.{word}_"
        number = self._numbers.get(stem, 1)
        while self.is_taken(f"{stem}{number}"):
            number += 1
        self._numbers[stem] = number + 1
        return f"{stem}{number}"

    def add_new(self, view: str, word: str, node: RelationTree, origins: tuple[Span, ...]) -> str:
        return self.add(Transform(self.fresh_id(view, word), view, node, origins))

    def rewire(self, transform: Transform, inputs: Iterable[str]) -> RelationTree:
        """The transform's operator reading `inputs` instead, position for position."""
        scans = zip(references_of(transform.node), inputs, strict=True)
        return with_inputs(transform.node, tuple(self.reference(source, scan.span) for scan, source in scans))

    def bypass(self, transform: Transform, source: str) -> str:
        """Where readers of a transform that changes nothing shall read: `source`, or a copy that a view needs.

        A view of a stream's events keeps them itself, and a view may have declared another key, by which its readers
        break ties.
        """
        known = self.schema_of(source)
        if known.key == transform.schema.key and (transform.id not in self._output_ids or source in self.nodes):
            return source
        node: RelationTree = self.reference(source, transform.node.span)
        if known.key != transform.schema.key:
            everything = tuple(range(len(known.columns)))
            node = ProjectNode(node, everything, drops_key=False, schema=transform.schema, span=transform.node.span)
        return self.add(replace(transform, node=node))

    def redirect_outputs(self, moved: Mapping[str, str]) -> None:
        """Views whose transform was replaced by another one with the same columns now show that one."""
        for view, output in self.outputs.items():
            if output.id in moved:
                self.outputs[view] = replace(output, id=moved[output.id])

    def finish(self) -> TransformGraph:
        """The graph, without what nobody reads; the transform that makes a view is called after it."""
        live = self._live()
        names = self._view_names(live)
        nodes: dict[str, Transform] = {}
        for transform in self.nodes.values():
            if transform.id not in live:
                continue
            scans = tuple(
                replace(scan, view=names[scan.view]) if isinstance(scan, ViewScan) and scan.view in names else scan
                for scan in references_of(transform.node)
            )
            if scans != references_of(transform.node):
                transform = replace(transform, node=with_inputs(transform.node, scans))
            name = names.get(transform.id, transform.id)
            nodes[name] = replace(transform, id=name) if name != transform.id else transform
        outputs = {view: replace(output, id=names.get(output.id, output.id)) for view, output in self.outputs.items()}
        return TransformGraph(self.program, nodes, outputs)

    def _live(self) -> set[str]:
        live: set[str] = set()
        waiting = [output.id for output in self.outputs.values()]
        while waiting:
            name = waiting.pop()
            if name in self.nodes and name not in live:
                live.add(name)
                waiting.extend(self.nodes[name].inputs)
        return live

    def _view_names(self, live: set[str]) -> dict[str, str]:
        """New names for transforms that make a view and are called otherwise, where the view's name is free."""
        names: dict[str, str] = {}
        for view, output in self.outputs.items():
            made_elsewhere = output.id in self.program.views or output.id not in self.nodes
            if not made_elsewhere and view not in live and output.id not in names:
                names[output.id] = view
        return names
