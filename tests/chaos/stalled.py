"""One subscriber that stands still among many: what do the others notice, and what does it cost the broker?

    python -m tests.chaos.stalled --members 100 --seconds 60

The same steady traffic flows through a calm phase, a phase in which one subscriber is stopped (SIGSTOP), and both
once more; what the others hear, and how late, is compared between the phases of one run, because the machine differs
from run to run. Then large messages: the broker's memory must not keep what the stalled one does not take. At last it
is continued and must arrive at the rows that everybody has.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

import smile
from smile.local import LocalBrokers
from tests.chaos import crowd

PROGRAM = Path(__file__).parent / "readings.mpl"
SENSORS = 20
RATE = 20.0
MEMBERS_PER_PROCESS = 33
NOTE_BYTES = 40_000
START_S = 120.0


@dataclass
class Outcome:
    """Latencies in milliseconds by phase (median, 95th percentile); memory in bytes."""

    calm: list[tuple[float, float]] = field(default_factory=list)
    stalled: list[tuple[float, float]] = field(default_factory=list)
    heard_calm: int = 0
    heard_stalled: int = 0
    grown_calm: int = 0
    grown_stalled: int = 0
    sent_stalled: int = 0
    late: list[str] = field(default_factory=list)

    def ratio(self) -> float:
        """Median latency with one stalled over that without, the best phase of each: noise only adds."""
        return min(one for one, _ in self.stalled) / min(one for one, _ in self.calm)

    def summary(self) -> str:
        return (
            f"median (95th) latency in ms, calm {_shown(self.calm)}, one stalled {_shown(self.stalled)}: ratio "
            f"{self.ratio():.2f}; changes heard: {self.heard_calm} and {self.heard_stalled}; the broker grew "
            f"{self.grown_calm / 1e6:.1f} MB in calm, {self.grown_stalled / 1e6:.1f} MB with one stalled, while "
            f"{self.sent_stalled / 1e6:.1f} MB were sent; "
            + ("all rows equal in the end" if not self.late else "; ".join(self.late))
        )


def _shown(phases: list[tuple[float, float]]) -> str:
    return ", ".join(f"{median:.1f} ({high:.1f})" for median, high in phases)


class Experiment:
    def __init__(self, members: int, seconds: float, messages: int, folder: Path) -> None:
        self.members, self.seconds, self.messages, self.folder = members, seconds, messages, folder
        self.outcome = Outcome()
        self._stack = ExitStack()
        self._newest: dict[int, int] = {}
        self._sent = 0

    def __call__(self) -> Outcome:
        with self._stack:
            self._brokers = self._stack.enter_context(LocalBrokers(PROGRAM, 1, self.folder / "brokers"))
            self._system: Any = self._stack.enter_context(smile.connect(self._brokers.address))
            self._latencies()
            self._memory()
        return self.outcome

    # The crowd

    def _crowd(
        self, stack: ExitStack, name: str, counts: list[int]
    ) -> tuple[list[subprocess.Popen[bytes]], list[Path]]:
        """One process for each count; the first is the one that will be stopped."""
        outs = [self.folder / f"{name}-{number}.json" for number in range(len(counts))]
        processes = []
        for count, out in zip(counts, outs, strict=True):
            order = crowd.Order(self._brokers.address, count, str(out), str(self._stop_file(name)))
            process = subprocess.Popen([sys.executable, "-m", "tests.chaos.crowd", order.to_text()])
            processes.append(process)
            stack.callback(self._end, process)
        end = time.monotonic() + START_S
        while not all(Path(f"{out}.ready").exists() for out in outs):
            if time.monotonic() > end:
                raise TimeoutError(f"no crowd within {START_S:.0f} s")
            time.sleep(0.05)
        return processes, outs

    def _stop_file(self, name: str) -> Path:
        return self.folder / f"{name}.stop"

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
        process.kill()
        process.wait()

    def _publish(self, note: str) -> None:
        sensor = self._sent % SENSORS
        self._sent += 1
        sent = time.monotonic_ns() // 1000
        self._system.publish("Readings", {"sensor": sensor, "sent": sent, "note": note})
        self._newest[sensor] = sent

    def _traffic(self, seconds: float) -> tuple[float, float]:
        """Steady; when it began and ended."""
        start = time.monotonic()
        for number in range(int(seconds * RATE)):
            time.sleep(max(0.0, start + number / RATE - time.monotonic()))
            self._publish("")
        return start, time.monotonic()

    # What the others notice

    def _latencies(self) -> None:
        others = self.members - 1
        counts = [1] + [min(MEMBERS_PER_PROCESS, others - at) for at in range(0, others, MEMBERS_PER_PROCESS)]
        with ExitStack() as stack:
            processes, outs = self._crowd(stack, "latency", counts)
            self._traffic(1.0)  # everything has been used once
            phases = []
            for is_stalled in (False, True, False, True):
                processes[0].send_signal(signal.SIGSTOP if is_stalled else signal.SIGCONT)
                phases.append((is_stalled, *self._traffic(self.seconds)))
            processes[0].send_signal(signal.SIGCONT)
            results = self._results("latency", outs)
        heard = [each for members in results[1:] for member in members for each in member["heard"]]
        for is_stalled, start, end in phases:
            found = sorted(latency * 1000 for at, latency in heard if start <= at - latency <= end)
            pair = statistics.median(found), found[int(len(found) * 0.95)]
            (self.outcome.stalled if is_stalled else self.outcome.calm).append(pair)
            self.outcome.heard_calm += 0 if is_stalled else len(found)
            self.outcome.heard_stalled += len(found) if is_stalled else 0

    def _results(self, name: str, outs: list[Path]) -> list[list[dict[str, Any]]]:
        """Ends a crowd, when everybody has caught up or had the time to, and compares what they have."""
        meant = {str(sensor): sent for sensor, sent in self._newest.items()}
        made = self.folder / f"{name}.meant"
        made.write_text(json.dumps(meant))
        made.replace(self._stop_file(name))
        end = time.monotonic() + 2 * crowd.CATCH_UP_S
        while not all(out.exists() for out in outs) and time.monotonic() < end:
            time.sleep(0.05)
        results: list[list[dict[str, Any]]] = [json.loads(out.read_text()) for out in outs]
        wrong = [number for number, members in enumerate(results) for member in members if member["rows"] != meant]
        if wrong:
            self.outcome.late.append(
                f"{name}: {len(wrong)} subscribers do not have the newest rows (processes {wrong})"
            )
        return results

    # What it costs the broker

    def _memory(self) -> None:
        pid = self._brokers.pid(self._brokers.names[0])
        assert pid is not None
        broker = psutil.Process(pid)
        with ExitStack() as stack:
            processes, outs = self._crowd(stack, "memory", [1, 2])
            self._large_messages()  # buffers of the first round are not what is measured
            self.outcome.grown_calm = self._growth(broker)
            os.kill(processes[0].pid, signal.SIGSTOP)
            self.outcome.grown_stalled = self._growth(broker)
            self.outcome.sent_stalled = self.messages * NOTE_BYTES
            os.kill(processes[0].pid, signal.SIGCONT)
            self._results("memory", outs)

    def _growth(self, broker: psutil.Process) -> int:
        before: int = broker.memory_info().rss
        self._large_messages()
        after: int = broker.memory_info().rss
        return after - before

    def _large_messages(self) -> None:
        for _ in range(self.messages):
            self._publish("x" * NOTE_BYTES)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.stalled", description=__doc__)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each of the four phases")
    parser.add_argument("--messages", type=int, default=2_000, help="large ones, in each of three rounds")
    options = parser.parse_args()
    os.environ["SMILE_KERNELS"] = "plain"  # a compiler that is loaded in the middle would be measured too
    with tempfile.TemporaryDirectory(prefix="smile-stalled-") as folder:
        outcome = Experiment(options.members, options.seconds, options.messages, Path(folder))()
    print(outcome.summary())
    return 1 if outcome.late else 0


if __name__ == "__main__":
    sys.exit(main())
