"""Random pipelines: a source and operators on one input. `joins.py` adds the operators that read a second one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.generator.expressions import Expressions, Written, write_column
from tests.generator.literals import duration
from tests.generator.names import Names
from tests.generator.shapes import BOOL, INT, ORDERED, SOME_DECIMAL, TIME, Column, Function, Rows, Shape


@dataclass
class Known:
    """What the program has declared so far. `phases` of streams that have one, by name."""

    rng: Random
    names: Names
    relations: dict[str, Rows] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    functions: list[Function] = field(default_factory=list)
    depth: int = 2
    steps: int = 4

    def choose(self, accept: Callable[[Rows], bool] = lambda _: True) -> str | None:
        fitting = [name for name, rows in self.relations.items() if accept(rows)]
        return self.rng.choice(fitting) if fitting else None


@dataclass(frozen=True)
class Step:
    """One operator as text, and the rows after it."""

    text: str
    rows: Rows


class Rowwise:
    """Operators on one input. Each method gives a step, or None where the operator does not fit."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.rng = known.rng
        self.names = known.names

    def expressions(self, rows: Rows) -> Expressions:
        return Expressions(self.rng, rows.columns, self.known.functions)

    def operators(self) -> tuple[Callable[[Rows], Step | None], ...]:
        return (
            *(self.where, self.extend, self.project, self.project_all_but, self.rename, self.window),
            *(self.aggregate, self.aggregate, self.top, self.latest, self.distinct),
        )

    def some(self, rows: Rows, most: int, columns: Sequence[Column] | None = None) -> list[Column]:
        """One or more different columns, in any order."""
        available = list(rows.columns if columns is None else columns)
        return self.rng.sample(available, self.rng.randint(1, min(most, len(available))))

    def listed(self, columns: Sequence[Column]) -> str:
        return ", ".join(write_column(self.rng, column) for column in columns)

    def new_name(self, taken: set[str]) -> str:
        """Mostly new; sometimes one that another relation has too, so that joins have something to tell apart."""
        if self.rng.random() < 0.3:
            columns = self.known.relations[self.rng.choice(list(self.known.relations))].columns
            name = self.rng.choice(columns).name
            if name.strip("`") not in taken:
                return name
        return self.names.column()

    # One row in, one row out

    def where(self, rows: Rows) -> Step:
        return Step(f"where {self.expressions(rows).condition(self.known.depth).text}", rows)

    def extend(self, rows: Rows) -> Step:
        taken = set(rows.full_names)
        added: list[Column] = []
        parts: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            name = self.new_name(taken)
            taken.add(name.strip("`"))
            value = self.expressions(rows).any_value(self.known.depth)
            added.append(Column(name, value.shape, value.nullable))
            parts.append(f"{name} := {value.text}")
        return Step("extend " + ", ".join(parts), rows.with_columns((*rows.columns, *added)))

    def project(self, rows: Rows) -> Step:
        kept = self.some(rows, len(rows.columns))
        return Step(f"project {self.listed(kept)}", rows.with_columns(tuple(kept)))

    def project_all_but(self, rows: Rows) -> Step | None:
        if len(rows.columns) < 2:
            return None
        dropped = self.some(rows, len(rows.columns) - 1)
        kept = tuple(column for column in rows.columns if column not in dropped)
        return Step(f"project all but {self.listed(dropped)}", rows.with_columns(kept))

    def rename(self, rows: Rows) -> Step:
        chosen = self.some(rows, 2)
        taken = rows.full_names
        new: dict[str, str] = {}
        for column in chosen:
            name = self.new_name(taken)
            taken.add(name.strip("`"))
            new[column.written] = name
        text = "rename " + ", ".join(f"{write_column(self.rng, column)} as {new[column.written]}" for column in chosen)
        columns = tuple(
            replace(column, name=new[column.written], qualifier=None) if column.written in new else column
            for column in rows.columns
        )
        key = None if rows.key is None else tuple(new.get(name, name) for name in rows.key)
        return Step(text, replace(rows, columns=columns, key=key))

    def window(self, rows: Rows) -> Step | None:
        times = [column for column in rows.of("time") if not column.nullable]
        if not times or rows.full_names & {"wstart", "wend"}:
            return None
        time = write_column(self.rng, self.rng.choice(times))
        shape = self.rng.choice(("tumble", "hop", "session"))
        key = rows.key
        if shape == "tumble":
            text = f"window tumble({time}, {duration(self.rng)})"
        elif shape == "hop":
            every = self.rng.randint(1, 60)
            unit = self.rng.choice(("ms", "s", "min"))
            text = f"window hop({time}, {every * self.rng.randint(1, 20)} {unit} every {every} {unit})"
            key = None if key is None else (*key, "wstart")
        else:
            per = f" per {self.listed(self.some(rows, 2))}" if self.rng.random() < 0.7 else ""
            text = f"window session({time}, gap {duration(self.rng)}{per})"
        added = (Column("wstart", TIME), Column("wend", TIME))
        is_event = rows.is_event and shape == "tumble"
        return Step(text, replace(rows, columns=(*rows.columns, *added), key=key, is_event=is_event))

    # Many rows in, one out

    def aggregate(self, rows: Rows) -> Step:
        group = self.some(rows, 3) if self.rng.random() < 0.85 else []
        taken = {column.full_name for column in group}
        added: list[Column] = []
        parts: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            name = self.new_name(taken)
            taken.add(name.strip("`"))
            call, shape, nullable = self._aggregate_call(rows)
            if self.rng.random() < 0.25:
                call += f" where {self.expressions(rows).condition(1).text}"
            added.append(Column(name, shape, nullable))
            parts.append(f"{name} := {call}")
        text = "aggregate " + ", ".join(parts) + (f" group by {self.listed(group)}" if group else "")
        key = tuple(column.written for column in group) or None
        return Step(text, Rows((*group, *added), key))

    def _aggregate_call(self, rows: Rows) -> tuple[str, Shape, bool]:
        """The call, its type, and whether it may be null: all but counts and sums may, to be safe."""
        expressions = self.expressions(rows)
        function = self.rng.choice(("count", "count", "sum", "sum", "min", "max", "avg", "first", "last", "any", "all"))
        match function:
            case "count":
                if self.rng.random() < 0.5:
                    return "count()", INT, False
                distinct = "distinct " if self.rng.random() < 0.5 else ""
                return f"count({distinct}{expressions.any_value(1).text})", INT, False
            case "sum":
                value = expressions.value(self.rng.choice(("int", "int", "decimal", "float")), 1)
                shape = value.shape if value.shape.family != "decimal" else SOME_DECIMAL
                return f"sum({value.text})", shape, False
            case "avg":
                value = expressions.value(self.rng.choice(("int", "decimal", "float")), 1)
                return f"avg({value.text})", value.shape if value.shape.family == "float" else SOME_DECIMAL, True
            case "min" | "max":
                value = expressions.value(self.rng.choice(ORDERED), 1)
                return f"{function}({value.text})", value.shape, True
            case "any" | "all":
                return f"{function}({expressions.condition(1).text})", BOOL, True
            case _:
                value = expressions.any_value(1)
                return f"{function}({value.text})", value.shape, True

    def top(self, rows: Rows) -> Step:
        per = f" per {self.listed(self.some(rows, 2))}" if self.rng.random() < 0.6 else ""
        ordering = ", ".join(self._order_item(rows) for _ in range(self.rng.randint(1, 2)))
        text = f"top {self.rng.choice((1, 3, 10, 1000))}{per} by {ordering}"
        rows = replace(rows, is_event=False)
        roll = self.rng.random()
        if roll < 0.3:
            return Step(f"{text} with ties", rows)
        if roll < 0.6:
            name = self.new_name(set(rows.full_names))
            return Step(f"{text} with rank {name}", replace(rows, columns=(*rows.columns, Column(name, INT))))
        return Step(text, rows)

    def _order_item(self, rows: Rows) -> str:
        value: Written = self.expressions(rows).value(self.rng.choice(ORDERED), 1)
        return value.text + self.rng.choice(("", " asc", " desc"))

    def latest(self, rows: Rows) -> Step | None:
        ordered = rows.of(*ORDERED)
        if not ordered and not rows.one_tick:
            return None
        per = self.some(rows, 2)
        by = f" by {write_column(self.rng, self.rng.choice(ordered))}" if ordered else ""
        if rows.one_tick and self.rng.random() < 0.5:
            by = ""
        text = f"{self.rng.choice(('latest', 'first'))} per {self.listed(per)}{by}"
        key = tuple(column.written for column in per)
        return Step(text, replace(rows, key=key, is_event=False))

    def distinct(self, rows: Rows) -> Step:
        columns = tuple(replace(column, is_tick=column.is_tick) for column in rows.columns)
        return Step("distinct", Rows(columns, tuple(column.written for column in columns)))
