"""One seed -> one schedule: graph, placement, set-up, workload and faults, each from its own random stream."""

from __future__ import annotations

import random

from runtime.plan import Emit, Tuning
from runtime.simulation.build import edge_name
from runtime.simulation.clients import draw_workload
from runtime.simulation.decisions import Decision, Schedule, Settings
from runtime.simulation.descriptor import Graph, Leaf, Stream
from runtime.simulation.faults import draw_faults, draw_rates
from runtime.simulation.graphs import figure_1, random_graph
from runtime.simulation.random_source import RandomSource

WORKLOAD_US = 250_000
QUIET_US = 50_000  # between the last publish and the end of the faults


def draw_schedule(seed: int, graph_name: str = "random", events: tuple[int, int] = (20, 45)) -> Schedule:
    """All decisions of a run. `graph_name`: figure1 or random."""
    source = RandomSource(seed)
    graph = figure_1() if graph_name == "figure1" else random_graph(source.stream("graph"))
    placement = draw_placement(source.stream("placement"), graph)
    generator = source.stream("workload")
    workload = draw_workload(generator, graph, generator.randint(*events), WORKLOAD_US)
    generator = source.stream("faults")
    faults = draw_faults(generator, graph, placement, generator.choice((0, 4, 8, 12, 16)), WORKLOAD_US + QUIET_US)
    return Schedule(
        seed=seed,
        graph=graph,
        placement=placement,
        decisions=in_order([*workload, *faults]),
        faults_end_us=WORKLOAD_US + QUIET_US,
        rates=draw_rates(source.stream("rates")),
        settings=draw_settings(source.stream("settings"), graph),
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


def draw_settings(generator: random.Random, graph: Graph) -> Settings:
    """Small bounds in some runs, so that what happens at them happens often."""
    tuning = Tuning(
        ask_delay_us=generator.choice((5_000, 20_000)),
        ask_delay_us_max=200_000,
        idle_us=200_000,
        heartbeat_us=120_000,
        push_us=30_000,
        ack_us=generator.choice((5_000, 40_000)),
        gather_us=generator.choice((0, 0, 3_000)),
        silence_us=generator.choice((40_000, 100_000)),
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
    )
