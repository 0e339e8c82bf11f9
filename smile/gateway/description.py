"""What there is to read and to publish to, and snapshots filtered by values of columns."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.plan.build import ViewPlan
from smile.errors import SmileError
from smile.gateway.rights import HttpUser
from smile.program import Program
from smile.remote.system import RemoteSystem
from smile.values import Refused, decode, encode, from_text


def describe(system: RemoteSystem, user: HttpUser) -> dict[str, object]:
    """Only what this user may read or publish to."""
    program, plan = system.program, system.program.plan
    kinds = (("view", plan.views), ("stream", plan.streams), ("table", plan.tables))
    found = [
        {
            "name": name,
            "kind": kind,
            "columns": _columns(one),
            "publish": kind == "stream" and user.rights.publish.contain(name),
        }
        for kind, relations in kinds
        for name, one in relations.items()
        if user.may_read(name, streams_below(program, name)) or (kind == "stream" and user.rights.publish.contain(name))
    ]
    declared = [
        {"name": one.name, "view": one.view, "emit": one.emit}
        for one in program.subscriptions.values()
        if user.may_read(one.view, streams_below(program, one.view))
    ]
    return {"program": program.checked.source.name, "views": found, "subscriptions": declared}


def _columns(plan: ViewPlan) -> list[dict[str, object]]:
    return [
        {
            "name": column.name,
            "type": str(column.type),
            "nullable": column.nullable,
            "key": position in plan.schema.key,
        }
        for position, column in enumerate(plan.schema.columns)
        if not column.hidden
    ]


def streams_below(program: Program, relation: str) -> list[str]:
    """The streams and tables that a relation is computed from."""
    plan = program.plan
    needed = plan.needed_for([program.relation(relation).component])
    return [component.name for component in needed if component.is_stream]


def filtered(rows: list[dict[str, object]], plan: ViewPlan, conditions: Mapping[str, str]) -> list[dict[str, object]]:
    """The rows whose columns have these values, given as text; `null` for none."""
    types = {column.name: column.type for column in plan.schema.columns if not column.hidden}
    wanted: dict[str, object] = {}
    for name, text in conditions.items():
        if name not in types:
            raise SmileError(f"`{plan.name}` has no column `{name}`; it has {', '.join(types)}")
        try:
            value = encode(from_text(text, types[name]), types[name])
        except Refused as refused:
            if text != "null":
                raise SmileError(f"column `{name}`: {text[:80]!r} {refused}") from None
            value = None
        wanted[name] = decode(value, types[name])
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]
