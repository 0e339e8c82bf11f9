"""Random declarations: streams, tables, functions, views, subscriptions."""

from __future__ import annotations

from copy import copy
from random import Random

from tests.generator.expressions import Expressions
from tests.generator.joins import Pipelines
from tests.generator.literals import bounds, duration, literal, random_shape
from tests.generator.relations import Known
from tests.generator.shapes import INT, TIME, Column, Function, Rows, Shape


class Declarations:
    """Writes declarations and remembers in `known` what they declare."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.rng: Random = known.rng
        self.shared = [Column(known.names.column(), self._shared_shape()) for _ in range(4)]
        self.views: dict[str, Rows] = {}
        self.streams: list[str] = []

    def _shared_shape(self) -> Shape:
        return random_shape(self.rng) if self.rng.random() < 0.5 else self.rng.choice((INT, TIME))

    def _columns(self) -> list[Column]:
        """Some of the columns that relations share, some of their own, at least one of them a time now and then."""
        columns = self.rng.sample(self.shared, self.rng.randint(1, len(self.shared)))
        for _ in range(self.rng.randint(0, 3)):
            columns.append(Column(self.known.names.column(), random_shape(self.rng)))
        self.rng.shuffle(columns)
        return [Column(column.name, column.shape, nullable=self.rng.random() < 0.15) for column in columns]

    def _declared(self, columns: list[Column], *, with_defaults: bool = False) -> str:
        parts = []
        for column in columns:
            null = " null" if column.nullable else ""
            limits = bounds(self.rng, column.shape)
            default = self._default(column, limits) if with_defaults and not column.nullable else ""
            parts.append(f"{column.name} {column.shape.written} {limits}{null}{default}")
        return ", ".join(parts)

    def _default(self, column: Column, limits: str) -> str:
        """Drawn aside, so that the rest of a program is the same with it and without."""
        rng = copy(self.rng)
        if rng.random() < 0.8:
            return ""
        low, _, high = limits.strip("[]").partition("..")
        return f" default {low or high or literal(rng, column.shape)}"

    def stream(self) -> str:
        rng = self.rng
        name = self.known.names.relation()
        columns = self._columns()
        body = self._declared(columns, with_defaults=True)
        options: list[str] = []
        certain = [column for column in columns if not column.nullable]
        times = [column for column in certain if column.shape == TIME]
        key: tuple[str, ...] | None = None
        tick: Column | None = None
        if rng.random() < 0.3:
            tick = Column(self.known.names.column(), INT, is_tick=True)
            every = f" every {duration(rng)}" if rng.random() < 0.3 else ""
            count = rng.choice((64, 128, 1024))
            # A phase of its own for every stream, so that any of them can be merged.
            phase = f" phase {len(self.streams)} of {count}" if rng.random() < 0.6 else ""
            options.append(f"tick {tick.name}{every}{phase}")
            key = (tick.name,)
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            if certain:
                unique = rng.sample(certain, rng.randint(1, min(2, len(certain))))
                key = key or tuple(column.name for column in unique)
                options.append("unique " + ", ".join(column.name for column in unique))
        if times and rng.random() < 0.8:
            event_time = rng.choice(times)
            columns[columns.index(event_time)] = Column(event_time.name, TIME, is_event_time=True)
            late = f" late {duration(rng)}" if rng.random() < 0.6 else ""
            options.append(f"event time {event_time.name}{late}" + (" live" if rng.random() < 0.2 else ""))
            if rng.random() < 0.4:
                options.append(f"closes {rng.choice(columns).name} at {rng.choice(times).name}")
            if rng.random() < 0.1:
                options.append(f"until {literal(rng, TIME)}")
        if rng.random() < 0.15:
            options.append(f"retain {duration(rng)}")
        rng.shuffle(options)
        visible = (*columns, tick) if tick else tuple(columns)
        self.streams.append(name)
        self.known.relations[name] = Rows(visible, key, True, True, frozenset((name,)))
        return f"stream {name} ({body}) {' '.join(options)}"

    def table(self) -> str:
        name = self.known.names.relation()
        columns = self._columns()
        key = self.rng.sample(columns, self.rng.randint(1, min(2, len(columns))))
        path = ' from "data/side.csv"' if self.rng.random() < 0.5 else ""
        self.known.relations[name] = Rows(tuple(columns), tuple(column.name for column in key))
        self.known.tables.add(name)
        return f"table {name} ({self._declared(columns)}) key {', '.join(column.name for column in key)}{path}"

    def function(self) -> str:
        rng = self.rng
        name = f"fun_{len(self.known.functions)}"
        parameters = [
            Column(self.known.names.column(), random_shape(rng), nullable=rng.random() < 0.3)
            for _ in range(rng.randint(0, 3))
        ]
        parameters = [
            Column(p.name, Shape("text") if p.shape.family == "text" else p.shape, p.nullable) for p in parameters
        ]
        result = random_shape(rng)
        if result.family in ("text", "enum"):
            result = Shape("text")
        written = ", ".join(f"{p.name} {p.shape.written}{' null' if p.nullable else ''}" for p in parameters)
        body = Expressions(rng, parameters, self.known.functions).fitting(result, 2)
        assert body is not None, "only enums may be impossible to write"
        python = rng.random() < 0.3
        nullable = rng.random() < 0.2 or (body.nullable and not python)
        text = f"function {name}({written}) returns {result.written}{' null' if nullable else ''} "
        text += f'python "scoring:{name}"' if python else f"= {body.text}"
        if python and parameters and rng.random() < 0.5:
            text += " monotone " + ", ".join(rng.choice(("up", "down")) for _ in parameters)
        self.known.functions.append(Function(name, tuple((p.shape, p.nullable) for p in parameters), result, nullable))
        return text

    def view(self) -> str:
        name = self.known.names.relation()
        relation, rows = Pipelines(self.known).relation(2)
        key = ""
        plain = {column.name for column in rows.columns if not column.qualifier}
        if rows.key and plain.issuperset(rows.key) and self.rng.random() < 0.5:
            key = f" key {', '.join(rows.key)}"
        storage = self.rng.choice(("", "", "", " materialize", " inline"))
        self.known.relations[name] = rows
        self.views[name] = rows
        return f"view {name}{key} = {relation}{storage}"

    def subscription(self, brokers: list[str]) -> tuple[str, str]:
        """The statement, and the name of the subscription."""
        rng = self.rng
        name = self.known.names.relation()
        if rng.random() < 0.3:
            relation, rows = Pipelines(self.known).relation(1)
            target = f"({relation})"
            self.views[name] = rows
        else:
            target = rng.choice([*self.views, *self.streams])
        options = [f"emit {rng.choice(('changes', 'bounds', 'final', 'as of horizon'))}"]
        options += [
            f"every {duration(rng)}",
            f"within {duration(rng)}",
            f"snapshot {rng.choice(('on', 'off'))}",
            "durable",
        ]
        if brokers:
            options.append(f"at {rng.choice(brokers)}")
        chosen = rng.sample(options, rng.randint(0, 3))
        return f"subscribe {name} to {target} {' '.join(chosen)}", name
