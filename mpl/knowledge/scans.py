"""Where knowledge begins: streams, tables, views already analysed, and merges of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mpl import typed
from mpl.knowledge.closing import Closing, passing
from mpl.knowledge.finality import Finality, FinalWhen
from mpl.knowledge.kind import ColumnKnowledge, Nulls, final
from mpl.knowledge.knowledge import Knowledge, Visibility, relation_knowledge
from mpl.knowledge.path import Path
from mpl.knowledge.state import NO_STATE, bound_per_value, listed

_DURATIONS = (
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "min"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
)


def duration_text(microseconds: int) -> str:
    """A duration as users write it: `4 s`, `90 min`."""
    size, unit = next((size, unit) for size, unit in _DURATIONS if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


def _base_columns(schema: typed.Schema, reason: str) -> tuple[ColumnKnowledge, ...]:
    return tuple(final(reason, Nulls.FIXED if column.nullable else Nulls.NEVER) for column in schema.columns)


def stream_knowledge(stream: typed.Stream) -> Knowledge:
    schema = stream.schema
    names = [column.name for column in schema.columns]
    closings: list[Closing] = []
    for position, column in enumerate(schema.columns):
        if column.is_tick:
            closings.append(Closing(frozenset((position,)), "the event is known", on_sight=True, at_sight=True))
    for unique in stream.unique:
        text = listed([names[position] for position in unique])
        words = f"the one event with that {text} is known"
        closings.append(Closing(frozenset(unique), words, on_sight=True, at_sight=True))
    clock = f"event time of `{stream.name}`" + (f" (less {duration_text(stream.late_us)})" if stream.late_us else "")
    if stream.event_time is not None:
        closings.append(passing(clock, stream.event_time, names[stream.event_time]))
        closings += [
            Closing(frozenset((key,)), f"{clock} has passed `{names[at]}`, which closes `{names[key]}`", on_sight=True)
            for key, at in stream.closes
        ]
    if stream.until_us is not None:
        closings.append(Closing(frozenset(), f"`{stream.name}` has ended"))
    retained = None
    if stream.retain_us is not None:
        retained = f"the {duration_text(stream.retain_us)} that `{stream.name}` is retained"
    return Knowledge(
        is_event=True,
        columns=_base_columns(schema, f"part of an event of `{stream.name}`"),
        visibility=Visibility(Path.RISING, "an event, once known, stays"),
        rows_versioned=False,
        finality=Finality(FinalWhen.AT_ONCE, "as soon as they are shown: an event never changes"),
        state=NO_STATE,
        extent=bound_per_value(schema, schema.key, closings, retained, on_sight=True),
        closings=tuple(closings),
        streams=(stream.name,),
        retained=retained,
    )


def table_knowledge(table: typed.Table, *, arrives: bool = False) -> Knowledge:
    """`arrives`: as who computes with it sees it, who must first be sent its rows."""
    known = Visibility(Path.FIXED, "the rows of a table are known from the start")
    closing = Closing(frozenset(), "")
    if arrives:
        known = Visibility(Path.RISING, "a row of a table, once known, stays")
        closing = Closing(frozenset(table.schema.key), "the row is known", on_sight=True, at_sight=True)
    return relation_knowledge(
        table.schema,
        (),
        columns=_base_columns(table.schema, f"part of the table `{table.name}`, which never changes"),
        visibility=known,
        closings=[closing],
        state=NO_STATE,
    )


def view_scan_knowledge(view: Knowledge) -> Knowledge:
    """Reading a view keeps nothing: its rows are the view's own."""
    return replace(view, state=NO_STATE, condition=None)


def merge_knowledge(node: typed.MergeNode, inputs: Sequence[Knowledge]) -> Knowledge:
    """What closes in every input closes in the merge. Ticks never repeat, but other unique columns may."""
    ticks = frozenset(position for position, column in enumerate(node.schema.columns) if column.is_tick)
    closings: list[Closing] = []
    for closing in inputs[0].closings:
        others = [_same_closing(closing, source.closings) for source in inputs[1:]]
        if closing.columns == ticks:
            closings.append(closing)
        elif not closing.on_sight and all(others):
            found = [closing, *(other for other in others if other is not None)]
            words = " and ".join(dict.fromkeys(one.words for one in found))
            clocks = [one.clock for one in found]
            clock = " and ".join(dict.fromkeys(text for text in clocks if text)) if all(clocks) else None
            closings.append(Closing(closing.columns, words, clock=clock))
    columns = tuple(
        final(f"part of an event of {listed(_streams(inputs))}", Nulls.FIXED if column.nullable else Nulls.NEVER)
        for column in node.schema.columns
    )
    return relation_knowledge(
        node.schema,
        inputs,
        columns=columns,
        visibility=Visibility(Path.RISING, "an event, once known, stays"),
        closings=closings,
        state=NO_STATE,
        is_event=True,
    )


def _streams(inputs: Sequence[Knowledge]) -> list[str]:
    return list(dict.fromkeys(stream for source in inputs for stream in source.streams))


def _same_closing(wanted: Closing, closings: Sequence[Closing]) -> Closing | None:
    return next((c for c in closings if c.columns == wanted.columns and not c.on_sight), None)
