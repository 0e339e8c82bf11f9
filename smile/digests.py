"""Digests of components: what a component computes, from what, over which data.

Two components with the same digest have the same state for the same events. Checkpoints, attachments and resume tokens
are only good for the digest they were made with: a changed view starts from the log, an unchanged one goes on.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from compiler.plan.build import ProgramPlan
from compiler.plan.show import component_data
from runtime.plan import Component
from smile.deploy.bundles import components_of
from smile.deploy.deployment import TABLES_FOLDER, Deployment
from smile.program import Program


def component_digests(deployment: Deployment, program: Program) -> dict[str, str]:
    """Of all hosted components. Each includes those of what it reads.

    A stream can only get more columns (`runtime/log/schema.py`), which changes nothing for whoever does not use them:
    so its readers depend on which stream it is, and on its columns only as far as they use them.
    """
    found: dict[str, str] = {}
    read: dict[str, str] = {}
    for name, component in components_of(deployment, program).items():
        said: dict[str, object] = {
            "version": version("smile-mpl"),
            "data": deployment.identity,
            "plan": component_data(component),
            "code": _code(program.plan, name),
            "rows": _rows(deployment, component),
            "reads": [read[edge.sender] for edge in component.in_edges],
        }
        found[name] = read[name] = _digest(said)
        if name in program.plan.streams and component.is_stream:
            found[name] = _digest({**said, "defaults": program.checked.program.streams[name].defaults})
            read[name] = _digest({**said, "plan": {**component_data(component), "relation": None}})
    return found


def _digest(said: dict[str, object]) -> str:
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _code(plan: ProgramPlan, name: str) -> object:
    """What its expressions say, wherever in the program's text they come from."""
    part = plan.parts.get(name)
    return None if part is None else part.module.said()


def _rows(deployment: Deployment, component: Component) -> list[str]:
    """A table with other rows is another table, and so is one on another broker: there its rows get other ticks."""
    digest = deployment.file_digest(f"{TABLES_FOLDER}{component.name}.csv") if component.is_stream else None
    return [] if digest is None else [digest, deployment.placement[component.name]]
