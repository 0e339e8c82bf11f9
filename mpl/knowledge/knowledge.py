"""Knowledge: everything the analysis derives about one relation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpl.knowledge.closing import Closing, tidy
from mpl.knowledge.finality import Finality, FinalWhen, derive_finality
from mpl.knowledge.kind import Cause, ColumnKnowledge, Kind
from mpl.knowledge.path import Path
from mpl.knowledge.state import StateBound, bound_per_value
from mpl.typed import Schema


@dataclass(frozen=True)
class Visibility:
    """How the visibility of a row may move. `cause` says why it is versioned, `reason` what moves it otherwise."""

    path: Path
    reason: str
    cause: Cause | None = None

    @property
    def stays(self) -> bool:
        """Does a row, once shown, stay shown?"""
        return self.path.stays


@dataclass(frozen=True)
class Session:
    """Columns that tell sessions apart. Rows change session only all together, and no session ever comes back."""

    per: frozenset[int]
    ends: frozenset[int]


@dataclass(frozen=True)
class Knowledge:
    """What is known about a relation before any event has been seen.

    `is_event`: its rows are final, each at its own tick. `rows_versioned`: rows or values are not refined but replaced,
    so they are only true as of a coverage. `condition` is the path of the operator's own condition, if it has one.
    `state` is what the operator keeps; `extent` how many rows the relation can have that are not final yet, for
    operators that keep a copy of them. `retained` says for how long events are kept at all, when every stream below
    declares it.
    """

    is_event: bool
    columns: tuple[ColumnKnowledge, ...]
    visibility: Visibility
    rows_versioned: bool
    finality: Finality
    state: StateBound
    extent: StateBound
    closings: tuple[Closing, ...]
    streams: tuple[str, ...]
    retained: str | None = None
    session: Session | None = None
    condition: Path | None = None

    @property
    def path(self) -> Path:
        return self.visibility.path

    @property
    def is_final_at_once(self) -> bool:
        return self.finality.when is FinalWhen.AT_ONCE

    @property
    def has_versioned_columns(self) -> bool:
        return any(column.kind is Kind.VERSIONED for column in self.columns)


def relation_knowledge(
    schema: Schema,
    inputs: Sequence[Knowledge],
    *,
    columns: tuple[ColumnKnowledge, ...],
    visibility: Visibility,
    closings: Iterable[Closing],
    state: StateBound,
    is_event: bool = False,
    versioned: bool = False,
    session: Session | None = None,
    condition: Path | None = None,
) -> Knowledge:
    """The knowledge of a computed relation; what follows from the rest is filled in here.

    `versioned`: the protocol treats these rows as versioned whatever their path (top-k membership).
    """
    assert len(columns) == len(schema.columns), "one fact per column"
    kept = tidy(closings)
    retained = [source.retained for source in inputs if source.streams]
    retention = " and ".join(dict.fromkeys(text for text in retained if text)) if retained and all(retained) else None
    return Knowledge(
        is_event=is_event,
        columns=columns,
        visibility=visibility,
        rows_versioned=versioned
        or visibility.path is Path.VERSIONED
        or any(column.kind is Kind.VERSIONED for column in columns)
        or any(source.rows_versioned for source in inputs),
        finality=derive_finality(schema, columns, visibility.path, kept),
        state=state,
        extent=bound_per_value(schema, schema.key, kept, retention, on_sight=True),
        closings=kept,
        streams=tuple(dict.fromkeys(stream for source in inputs for stream in source.streams)),
        retained=retention,
        session=session,
        condition=condition,
    )
