"""Bytes to recover from n lost updates of k rows: they grow with k, not with n.

    python -m bench.recovery_bytes [--updates 10 100 1000 10000] [--rows 1 10 100]

A sum feeds a copy; all messages of n updates to k rows are lost; then one question and one answer repair the copy.
Counted are the bytes of that question and answer, packed as msgpack, beside those of the messages that were lost.
Writes a table and, with matplotlib, a plot into bench/results.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack

from runtime.batch import Batch
from runtime.plan import Plan, Tuning
from runtime.protocol.build import build_component
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import MessageArrived, Restarted, Send, TimerFired
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Curiosity, Events, Knowledge, Message
from runtime.simulation.build import build_plan, edge_name
from runtime.simulation.decisions import Settings
from runtime.simulation.descriptor import Graph
from runtime.simulation.small_graphs import SMALL_GRAPHS

RESULTS = Path(__file__).parent / "results"


def packed_bytes(message: Message) -> int:
    """The size of a state message as plain msgpack: columns, ticks, coverage, a few ints."""
    match message:
        case Knowledge():
            rows = [list(column) for column in message.rows.columns]
            body: list[Any] = [message.epoch, message.from_step, message.to_step, message.coverage.to_wire(), rows]
            body += [list(message.rows.max_ticks), list(message.rows.visible), message.filtered_for, message.floor]
        case Curiosity():
            body = [message.receiver_epoch, message.adopted_epoch, message.applied_step, message.coverage.to_wire()]
        case _:
            raise AssertionError(f"{type(message).__name__} is no part of this recovery")
    data: bytes = msgpack.packb(body)
    return len(data)


def sum_plan() -> Plan:
    graph: Graph = next(graph for graph in SMALL_GRAPHS if graph.title == "sum")
    return build_plan(graph, Settings(tuning=Tuning(gather_us=0)))


def recovery(updates: int, rows: int) -> tuple[int, int, int]:
    """Bytes lost, bytes to recover, rows in the answer."""
    plan = sum_plan()
    total, copy = build_component(plan, "S"), build_component(plan, "L")
    events_edge, state_edge = edge_name("s", "S", 0), edge_name("S", "L", 0)
    total.handle(Restarted(1))
    question = _sent(copy.handle(Restarted(1)), Curiosity)
    (snapshot,) = [i.message for i in total.handle(MessageArrived(state_edge, question)) if isinstance(i, Send)]
    copy.handle(MessageArrived(state_edge, snapshot))
    lost = 0
    covered = -1
    for number in range(updates):
        tick = number * 16
        batch = Batch.events([tick], [[number % rows], [0], [1], [0]])
        cover = LineageCoverage([Coverage.of((covered + 1, tick))])
        covered = tick
        lost += packed_bytes(_sent(total.handle(MessageArrived(events_edge, Events(cover, batch))), Knowledge))
    copy.handle(TimerFired(f"ask:{state_edge}", 0))
    asked = copy.handle(TimerFired(f"idle:{state_edge}", 0)) + copy.handle(TimerFired(f"idle:{state_edge}", 0))
    question = _sent(asked, Curiosity)
    answer = _sent(total.handle(MessageArrived(state_edge, question)), Knowledge)
    copy.handle(MessageArrived(state_edge, answer))
    assert copy.coverage() == total.coverage(), "one question and one answer repair everything"
    return lost, packed_bytes(question) + packed_bytes(answer), len(answer.rows)


def _sent(instructions: Sequence[Any], kind: Any) -> Any:
    """The one message of a kind among what was said."""
    (found,) = [i.message for i in instructions if isinstance(i, Send) and isinstance(i.message, kind)]
    return found


def plot(table: list[tuple[int, int, int, int, int]], path: Path) -> bool:
    """Lost and recovered bytes over n, one line for each k; False without matplotlib."""
    try:
        importlib.import_module("matplotlib").use("Agg")
    except ImportError:
        return False
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for rows in sorted({line[1] for line in table}):
        lines = [line for line in table if line[1] == rows]
        (drawn,) = axes.plot(
            [n for n, *_ in lines], [line[3] for line in lines], marker="o", label=f"recover, k = {rows}"
        )
        axes.plot([n for n, *_ in lines], [line[2] for line in lines], ls=":", color=drawn.get_color())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("n lost updates")
    axes.set_ylabel("bytes (dotted: the lost messages)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytes to recover from lost updates.")
    parser.add_argument("--updates", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 10, 100])
    options = parser.parse_args()
    table = []
    for rows in options.rows:
        for updates in options.updates:
            lost, recovered, answered = recovery(updates, rows)
            table.append((updates, rows, lost, recovered, answered))
    lines = [
        "| n updates lost | k rows | bytes lost | bytes to recover | rows in the answer |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {n} | {k} | {lost} | {recovered} | {rows} |" for n, k, lost, recovered, rows in table]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "recovery_bytes.md").write_text(text)
    print(text)
    if not plot(table, RESULTS / "recovery_bytes.svg"):
        print("no plot: matplotlib is not installed (the `bench` extra)")


if __name__ == "__main__":
    main()
