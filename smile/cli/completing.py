"""Names for shell completion: what the run that was started here has. Must be fast, and silent about every failure."""

from __future__ import annotations

import json
from pathlib import Path


def brokers(incomplete: str) -> list[str]:
    from smile.deploy.run_record import find_run

    run = find_run(Path.cwd())
    return _beginning(incomplete, list(run.brokers) if run is not None else [])


def streams(incomplete: str) -> list[str]:
    return _beginning(incomplete, _declared("streams"))


def views(incomplete: str) -> list[str]:
    return _beginning(incomplete, [*_declared("subscriptions"), *_declared("views"), *_declared("streams")])


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _declared(kind: str) -> list[str]:
    """From the deployment that the brokers of the run keep."""
    from smile.deploy.run_record import find_run

    run = find_run(Path.cwd())
    if run is None:
        return []
    try:
        folder = Path(next(iter(run.brokers.values())).data)
        deployment = json.loads((folder / "deployment.json").read_bytes())
        return [str(name) for name in json.loads(deployment["files"]["manifest.json"])[kind]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
