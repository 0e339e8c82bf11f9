"""Goal: a kernel whose state was made outside shows the rows that it would show had it been fed every event.

The state of each part is taken from a kernel that was fed, as if it had been computed elsewhere; rows, visibility and
the way on must be the same.
"""

from __future__ import annotations

import numpy as np
import pytest

import smile
from compiler.bulk.state import PartStates, StateProgram, state_program
from compiler.kernels.module import load_functions
from runtime.kernels.install import PartState, Texts, install_parts
from runtime.kernels.operator import KernelOperator
from runtime.kernels.rows import Array, distinct_keys
from runtime.kernels.spec import Function
from runtime.operators.errors import Overflow
from runtime.plan import ValueType
from tests.kernels.random_stars import RandomStar
from tests.kernels.stars import STREAMS, VIEWS, Case, Events, fused


def shown(kernel: KernelOperator) -> dict[object, object]:
    rows = kernel.rows
    return {row[: rows.key_width]: row for row in rows.select(rows.visible_slots()).rows()}


def program_of(text: str) -> StateProgram:
    program = smile.compile(text)
    return state_program(program.graph, program.plan, "V")


def settling_of(program: StateProgram) -> Function:
    assert program.settling is not None
    return load_functions(program.settling, 1)[0]


def installed(star: Case, fed: KernelOperator, text: str) -> KernelOperator:
    """A fresh kernel with the state of the other one: of each part the keys that it has something for."""
    spec, arrays = fed.spec, fed.table.export()["columns"]
    assert isinstance(arrays, dict)
    program = program_of(text)
    parts = []
    for result in program.results:
        assert isinstance(result, PartStates)
        has = arrays[f"has_{result.part}"] != 0

        def column(name: str, kind: ValueType, has: Array = has) -> Array | Texts:
            values: Array = arrays[name][has]
            if kind is not ValueType.TEXT:
                return values
            return Texts(np.arange(len(values)), [fed.dictionary.texts[code] for code in values.tolist()])

        keys = [column(f"key_{number}", kind) for number, kind in enumerate(spec.keys)]
        states = {number: column(f"state_{number}", spec.state[number].type) for number in result.states}
        parts.append(PartState(result.part, keys, states))
    kernel = star.kernel()
    install_parts(kernel, parts, settling_of(program))
    return kernel


TEXTS = [*VIEWS.values(), *(RandomStar(seed).text for seed in range(12))]


def test_rows_follow_from_the_state() -> None:
    visible = 0
    for seed, view in enumerate(TEXTS):
        text = STREAMS + view
        star = fused(text)
        fed = star.kernel()
        batches = list(Events(star, seed).batches(40, 8))
        for edge, batch in batches[:25]:
            fed.take(edge, batch)
        kernel = installed(star, fed, text)
        assert shown(kernel) == shown(fed), text
        restored = star.kernel()
        restored.restore(kernel.export(), bulk_horizon=10**9)
        assert set(restored.rows.max_tick) <= {10**9, -1}
        for edge, batch in batches[25:]:
            fed.take(edge, batch)
            restored.take(edge, batch)
            assert shown(restored) == shown(fed), text
        visible += len(shown(fed))
    assert visible > 50


def test_a_row_that_cannot_be_computed_is_named() -> None:
    text = """stream S (item int, up int[0..9]);
    view V = from S |> aggregate total := sum(up), most := max(up) group by item |> extend product := most * total;"""
    program = program_of(text)
    (result,) = program.results
    assert isinstance(result, PartStates)
    states = {number: np.array([2, 2**40], np.int64) for number in result.states}
    part = PartState(0, [np.array([5, 7], np.int64)], states)
    with pytest.raises(Overflow, match=r"group \(item=7\)"):
        install_parts(fused(text).kernel(), [part], settling_of(program))


def test_keys_are_found_once() -> None:
    first, second = np.array([3, 1, 3, 2, 1], np.int64), np.array([0, 9, 0, 5, 8], np.int64)
    keys, places = distinct_keys([first, second])
    assert sorted(zip(*(key.tolist() for key in keys), strict=True)) == [(1, 8), (1, 9), (2, 5), (3, 0)]
    assert all((keys[0][places] == first) & (keys[1][places] == second))
    assert [len(key) for key in distinct_keys([first[:0], second[:0]])[0]] == [0, 0]
