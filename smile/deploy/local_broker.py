"""One broker process of a local run: what it is, and what should become of it. `smile/local.py` looks after it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from smile.deploy.nursery import Child
from smile.deploy.run_record import BrokerProcess, State

RESTART_DELAY_S = 0.1
RESTART_DELAY_S_MAX = 5.0
DOUBLINGS_MAX = 10
SERVING_FILE = "serving.json"


@dataclass
class LocalBroker:
    """One process and what should become of it. Guarded by the lock of its LocalBrokers."""

    name: str
    address: str
    folder: Path
    log: Path
    http: str | None = None
    process: Child | None = None
    starts: int = 0
    early_deaths: int = 0
    is_wanted: bool = True
    is_urgent: bool = False  # start it as soon as it is down
    is_given_up: bool = False
    has_served: bool = False
    start_at: float = 0.0
    last_code: int | None = None

    def state(self) -> State:
        if self.process is None:
            if self.is_given_up:
                return "failed"
            return "down" if self.is_wanted else "stopped"
        if _is_frozen(self.process.pid):
            return "paused"
        return "serving" if self.has_served else "starting"

    def serves(self) -> bool:
        """Has this very process said that it serves?"""
        try:
            said = json.loads((self.folder / SERVING_FILE).read_bytes())
            return self.process is not None and said["pid"] == self.process.pid
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def record(self) -> BrokerProcess:
        pid = self.process.pid if self.process is not None else None
        return BrokerProcess(
            self.name, self.address, self.http, str(self.folder), str(self.log), pid, self.state(), self.starts
        )

    def put_off(self) -> None:
        """Start it later, and later with each early death."""
        delay = min(RESTART_DELAY_S * 2 ** min(self.early_deaths, DOUBLINGS_MAX), RESTART_DELAY_S_MAX)
        self.start_at = time.monotonic() + delay


def _is_frozen(pid: int) -> bool:
    """Whoever froze it: `smile fault pause` works from another terminal."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] == "T"
        )
    except (OSError, IndexError):
        return False
