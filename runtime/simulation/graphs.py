"""Graphs to attack: the paper's Figure 1, and random ones.

A random graph is drawn component by component: streams, then merges and selections on events, then whatever state
operator fits the relations that exist so far. Taking one input twice gives self-joins and diamonds, taking old ones
gives fan-out. Every relation that nobody uses gets a subscriber, some inner ones too. `build.py` makes a plan of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from runtime.simulation.descriptor import (
    Aggregate,
    Distinct,
    Extend,
    Graph,
    Group,
    Join,
    Latest,
    Leaf,
    Match,
    Merge,
    Node,
    Operator,
    Predicate,
    Project,
    Select,
    Stream,
    Top,
    Union,
)
from runtime.simulation.kinds import PAIRS, Kinds, node_kinds

MERGE_MAX = 8
NUMBERS = ("final", "rising", "falling")


def figure_1() -> Graph:
    """The tickets of the paper: k is the item, v the quantity offered or bought. Unsold items show a total of 0."""
    total = Aggregate("sum", "v", "total")
    return Graph(
        "figure 1",
        (
            Node("sell", Stream()),
            Node("west", Stream()),
            Node("east", Stream()),
            Node("buys", Merge(), ("west", "east")),
            Node("sold", Group(("k",), (total,)), ("buys",)),
            Node("both", Join((("k", "k"),), outer=True, defaults=(0,)), ("sell", "sold")),
            Node("left", Extend("avail", ("difference", "v", "both_total")), ("both",)),
            Node("open", Select(("at_least", "avail", 1)), ("left",)),
            Node("sub", Leaf(), ("open",)),
        ),
    )


class _Drawing:
    """A graph under construction."""

    def __init__(self, generator: random.Random) -> None:
        self.random = generator
        self.nodes: list[Node] = []
        self.kinds: dict[str, Kinds] = {}
        self.event: dict[str, bool] = {}

    def add(self, prefix: str, operator: Operator, inputs: tuple[str, ...] = ()) -> str:
        name = f"{prefix}{len(self.nodes)}"
        node = Node(name, operator, inputs)
        self.kinds[name] = node_kinds(node, [self.kinds[source] for source in inputs])
        self.event[name] = self.kinds[name].is_event
        self.nodes.append(node)
        return name

    def pick(self, among: list[str]) -> str:
        """One of them, rather a late one."""
        return among[-1 - int(len(among) * self.random.random() ** 2)]

    def events(self) -> list[str]:
        return [name for name, event in self.event.items() if event]

    def states(self) -> list[str]:
        return [name for name, event in self.event.items() if not event]

    def numbers(self, name: str) -> list[str]:
        kinds = self.kinds[name]
        return [c for c, kind in zip(kinds.columns, kinds.kinds, strict=True) if kind in (*NUMBERS, "versioned")]


def random_graph(generator: random.Random, components_max: int = 7) -> Graph:
    """A graph of 4 components to about `components_max`, without the subscribers."""
    drawing = _Drawing(generator)
    wide = generator.random() < 0.08
    streams = [drawing.add("s", Stream()) for _ in range(MERGE_MAX if wide else generator.choice((1, 2, 2, 3)))]
    if wide or (len(streams) > 1 and generator.random() < 0.6):
        count = len(streams) if wide else generator.randint(2, len(streams))
        drawing.add("m", Merge(), tuple(generator.sample(streams, count)))
    if generator.random() < 0.3:
        drawing.add("f", Select(_event_predicate(generator)), (drawing.pick(drawing.events()),))
    wanted = generator.randint(2, max(2, components_max - len(drawing.nodes)))
    tries = 0
    while wanted > 0 and tries < 60:
        tries += 1
        wanted -= generator.choice(STATE_OPERATORS)(drawing)
    _add_leaves(drawing)
    return Graph("random", tuple(drawing.nodes))


def _add_leaves(drawing: _Drawing) -> None:
    used = {source for node in drawing.nodes for source in node.inputs}
    for name in [node.name for node in drawing.nodes]:
        if name not in used or (not drawing.event[name] and drawing.random.random() < 0.15):
            drawing.add("leaf", Leaf(), (name,))


def _event_predicate(generator: random.Random) -> Predicate:
    return generator.choice((("less", "v", 6), ("at_least", "v", 3), ("equal", "g", 0), ("at_least", "w", 0)))


def _draw_group(drawing: _Drawing) -> bool:
    """Any relation; several aggregates at once."""
    generator = drawing.random
    source = drawing.pick([*drawing.states(), *drawing.events()])
    kinds = drawing.kinds[source]
    by_candidates = ("k", "g") if drawing.event[source] else kinds.keys
    by = tuple(column for column in by_candidates if generator.random() < 0.6)
    aggregates = [Aggregate("count", "", "n")]
    for column in drawing.numbers(source):
        functions = ["sum", "min", "max", "avg", "count_distinct"]
        if kinds.of(column) != "final":
            functions = ["sum", "max", "min"]
        if kinds.of(column) == "versioned" or kinds.rows == "versioned":
            functions = ["min", "max", "avg", "count_distinct", "signed_sum"]
        if not _never_negative(column):
            functions = ["signed_sum", "min", "count_distinct"]
        if generator.random() < 0.5:
            function = generator.choice(functions)
            aggregates.append(Aggregate(function, column, f"{function}_{len(aggregates)}"))
    generator.shuffle(aggregates)
    drawing.add("G", Group(by, tuple(aggregates[:3])), (source,))
    return True


def _never_negative(column: str) -> bool:
    """Only then does a sum rise, and may a maximum be joined with a default of 0 and still be called rising."""
    return column.rsplit("_", 1)[-1][0] not in "we"  # w is signed, e1, e2, ... are computed


def _draw_select(drawing: _Drawing) -> bool:
    generator = drawing.random
    candidates = [name for name in drawing.states() if drawing.numbers(name)]
    if not candidates:
        return False
    source = drawing.pick(candidates)
    column = generator.choice(drawing.numbers(source))
    comparison = generator.choice(("less", "less", "at_least", "equal"))
    drawing.add("W", Select((comparison, column, generator.randint(2, 14))), (source,))
    return True


def _draw_project(drawing: _Drawing) -> bool:
    candidates = [name for name in drawing.states() if drawing.kinds[name].columns]
    if not candidates:
        return False
    source = drawing.pick(candidates)
    columns = drawing.kinds[source].columns
    kept = tuple(column for column in columns if drawing.random.random() < 0.6) or columns[:1]
    drawing.add("P", Project(kept), (source,))
    return True


def _draw_extend(drawing: _Drawing) -> bool:
    candidates = [name for name in drawing.states() if drawing.numbers(name)]
    if not candidates:
        return False
    source = drawing.pick(candidates)
    first = ("column", drawing.random.choice(drawing.numbers(source)))
    second = ("column", drawing.random.choice(drawing.numbers(source)))
    scalar = drawing.random.choice(
        (("plus", first, ("constant", 3)), ("minus", first, second), ("plus", first, second))
    )
    drawing.add("E", Extend(f"e{len(drawing.nodes)}", scalar), (source,))
    return True


def _draw_distinct(drawing: _Drawing) -> bool:
    source = drawing.pick([*drawing.states(), *drawing.events()])
    kinds = drawing.kinds[source]
    columns = ("k", "g") if drawing.event[source] else (*kinds.keys, *drawing.numbers(source))
    kept = tuple(column for column in columns if drawing.random.random() < 0.6) or columns[:1]
    if not kept:
        return False
    drawing.add("D", Distinct(kept), (source,))
    return True


def _draw_event_join(drawing: _Drawing) -> bool:
    """Pairs of events on a final column, or each event with the row of its key."""
    left = drawing.pick(drawing.events())
    keyed = [name for name in drawing.states() if drawing.kinds[name].keys == ("k",)]
    if keyed and drawing.random.random() < 0.6:
        right = drawing.pick(keyed)
        outer = drawing.random.random() < 0.5
        defaults = (0,) * len(drawing.kinds[right].columns) if outer else ()
        if set(PAIRS) & set(drawing.kinds[right].kinds):
            outer, defaults = False, ()
        drawing.add("J", Join((("k", "k"),), outer, defaults), (left, right))
    else:
        drawing.add("J", Join((("k", "k"), ("g", "g"))), (left, drawing.pick(drawing.events())))
    return True


def _draw_state_join(drawing: _Drawing) -> bool:
    """Two relations with the same key, perhaps the same one twice."""
    left = drawing.pick(drawing.states() or [""])
    if not left or not drawing.kinds[left].keys:
        return False
    keys = drawing.kinds[left].keys
    right = drawing.pick([name for name in drawing.states() if drawing.kinds[name].keys == keys])
    kinds = drawing.kinds[right]
    outer = drawing.random.random() < 0.4 and not set(PAIRS) & set(kinds.kinds)
    defaults = (0,) * len(kinds.columns) if outer else ()
    drawing.add("J", Join(tuple((key, key) for key in keys), outer, defaults), (left, right))
    return True


def _draw_match(drawing: _Drawing) -> bool:
    negated = drawing.random.random() < 0.6
    if drawing.random.random() < 0.5 and drawing.states():
        left = drawing.pick(drawing.states())
        keys = drawing.kinds[left].keys
        same = [name for name in drawing.states() if drawing.kinds[name].keys == keys]
        if not keys:
            return False
        drawing.add("A", Match(tuple((key, key) for key in keys), negated), (left, drawing.pick(same)))
        return True
    right = drawing.pick(drawing.events())
    drawing.add("A", Match((("k", "k"), ("g", "g")), negated), (drawing.pick(drawing.events()), right))
    return True


def _draw_top(drawing: _Drawing) -> bool:
    candidates = [name for name in (*drawing.states(), *drawing.events()) if drawing.numbers(name)]
    source = drawing.pick(candidates)
    order = drawing.random.choice(drawing.numbers(source))
    group = ("k",) if drawing.event[source] and drawing.random.random() < 0.6 else ()
    drawing.add("T", Top(drawing.random.randint(1, 3), order, group), (source,))
    return True


def _draw_latest(drawing: _Drawing) -> bool:
    by = ("k",) if drawing.random.random() < 0.7 else ("k", "g")
    drawing.add("L", Latest(by, drawing.random.random() < 0.4), (drawing.pick(drawing.events()),))
    return True


def _draw_union(drawing: _Drawing) -> bool:
    source = drawing.pick(drawing.states() or [""])
    if not source:
        return False
    kinds = drawing.kinds[source]
    same = [
        n for n in drawing.states() if (drawing.kinds[n].keys, drawing.kinds[n].columns) == (kinds.keys, kinds.columns)
    ]
    drawing.add("U", Union(), (source, drawing.pick(same)))
    return True


STATE_OPERATORS: tuple[Callable[[_Drawing], bool], ...] = (
    _draw_group,
    _draw_group,
    _draw_group,
    _draw_select,
    _draw_select,
    _draw_project,
    _draw_extend,
    _draw_distinct,
    _draw_event_join,
    _draw_event_join,
    _draw_state_join,
    _draw_state_join,
    _draw_match,
    _draw_match,
    _draw_top,
    _draw_latest,
    _draw_union,
)
