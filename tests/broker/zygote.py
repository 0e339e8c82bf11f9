"""A process that has everything loaded and forks brokers on demand: real processes, started in no time.

Reads one JSON object per line, answers with the pid of the process it forked. Run by `processes.py`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import smile
import smile.broker
from smile.broker import serve
from smile.deploy.bundles import BundleRefused, verify
from smile.deploy.config import BrokerSettings, SecuritySettings
from smile.deploy.deployment import Deployment
from smile.program import Program

VERIFIED: dict[str, Program] = {}


def verify_once(deployment: Deployment) -> Program:
    """Compiling takes longer than all the rest of a start; here, every deployment is compiled once."""
    if deployment.digest not in VERIFIED:
        VERIFIED[deployment.digest] = verify(deployment)
    return VERIFIED[deployment.digest]


def prepare(wanted: dict[str, str]) -> None:
    """In the process that forks, so that the next fork has it."""
    deployment = Deployment.read(Path(wanted["data"]))
    if deployment is not None:
        with suppress(BundleRefused):
            verify_once(deployment)


def broker(
    log: str, data: str, security: list[str] | None = None, archive: str | None = None, **settings: object
) -> int:
    secured = None if security is None else SecuritySettings(Path(security[0]), Path(security[1]))
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    setattr(smile.broker, "verify", verify_once)  # noqa: B010
    kept = None if archive is None else Path(archive)
    return serve(BrokerSettings(data=Path(data), security=secured, archive=kept, **settings))  # type: ignore[arg-type]


def subscriber(address: str, view: str, out: str) -> int:
    """Subscribe and note how many changes came, for ever."""
    system = smile.connect(address)
    total = 0
    for batch in system.subscribe(view).batches():
        total += len(batch)
        made = Path(out + ".new")
        made.write_text(json.dumps([total, next(reversed(list(batch.changes()))).row]))
        made.rename(out)
    return 0


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        wanted = json.loads(line)
        if wanted["run"] == "broker":
            prepare(wanted)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = 1
            try:
                code = globals()[wanted.pop("run")](**wanted)
            finally:
                sys.stdout.flush()
                os._exit(code)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
