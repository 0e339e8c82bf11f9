"""The input side of a star: what an event of each stream does to the state, as statements and updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import count

from compiler.kernels.model import Edge, FedPart, Feed, ItemKind, Part, Update
from compiler.kernels.scalars import Block, Constants, NotFusable
from compiler.plan.layout import Layout
from compiler.plan.wanted import wanted_by_chains
from mpl.typed import AggregateItem, ExtendNode, ProjectNode, Schema, WhereNode
from runtime.kernels.spec import StateColumn
from runtime.plan import ValueType


def write_edges(
    parts: Sequence[Part],
    state: Sequence[StateColumn],
    bases: Mapping[str, Layout],
    schema_of: Callable[[str], Schema],
    constants: Constants,
) -> tuple[Edge, ...]:
    """One in-edge for each stream, in the order in which parts name them: an event changes all its parts at once."""
    streams = dict.fromkeys(feed.stream for part in parts for feed in part.feeds)
    return tuple(
        _EdgeWriter(number, stream, parts, state, bases[stream], schema_of(stream), constants).write()
        for number, stream in enumerate(streams)
    )


class _EventColumns(Mapping[int, str | None]):
    """Columns of a stream as locals, remembering which are read."""

    def __init__(self, layout: Layout, used: set[int]) -> None:
        self._layout, self._used = layout, used

    def __getitem__(self, position: int) -> str:
        number = self._layout.plain(position)
        if self._layout.relation.columns[number].nullable:
            raise NotFusable(f"`{self._layout.relation.columns[number].name}` may be null")
        self._used.add(number)
        return f"c{number}"

    def __iter__(self) -> None:  # type: ignore[override]
        raise AssertionError("columns are only looked up")

    def __len__(self) -> int:
        return len(self._layout.cells)


class _EdgeWriter:
    def __init__(
        self,
        number: int,
        stream: str,
        parts: Sequence[Part],
        state: Sequence[StateColumn],
        layout: Layout,
        schema: Schema,
        constants: Constants,
    ) -> None:
        self.schema = schema
        self.number = number
        self.stream = stream
        self.fed = [(part, feed) for part in parts for feed in part.feeds if feed.stream == stream]
        self.state = state
        self.layout = layout
        self.constants = constants
        self.used = {0}
        self.block = Block("e", constants)
        self._names = count(1)

    def write(self) -> Edge:
        parts: list[FedPart] = []
        keys: list[tuple[str, ...]] = []
        for part, feed in self.fed:
            condition, columns = self._pass(feed)
            keys.append(tuple(str(columns[position]) for position in feed.key))
            updates = self._row(part, columns) if part.items is None else self._items(part, part.items, columns)
            parts.append(FedPart(part.number, condition, updates))
        if len(set(keys)) > 1:
            raise NotFusable(f"events of `{self.stream}` reach several keys at once")
        columns_used = tuple(sorted(self.used))
        wanted = wanted_by_chains([feed.chain for _, feed in self.fed], self.schema)
        return Edge(self.number, self.stream, columns_used, tuple(self.block.lines), keys[0], tuple(parts), wanted)

    def _pass(self, feed: Feed) -> tuple[str, Mapping[int, str | None]]:
        """Writes the operators on events; the local that says whether the event survives, and its columns."""
        columns: Mapping[int, str | None] = _EventColumns(self.layout, self.used)
        block, condition = self.block, ""
        for node in feed.chain:
            match node:
                case WhereNode() if not condition:
                    condition = f"is_fed_{next(self._names)}"
                    block.line(f"{condition} = {block.value(node.predicate, columns)}")
                case WhereNode():
                    with block.when(condition):
                        block.line(f"{condition} = {block.value(node.predicate, columns)}")
                case ExtendNode():
                    with block.when(condition) if condition else nullcontext():
                        made = [block.value(value, columns) for value in node.values]
                    columns = _More(columns, len(node.input.schema.columns), made)
                case ProjectNode():
                    columns = _Fewer(columns, node.kept)
                case _:
                    pass
        return condition, columns

    def _row(self, part: Part, columns: Mapping[int, str | None]) -> tuple[Update, ...]:
        found = []
        for position, (number,) in part.columns.items():
            found.append(Update("store", (number,), str(columns[position])))
        return tuple(found)

    def _items(
        self, part: Part, items: Sequence[AggregateItem], columns: Mapping[int, str | None]
    ) -> tuple[Update, ...]:
        first = len(part.feeds[0].key)
        return tuple(self._item(items[position - first], states, columns) for position, states in part.columns.items())

    def _item(self, item: AggregateItem, states: tuple[int, ...], columns: Mapping[int, str | None]) -> Update:
        if item.distinct:
            raise NotFusable("distinct values are counted")
        if item.function == "all" and item.where is not None:
            # Over a group of which nothing counts it is true, and the state of a group starts with false.
            raise NotFusable("`all` with a condition")
        prefix = f"a{next(self._names)}_"
        condition, condition_lines = "", tuple[str, ...]()
        if item.where is not None:
            block = Block(f"{prefix}w", self.constants)
            condition = block.value(item.where, columns)
            condition_lines = tuple(block.lines)
        block = Block(prefix, self.constants)
        value = block.value(item.argument, columns) if item.argument is not None else ""
        kind = self._kind(item, states)
        reason = (
            self.constants.reason(f"the {item.function} of a group is too large")
            if "sum" in kind or "average" in kind
            else 0
        )
        return Update(kind, states, value, tuple(block.lines), condition, condition_lines, reason)

    def _kind(self, item: AggregateItem, states: tuple[int, ...]) -> ItemKind:
        if item.function == "count":
            return "count"
        argument = item.argument
        assert argument is not None
        is_rising = argument.bounds.non_negative
        match item.function:
            case "sum" | "avg":
                if any(self.state[number].type is ValueType.FLOAT for number in states):
                    raise NotFusable("a sum of floats, which is kept exactly")
                if item.function == "avg":
                    return "rising_average" if is_rising else "average"
                if len(states) == 2:
                    return "signed_sum"
                return "rising_sum" if is_rising else "sum"
            case "max" | "any":
                kind: ItemKind = "max"
            case "min" | "all":
                kind = "min"
            case _:
                raise NotFusable(f"the aggregate `{item.function}`")
        if self.state[states[0]].type is ValueType.TEXT:
            raise NotFusable("the smallest or largest text")
        return kind


class _More(Mapping[int, str | None]):
    def __init__(self, columns: Mapping[int, str | None], width: int, added: Sequence[str]) -> None:
        self._columns, self._width, self._added = columns, width, added

    def __getitem__(self, position: int) -> str | None:
        return self._columns[position] if position < self._width else self._added[position - self._width]

    def __iter__(self) -> None:  # type: ignore[override]
        raise AssertionError("columns are only looked up")

    def __len__(self) -> int:
        return self._width + len(self._added)


class _Fewer(Mapping[int, str | None]):
    def __init__(self, columns: Mapping[int, str | None], kept: Sequence[int]) -> None:
        self._columns, self._kept = columns, kept

    def __getitem__(self, position: int) -> str | None:
        return self._columns[self._kept[position]]

    def __iter__(self) -> None:  # type: ignore[override]
        raise AssertionError("columns are only looked up")

    def __len__(self) -> int:
        return len(self._kept)
