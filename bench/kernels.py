"""The tickets kernel alone: events per second by batch size, in both tiers, every change emitted as columns.

10,000 items, skewed buys from two streams, offers near what will be bought, so that most buys change the view and one
item in six or so sells out. Input is ready columns; the time includes the wrapper, the list of changes and marking
rows in the journal, and no protocol. Speeds are by CPU time: other work on the machine does not count.

    python -m bench.kernels [BUYS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from compiler.graph import build_graph, validate
from compiler.kernels.fuse import fused_or_reason
from compiler.passes import optimise
from compiler.plan.build import build_plan
from mpl.check import check
from mpl.source import Source
from runtime.batch import Batch
from runtime.kernels.operator import KernelOperator
from runtime.kernels.spec import KernelSpec
from runtime.kernels.tier import CACHE_VARIABLE
from runtime.plan import Relation

ITEMS = 10_000
BUYS = 2_000_000
PLAIN_BUYS_MAX = 200_000
BATCHES = (1, 10, 100, 1_000, 10_000)
CALLS_MAX = 100_000
ROUNDS = 3
SEED = 20_260_101

Integers = npt.NDArray[np.int64]


class Workload:
    """Offers, and buys of two streams by turns; ticks rise."""

    def __init__(self, buys: int) -> None:
        source = np.random.default_rng(SEED)
        keys = source.permutation(ITEMS).astype(np.int64) * 7_919 + 1_000_003
        weights = 1.0 / np.arange(1, ITEMS + 1)
        chosen = source.choice(ITEMS, buys, p=weights / weights.sum())
        self.buy_keys: Integers = keys[chosen]
        self.quantities: Integers = source.integers(1, 6, buys)
        sold = np.bincount(chosen, self.quantities, ITEMS)
        self.offer_keys: Integers = keys
        self.prices: Integers = source.integers(100, 10_000, ITEMS)
        self.offered: Integers = (1 + sold * source.uniform(0.8, 2.0, ITEMS)).astype(np.int64)
        self.ticks: Integers = np.arange(1, ITEMS + buys + 1) * 1_024

    def offers(self) -> Batch:
        return events(self.ticks[:ITEMS], self.offer_keys, self.prices, self.offered)

    def buys(self, first: int, end: int) -> Batch:
        ticks = self.ticks[ITEMS + first : ITEMS + end]
        return events(ticks, self.buy_keys[first:end], self.quantities[first:end])

    def expected(self, buys: int) -> dict[int, tuple[int, int]]:
        """Item -> (price, available), from scratch."""
        order = np.argsort(self.offer_keys)
        position = order[np.searchsorted(self.offer_keys[order], self.buy_keys[:buys])]
        left = self.offered - np.bincount(position, self.quantities[:buys], ITEMS).astype(np.int64)
        rows = zip(self.offer_keys.tolist(), self.prices.tolist(), left.tolist(), strict=True)
        return {key: (price, available) for key, price, available in rows if available > 0}


def events(ticks: Integers, *columns: Integers) -> Batch:
    return Batch((ticks, *columns), ticks, ticks, None)  # type: ignore[arg-type]  # the kernel looks at columns only


def tickets() -> tuple[KernelSpec, tuple[Relation, ...], Relation]:
    path = Path(__file__).parent.parent / "examples" / "tickets" / "tickets.mpl"
    graph = optimise(validate(build_graph(check(Source(path.name, path.read_text(encoding="utf-8"))).require())))
    plan = build_plan(graph, kernels=False)
    component = fused_or_reason(graph, plan, "Available")
    assert not isinstance(component, str), component
    assert isinstance(component.operator, KernelSpec)
    inputs = tuple(plan.components[edge.sender].relation for edge in component.in_edges)
    return component.operator, inputs, component.relation


def run(operator: KernelOperator, work: Workload, buys: int, batch: int) -> tuple[float, int]:
    """CPU seconds for the buys, and the number of changes."""
    operator.take(0, work.offers())
    rows, changes, edge = operator.table, 0, 1
    started = time.thread_time()
    for step, first in enumerate(range(0, buys, batch), start=1):
        touched = operator.take(edge, work.buys(first, min(first + batch, buys)))
        rows.mark(touched, step)
        changes += len(operator.changes())
        edge = 3 - edge
    seconds = time.thread_time() - started
    shown = operator.rows.select(operator.rows.visible_slots()).rows()
    found = {row[0]: (row[1], row[2] - row[3]) for row in shown}  # type: ignore[operator]
    assert found == work.expected(buys), "the view is wrong"
    return seconds, changes


def measure(spec: KernelSpec, inputs: tuple[Relation, ...], relation: Relation, work: Workload, tier: str) -> None:
    for batch in BATCHES:
        total = len(work.buy_keys) if tier == "native" else PLAIN_BUYS_MAX
        buys = min(total, CALLS_MAX * batch)
        speeds = []
        for _ in range(ROUNDS):
            operator = spec.build(inputs, relation)
            assert isinstance(operator, KernelOperator)
            assert operator.is_native == (tier == "native")
            seconds, changes = run(operator, work, buys, batch)
            speeds.append(buys / seconds / 1e6)
        row = f"{tier:8}{batch:>8,}{buys:>12,}{min(speeds):>8.2f} -{max(speeds):>6.2f}"
        print(f"{row}{changes / buys:>10.2f}{1e6 * seconds * batch / buys:>12.1f}")


def compile_times(folder: Path) -> None:
    """Fresh processes: compiling into an empty folder, then loading what is there."""
    command = [sys.executable, "-m", "bench.kernels", "--wait"]
    for what in ("compile, in another process", "load from the folder on disk"):
        started = time.perf_counter()
        said = subprocess.run(
            command, env={**os.environ, CACHE_VARIABLE: str(folder)}, check=True, capture_output=True, text=True
        ).stdout
        print(f"{what:32} {said.strip()}   (whole process {time.perf_counter() - started:.2f} s)")


def wait_only() -> None:
    spec, inputs, relation = tickets()
    started = time.perf_counter()
    operator = spec.build(inputs, relation)
    assert isinstance(operator, KernelOperator)
    plain_s = time.perf_counter() - started
    is_native = operator.wait_for_native(120)
    print(f"plain after {1e3 * plain_s:.1f} ms, native {is_native} after {time.perf_counter() - started:.2f} s")


def main(arguments: list[str]) -> None:
    if arguments == ["--wait"]:
        wait_only()
        return
    work = Workload(int(arguments[0]) if arguments else BUYS)
    with tempfile.TemporaryDirectory() as folder:
        compile_times(Path(folder))
        os.environ[CACHE_VARIABLE] = folder
        spec, inputs, relation = tickets()
        print("tier       batch        buys   M events/s     changes   us a batch")
        plain = replace(spec, digest=spec.digest + "_plain")
        os.environ["SMILE_KERNELS"] = "plain"
        measure(plain, inputs, relation, work, "plain")
        del os.environ["SMILE_KERNELS"]
        operator = spec.build(inputs, relation)
        assert isinstance(operator, KernelOperator)
        assert operator.wait_for_native(120)
        measure(spec, inputs, relation, work, "native")
        operator.take(0, work.offers())
        size = sum(array.nbytes for array in operator.table.arrays.values())
        print(f"state: {size / ITEMS:.0f} bytes an item, capacity for {len(operator.table.arrays['at']):,}")


if __name__ == "__main__":
    main(sys.argv[1:])
