"""From a recognised star to the text of its module, and to the functions in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from compiler.kernels.model import Edge, Star
from compiler.kernels.star import Recognised
from compiler.plan.layout import Layout
from runtime.kernels.rows import HALF, HASH_HIGH, HASH_LOW
from runtime.kernels.spec import Function, InputColumn, KernelSpec, Meta
from runtime.loops.code import environment
from runtime.loops.safety import check_module

TEMPLATE = "keyed_star.py.j2"
SETTLING = "keyed_star_settle.py.j2"
DIGEST_LENGTH = 24
LOADED_MAX = 512
"""Modules kept for views that differ in constants only: checking and loading takes longer than all the rest."""


def make_spec(recognised: Recognised, bases: Mapping[str, Layout]) -> KernelSpec:
    """The kernel, its text printed, checked and loaded."""
    star, constants = recognised.star, recognised.constants
    inputs = tuple(
        tuple(InputColumn(number, bases[edge.stream].relation.columns[number].type) for number in edge.columns)
        for edge in star.edges
    )
    loops = _loops(star.edges, inputs)
    spec = KernelSpec(
        text="",
        digest="",
        functions=(),
        loops=loops,
        undone=(),
        inputs=inputs,
        keys=recognised.keys,
        parts=len(star.flags),
        state=star.state,
        computed=recognised.computed,
        outputs=recognised.outputs,
        integers=tuple(constants.integers),
        floats=tuple(constants.floats),
        texts=tuple(constants.texts),
        reasons=tuple(constants.reasons),
    )
    first_edges = [star.edges[loops.index(loop)] for loop in range(max(loops) + 1)]
    spec = replace(spec, undone=tuple(star.undone(edge) for edge in first_edges))
    text = (
        environment()
        .get_template(TEMPLATE)
        .render(star=star, edges=first_edges, spec=spec, meta=Meta, hash_low=HASH_LOW, hash_high=HASH_HIGH, half=HALF)
    )
    signatures = repr([spec.signature(loop) for loop in range(len(first_edges))])
    digest = hashlib.sha256(f"{text}\n{signatures}".encode()).hexdigest()[:DIGEST_LENGTH]
    return replace(spec, text=text, digest=digest, functions=load_functions(text, len(first_edges)))


def settling_text(star: Star, spec: KernelSpec) -> str:
    """A module whose `loop_0` computes the row of every key from its state: for states that were made outside."""
    return environment().get_template(SETTLING).render(star=star, spec=spec, meta=Meta)


def _loops(edges: Sequence[Edge], inputs: Sequence[object]) -> tuple[int, ...]:
    """The number of each edge's loop: streams that are merged do the same to the state, so one loop serves them."""
    known: dict[object, int] = {}
    found = []
    for edge, columns in zip(edges, inputs, strict=True):
        same = (edge.columns, edge.lines, edge.key, edge.parts, columns)
        found.append(known.setdefault(same, len(known)))
    return tuple(found)


@lru_cache(maxsize=LOADED_MAX)
def load_functions(text: str, loops: int) -> tuple[Function, ...]:
    """The functions of a module, for the plain tier."""
    names: dict[str, object] = {"__builtins__": {"range": range, "len": len}}
    exec(compile(check_module(text), "<generated kernel>", "exec"), names)  # noqa: S102  the tree was checked
    return tuple(names[f"loop_{loop}"] for loop in range(loops))  # type: ignore[misc]
