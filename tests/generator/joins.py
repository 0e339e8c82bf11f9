"""Random operators that read a second relation, and the pipelines that all operators are part of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from tests.generator.expressions import write_column
from tests.generator.literals import literal
from tests.generator.relations import Known, Rowwise, Step
from tests.generator.shapes import Column, Rows


class Pipelines(Rowwise):
    """Writes whole relations. `depth` counts how far sub-relations may still nest."""

    def __init__(self, known: Known) -> None:
        super().__init__(known)
        self.binary: tuple[Callable[[Rows, int], Step | None], ...] = (
            *(self.join, self.join, self.join, self.matching, self.matching, self.asof, self.union, self.minus),
        )

    def relation(self, depth: int) -> tuple[str, Rows]:
        """`from ...` or `merge ...` with some operators behind it."""
        merged = self._merge() if self.rng.random() < 0.15 else None
        text, rows = merged or self._from(depth)
        for _ in range(self.rng.randint(0, self.known.steps)):
            step = self._step(rows, depth)
            if step is not None:
                text, rows = f"{text} |> {step.text}", step.rows
        return text, rows

    def _step(self, rows: Rows, depth: int) -> Step | None:
        if self.rng.random() < 0.3:
            return self.rng.choice(self.binary)(rows, depth)
        return self.rng.choice(self.operators())(rows)

    def _from(self, depth: int) -> tuple[str, Rows]:
        if depth > 0 and self.rng.random() < 0.12:
            inner, rows = self.relation(depth - 1)
            alias = self.names.relation() if self.rng.random() < 0.5 else None
            return f"from ({inner})" + (f" as {alias}" if alias else ""), rows.named(alias) if alias else rows
        name = self.known.choose()
        assert name is not None, "a program begins with a stream"
        alias = self.names.relation() if self.rng.random() < 0.3 else None
        return f"from {name}" + (f" as {alias}" if alias else ""), self.known.relations[name].named(alias or name)

    def _merge(self) -> tuple[str, Rows] | None:
        """Event relations of different streams, brought to the columns that they share."""
        first = self.known.choose(lambda rows: rows.is_event)
        if first is None:
            return None
        left = self.known.relations[first]
        other = self.known.choose(lambda rows: rows.is_event and not rows.streams & left.streams)
        if other is None:
            return None
        right = self.known.relations[other]
        common = _common(left, right)
        if not common:
            return None
        chosen = self.some(left, len(common), [one for one, _ in common])
        partners = {one.name: two for one, two in common}
        columns = tuple(
            replace(
                one,
                nullable=one.nullable or partners[one.name].nullable,
                is_event_time=one.is_event_time and partners[one.name].is_event_time,
                aliases=(),
            )
            for one in chosen
        )
        names = [column.name for column in chosen]
        reordered = self.rng.sample(names, len(names))
        text = f"merge (from {first} |> project {', '.join(names)}), (from {other} |> project {', '.join(reordered)})"
        return text, Rows(columns, None, True, True, left.streams | right.streams)

    # A second relation

    def source(self, left: Rows, depth: int) -> tuple[str, Rows, str | None]:
        """A relation to join with, under an alias that the left does not use; its own name, if it is not a pipeline."""
        if depth > 0 and self.rng.random() < 0.3:
            inner, rows = self.relation(depth - 1)
            alias = self.names.relation()
            return f"({inner}) as {alias}", rows.named(alias), None
        name = self.known.choose()
        assert name is not None
        used = left.used_aliases | {column.qualifier for column in left.columns if column.qualifier}
        if name in used or self.rng.random() < 0.5:
            alias = self.names.relation()
            return f"{name} as {alias}", self.known.relations[name].named(alias), name
        return name, self.known.relations[name].named(name), name

    def join(self, left: Rows, depth: int) -> Step | None:
        text, right, name = self.source(left, depth)
        side = self.rng.choice(("", "", "left ", "full "))
        shared = self._shared(left, right)
        if shared and self.rng.random() < 0.6:
            using = self.some(left, 2, shared)
            names = {column.name for column in using}
            renamed = named_apart(left, right, names)
            if renamed is None:
                return None
            condition = "using " + ", ".join(column.name for column in using)
            merged = self._merged_aliases(left, right, names)
            keyed = {column.name for column in using} if name in self.known.tables else set()
            return self._joined(side, text, condition, merged, renamed, (keyed, right, names))
        renamed = named_apart(left, right)
        equality = self._equality(left, renamed) if renamed is not None else None
        if renamed is None or equality is None:
            return None
        condition = f"on {equality}{self._rest(left, renamed)}"
        return self._joined(side, text, condition, left, renamed, (set(), right, set()))

    def _merged_aliases(self, left: Rows, right: Rows, names: set[str]) -> Rows:
        """A `using` column is reached by either alias."""
        aliases = {column.name: column.aliases for column in right.columns if not column.qualifier}
        return replace(
            left,
            columns=tuple(
                replace(column, aliases=(*column.aliases, *aliases[column.name]))
                if column.name in names and not column.qualifier
                else column
                for column in left.columns
            ),
        )

    def _joined(
        self, side: str, text: str, condition: str, left: Rows, right: Rows, using: tuple[set[str], Rows, set[str]]
    ) -> Step:
        keyed, whole, shared = using
        defaults: dict[str, str] = {}
        if side:
            fillable = [c for c in right.columns if not c.qualifier and c.shape.digits != (1, 1)]
            if side == "full ":
                fillable += [c for c in left.columns if not c.qualifier and c.name not in shared]
            for column in fillable:
                if self.rng.random() < 0.3 and (column.shape.family != "decimal" or column.shape.digits):
                    defaults[column.name] = literal(self.rng, column.shape)
        right_columns = tuple(_may_miss(c, defaults) if side else c for c in right.columns)
        left_columns = left.columns
        if side == "full ":
            # A `using` column comes from whichever side has the row.
            null = {c.name for c in whole.columns if c.nullable and not c.qualifier}
            left_columns = tuple(
                replace(c, nullable=c.nullable or c.name in null)
                if c.name in shared and not c.qualifier
                else _may_miss(c, defaults)
                for c in left.columns
            )
        key = left.key if keyed and whole.key is not None and keyed.issuperset(whole.key) and side != "full " else None
        written = ", ".join(f"{name} := {value}" for name, value in defaults.items())
        default = f" default {written}" if defaults else ""
        return Step(f"{side}join {text} {condition}{default}", Rows((*left_columns, *right_columns), key))

    def _shared(self, left: Rows, right: Rows) -> list[Column]:
        return [one for one, _ in _common(left, right, ticks=True)]

    def _equality(self, left: Rows, right: Rows) -> str | None:
        pairs = [(one, two) for one in left.columns for two in right.columns if one.shape.alike(two.shape)]
        if not pairs:
            return None
        chosen = self.rng.sample(pairs, min(len(pairs), self.rng.choice((1, 1, 2))))
        parts = []
        for one, two in chosen:
            sides = [self._reached(one), self._reached(two)]
            if self.rng.random() < 0.3:
                sides.reverse()
            parts.append(f"{sides[0]} = {sides[1]}")
        return " and ".join(parts)

    def _reached(self, column: Column) -> str:
        return write_column(self.rng, column)

    def _rest(self, left: Rows, right: Rows) -> str:
        if self.rng.random() < 0.7:
            return ""
        both = replace(left, columns=(*left.columns, *right.columns))
        condition = self.expressions(both).condition(1)
        return f" and ({condition.text})"

    def matching(self, left: Rows, depth: int) -> Step | None:
        text, right, _ = self.source(left, depth)
        verb = self.rng.choice(("matching", "not matching"))
        shared = self._shared(left, right)
        if shared and self.rng.random() < 0.5:
            using = self.some(left, 2, shared)
            names = {column.name for column in using}
            if named_apart(left, right, names) is None:
                return None
            return Step(f"{verb} {text} using {', '.join(column.name for column in using)}", _matched(left))
        renamed = named_apart(left, right)
        equality = self._equality(left, renamed) if renamed is not None else None
        if renamed is None or equality is None:
            return None
        return Step(f"{verb} {text} on {equality}{self._rest(left, renamed)}", _matched(left))

    def asof(self, left: Rows, depth: int) -> Step | None:
        text, right, _ = self.source(left, depth)
        renamed = named_apart(left, right)
        if renamed is None:
            return None
        equality = self._equality(left, renamed)
        lefts, rights = left.of("time"), renamed.of("time")
        if equality is None or not lefts or not rights:
            return None
        one_each = [sum(c.is_event_time for c in rows.columns) == 1 for rows in (left, right)]
        condition = f"on {equality}"
        if not all(one_each) or self.rng.random() < 0.5:
            early, late = self._reached(self.rng.choice(rights)), self._reached(self.rng.choice(lefts))
            order = f"{early} <= {late}" if self.rng.random() < 0.7 else f"{late} >= {early}"
            condition = f"on {equality} and {order}"
        word = self.rng.choice(("asof join", "asof left join"))
        added = tuple(
            replace(c, nullable=c.nullable or word == "asof left join", is_event_time=False) for c in renamed.columns
        )
        rows = replace(left, columns=(*left.columns, *added), is_event=False, one_tick=False)
        return Step(f"{word} {text} {condition}", rows)

    # Relations with the same columns

    def union(self, left: Rows, depth: int) -> Step | None:
        made = self._alike(left)
        if made is None:
            return None
        project, source, pairs = made
        columns = tuple(
            replace(
                one,
                nullable=one.nullable or two.nullable,
                is_tick=False,
                is_event_time=one.is_event_time and two.is_event_time,
            )
            for one, two in pairs
        )
        return Step(f"{project} |> union {source}", Rows(columns, tuple(column.written for column in columns)))

    def minus(self, left: Rows, depth: int) -> Step | None:
        made = self._alike(left)
        if made is None:
            return None
        project, source, pairs = made
        rows = left.with_columns(tuple(one for one, _ in pairs))
        return Step(f"{project} |> minus {source}", replace(rows, is_event=False, one_tick=False))

    def _alike(self, left: Rows) -> tuple[str, str, list[tuple[Column, Column]]] | None:
        """A projection of the left, a source with the same columns, and the columns in pairs."""
        name = self.known.choose()
        assert name is not None
        common = _common(left, self.known.relations[name])
        if not common:
            return None
        pairs = self.rng.sample(common, self.rng.randint(1, len(common)))
        names = [one.name for one, _ in pairs]
        other = ", ".join(self.rng.sample(names, len(names)))
        return f"project {', '.join(names)}", f"(from {name} |> project {other})", pairs


def _matched(left: Rows) -> Rows:
    return replace(left, is_event=False)


def _common(left: Rows, right: Rows, *, ticks: bool = False) -> list[tuple[Column, Column]]:
    """Columns with the same plain name and type on both sides."""
    by_name = {column.name.strip("`"): column for column in right.columns if not column.qualifier}
    return [
        (column, by_name[column.name.strip("`")])
        for column in left.columns
        if not column.qualifier
        and column.name.strip("`") in by_name
        and column.shape.alike(by_name[column.name.strip("`")].shape)
        and (ticks or column.is_tick == by_name[column.name.strip("`")].is_tick)
    ]


def named_apart(left: Rows, right: Rows, using: Collection[str] = ()) -> Rows | None:
    """The right's columns as they are called after the join, without those in `using`.

    None where a name would mean two columns.
    """
    taken = left.full_names
    plain = {column.name for column in right.columns if not column.qualifier}
    if _qualifiers(right) & left.used_aliases or _qualifiers(left) & right.used_aliases:
        return None
    columns: list[Column] = []
    for column in right.columns:
        if column.name in using and not column.qualifier:
            continue
        if column.full_name in taken:
            if not column.aliases or (column.qualifier and column.name in plain):
                return None
            column = replace(column, qualifier=column.aliases[0])
            if column.full_name in taken:
                return None
        taken.add(column.full_name)
        columns.append(column)
    return replace(right, columns=tuple(columns))


def _qualifiers(rows: Rows) -> set[str]:
    return {column.qualifier for column in rows.columns if column.qualifier}


def _may_miss(column: Column, defaults: dict[str, str]) -> Column:
    return replace(column, nullable=column.nullable or column.qualifier is not None or column.name not in defaults)
