"""The stable text form of a transform graph: what goldens contain and `explain --stage graph` prints."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.graph.notation import expression_text, name_of, names_of, operator_text, printable
from compiler.graph.transform import Transform, TransformGraph, references_of, source_of
from mpl.knowledge import Knowledge, Path
from mpl.literals import literal_text
from mpl.typed import Schema, Stream
from mpl.types import Value


def show(graph: TransformGraph, *, origins: bool = True) -> str:
    """Streams and tables, then every transform with its inputs, columns, key and kinds, then who shows what.

    `origins`: whether to say from which lines of MPL each transform came.
    """
    lines: list[str] = []
    for word, bases in (("stream", graph.program.streams), ("table", graph.program.tables)):
        for name, base in bases.items():
            defaults = dict(base.defaults) if isinstance(base, Stream) else {}
            columns = _columns(base.schema, None, defaults)
            lines.append(f"{word} {printable(name)} ({columns}) key {_key(base.schema)}")
    for transform in graph.nodes.values():
        lines += ["", *_transform(transform, graph.knowledge[transform.id], origins=origins)]
    lines.append("")
    for view, output in graph.outputs.items():
        made_by = "" if output.id == view else f" = {printable(output.id)}"
        shown = ", ".join(name_of(column) for column in output.schema.visible)
        lines.append(f"view {printable(view)}{made_by} ({shown}) key {_key(output.schema)}")
    for name, subscription in graph.subscriptions.items():
        lines.append(f"subscribe {printable(name)} to {printable(subscription.view)} emit {subscription.emit}")
    return "\n".join(lines).strip("\n") + "\n"


def _transform(transform: Transform, knowledge: Knowledge, *, origins: bool) -> list[str]:
    schema = transform.schema
    lines = [
        printable(transform.id),
        f"  {operator_text(transform.node)}",
        f"  from     {', '.join(printable(source) for source in transform.inputs)}",
        f"  columns  {_columns(schema, knowledge)}",
        f"  key      {_key(schema)}",
        f"  rows     {_rows(knowledge)}, final {knowledge.finality.words}",
    ]
    if transform.keeping is not None:
        lines += _keeping(transform)
    if origins:
        places = dict.fromkeys(printable(str(span)) for span in transform.origins)
        lines.append(f"  origin   {', '.join(places)}")
    return lines


def _keeping(transform: Transform) -> list[str]:
    keeping = transform.keeping
    assert keeping is not None
    lines: list[str] = []
    if keeping.vanished_for_good:
        lines.append("  drops    rows that vanished, for good")
    if keeping.rejected_for_good:
        lines.append("  quenches keys of rows that were rejected, for good")
    for scan, wanted in zip(references_of(transform.node), keeping.wanted, strict=True):
        if wanted is not None:
            condition = expression_text(wanted, scan.schema.columns)
            lines.append(f"  wants    only {condition} of {printable(source_of(scan))}")
    return lines


def _rows(knowledge: Knowledge) -> str:
    if knowledge.is_event:
        return "events"
    return "appear and stay" if knowledge.path.stays else _PATHS[knowledge.path]


_PATHS = {
    Path.FALLING: "vanish for good",
    Path.PULSE: "appear and vanish for good",
    Path.VERSIONED: "come and go",
}


def _columns(schema: Schema, knowledge: Knowledge | None, defaults: Mapping[int, Value] | None = None) -> str:
    shown = []
    for position, column in enumerate(schema.columns):
        words = [f"({name_of(column)})" if column.hidden else name_of(column), str(column.type)]
        if column.nullable:
            words.append("null")
        if defaults and position in defaults:
            words += ["default", printable(literal_text(defaults[position], column.type))]
        if knowledge is not None:
            words.append(knowledge.columns[position].kind.value)
        shown.append(" ".join(words))
    return ", ".join(shown)


def _key(schema: Schema) -> str:
    return names_of(schema.key, schema.columns) or "(one row)"
