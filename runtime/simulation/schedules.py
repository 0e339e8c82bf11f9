"""One seed -> one schedule: graph, placement, set-up, workload and faults, each from its own random stream."""

from __future__ import annotations

import random
from dataclasses import dataclass

from runtime.plan import Emit, Tuning
from runtime.simulation.build import edge_name
from runtime.simulation.clients import draw_workload
from runtime.simulation.decisions import Decision, Schedule, Settings
from runtime.simulation.descriptor import Graph, Leaf, Stream
from runtime.simulation.faults import draw_faults, draw_rates
from runtime.simulation.graphs import figure_1, random_graph
from runtime.simulation.random_source import RandomSource
from runtime.simulation.small_graphs import SMALL_GRAPHS


@dataclass(frozen=True)
class Size:
    """How much happens in a run, and how fast its components are: tuples are drawn from, or give a range."""

    events: tuple[int, int]
    faults: tuple[int, ...]
    workload_us: int
    quiet_us: int  # between the last publish and the end of the faults
    ask_us: tuple[int, ...]
    ack_us: tuple[int, ...]
    silence_us: tuple[int, ...]
    heartbeat_us: int
    idle_us: int
    patience_us: int  # the longest wait between two questions


LARGE = Size(
    (20, 45),
    (0, 4, 8, 12, 16),
    250_000,
    50_000,
    (5_000, 20_000),
    (5_000, 40_000),
    (40_000, 100_000),
    120_000,
    200_000,
    200_000,
)
SMALL = Size(
    (4, 14), (2, 4, 6, 9), 60_000, 20_000, (2_000, 6_000), (1_000, 8_000), (8_000, 30_000), 25_000, 40_000, 30_000
)
GRAPHS = ("random", "figure1", "small")
EVERY_CHANGE_SHARE = 0.4
COLUMNAR_SHARE = 0.6


def draw_schedule(seed: int, graph_name: str = "random") -> Schedule:
    """All decisions of a run. `graph_name` is one of GRAPHS."""
    source = RandomSource(seed)
    size = SMALL if graph_name == "small" else LARGE
    generator = source.stream("graph")
    if graph_name == "small":
        graph = generator.choice(SMALL_GRAPHS)
    else:
        graph = figure_1() if graph_name == "figure1" else random_graph(generator)
    placement = draw_placement(source.stream("placement"), graph)
    generator = source.stream("workload")
    workload = draw_workload(generator, graph, generator.randint(*size.events), size.workload_us)
    generator = source.stream("faults")
    end_us = size.workload_us + size.quiet_us
    faults = draw_faults(generator, graph, placement, generator.choice(size.faults), end_us)
    return Schedule(
        seed=seed,
        graph=graph,
        placement=placement,
        decisions=in_order([*workload, *faults]),
        faults_end_us=end_us,
        rates=draw_rates(source.stream("rates")),
        settings=draw_settings(source.stream("settings"), graph, size),
    )


def in_order(decisions: list[Decision]) -> tuple[Decision, ...]:
    """By time; equal times keep their order."""
    return tuple(sorted(decisions, key=lambda decision: decision.at_us))


def draw_placement(generator: random.Random, graph: Graph) -> dict[str, str]:
    """One to four brokers; half of the subscribers on nodes of their own."""
    brokers = generator.choice((1, 2, 3, 3, 4))
    placement: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.operator, Leaf) and generator.random() < 0.5:
            placement[node.name] = f"client_{node.name}"
        else:
            placement[node.name] = f"b{generator.randrange(brokers)}"
    return placement


def draw_settings(generator: random.Random, graph: Graph, size: Size) -> Settings:
    """Small bounds in some runs, so that what happens at them happens often."""
    tuning = Tuning(
        ask_delay_us=generator.choice(size.ask_us),
        ask_delay_us_max=size.patience_us,
        idle_us=size.idle_us,
        heartbeat_us=size.heartbeat_us,
        push_us=30_000,
        ack_us=generator.choice(size.ack_us),
        gather_us=generator.choice((0, 0, 3_000)),
        silence_us=generator.choice(size.silence_us),
        reserve_us=generator.choice((50_000, 1_000_000)),
        quench_keys=generator.random() < 0.7,
        message_rows_max=generator.choice((3, 10, 4_096, 4_096, 4_096, 4_096)),
        answer_rows_max=generator.choice((3, 65_536)),
        held_messages_max=generator.choice((1, 64)),
        curiosity_ranges_max=generator.choice((2, 1_024)),
    )
    edges = [edge_name(source, node.name, i) for node in graph.nodes for i, source in enumerate(node.inputs)]
    push_share = generator.choice((0.0, 0.0, 0.5))
    soft_share = generator.choice((0.0, 0.5, 1.0))
    return Settings(
        tuning=tuning,
        push_edges=tuple(edge for edge in edges if generator.random() < push_share),
        soft_components=tuple(
            node.name
            for node in graph.nodes
            if not isinstance(node.operator, Stream) and generator.random() < soft_share
        ),
        emits={leaf: generator.choice((Emit.CHANGES, Emit.CHANGES, *Emit)) for leaf in graph.leaves},
        every_change=tuple(edge for edge in edges if generator.random() < EVERY_CHANGE_SHARE),
        columnar=generator.random() < COLUMNAR_SHARE,
    )
