"""Starts the peers, each in a process of its own, by the first interpreter that has its package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.peers.outcome import Outcome

ROOT = Path(__file__).parents[2]
VARIABLE = "SMILE_BENCH_PYTHON"
"""Names interpreters of environments that have the peers' packages, joined by `:`."""

TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Peer:
    module: str
    package: str | None = None
    way: tuple[str, ...] = ()


PEERS = (
    Peer("python_loop"),
    Peer("bytewax_fused", "bytewax"),
    Peer("polars_recompute", "polars", ("recompute",)),
    Peer("polars_recompute", "polars", ("totals",)),
)


def interpreter_with(package: str | None) -> str | None:
    """The first interpreter that can import it, and numpy."""
    for python in [*filter(None, os.environ.get(VARIABLE, "").split(":")), sys.executable]:
        program = f"import numpy, {package}" if package else "import numpy"
        try:
            if subprocess.run([python, "-c", program], check=False, capture_output=True).returncode == 0:
                return python
        except OSError as error:
            raise SystemExit(f"{VARIABLE}: {python}: {error.strerror}") from None
    return None


def advice(package: str) -> str:
    return (
        f"{package} is not installed: python -m venv DIR && DIR/bin/pip install numpy {package}, "
        f"then {VARIABLE}=DIR/bin/python make bench"
    )


def run_peer(peer: Peer, buys: int, items: int, seconds: float) -> Outcome | str:
    """What came out, or why nothing did."""
    python = interpreter_with(peer.package)
    if python is None:
        return advice(str(peer.package))
    sizes = ["--buys", str(buys), "--items", str(items), "--seconds", str(seconds)]
    command = [python, "-m", f"bench.peers.{peer.module}", *sizes, *peer.way]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"{peer.module} took longer than {TIMEOUT_S:.0f} s"
    if done.returncode:
        return f"{peer.module} failed: {done.stderr.strip().splitlines()[-1:]}"
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))
