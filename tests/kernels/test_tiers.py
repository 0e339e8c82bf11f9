"""Goal: the plain and the native tier are one kernel, bit for bit.

Both take the same batches, of 1 to a few hundred rows, through growth of slots and batches, rehashing, overflow and
checkpoints; after each batch all arrays, touched slots, changes and failures are equal. Compiling takes a second or two
for each program, so there are few programs and many batches.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import runtime
from runtime.batch import Batch
from runtime.kernels import tier as tiers
from runtime.kernels.operator import KernelOperator
from runtime.kernels.spec import Meta
from runtime.kernels.tier import CACHE_VARIABLE, MODE_VARIABLE
from runtime.operators.errors import Overflow
from tests.kernels.random_stars import RandomStar
from tests.kernels.stars import STREAMS, Case, Events, case, fused, state_of

COMPILE_S_MAX = 300


def both_tiers(star: Case, monkeypatch: pytest.MonkeyPatch) -> tuple[KernelOperator, KernelOperator]:
    native = star.kernel()
    assert native.wait_for_native(COMPILE_S_MAX)
    with monkeypatch.context() as patched:
        patched.setenv(MODE_VARIABLE, "plain")
        plain = replace(star, component=replace(star.component, operator=as_another(star))).kernel()
    assert not plain.is_native
    return plain, native


def as_another(star: Case):  # type: ignore[no-untyped-def]
    """The same kernel under another digest: tiers are shared by digest."""
    return replace(star.spec, digest=star.spec.digest[:-1] + "_")


def take_both(plain: KernelOperator, native: KernelOperator, edge: int, batch: Batch) -> str:
    """Apply a batch to both; what it failed with, if it did."""
    failures, touched = [], []
    for operator in (plain, native):
        try:
            touched.append(list(operator.take(edge, batch)))
            failures.append("")
        except Overflow as failure:
            failures.append(str(failure))
    assert failures[0] == failures[1]
    if not failures[0]:
        assert touched[0] == touched[1]
    compare(plain, native)
    return failures[0]


def compare(plain: KernelOperator, native: KernelOperator) -> None:
    assert plain.table.count == native.table.count
    count = plain.table.count
    for name, _ in plain.spec.columns:
        assert np.array_equal(plain.table.arrays[name][:count], native.table.arrays[name][:count]), name
    assert np.array_equal(plain.table.arrays["table"], native.table.arrays["table"])
    mine, theirs = plain.changes(), native.changes()
    assert len(mine) == len(theirs)
    assert np.array_equal(mine.slots, theirs.slots)
    assert np.array_equal(mine.visible, theirs.visible)
    assert mine.columns() == theirs.columns()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tickets", "totals", "both", "two columns"])
def test_equal_bit_for_bit(name: str, native_tier: None, monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    star = case(name)
    for seed in range(3 * cases):
        plain, native = both_tiers(star, monkeypatch)
        events = Events(star, seed, keys=4_000)
        for number, (edge, batch) in enumerate(events.batches(40, rows_max=(1, 30, 400)[seed % 3])):
            assert take_both(plain, native, edge, batch) == ""
            if number % 10 == 9:
                plain, native = swapped(star, plain, native)
        if seed % 3 == 2:
            assert plain.table.count > 600, "nothing grew"


def swapped(star: Case, plain: KernelOperator, native: KernelOperator) -> tuple[KernelOperator, KernelOperator]:
    """Each goes on from the other's checkpoint."""
    assert state_of(plain)["rows"] == state_of(native)["rows"]
    states = [operator.export()["rows"] for operator in (plain, native)]
    for operator, rows in ((plain, states[1]), (native, states[0])):
        fresh = operator.spec.build(operator.input_relations, operator.relation)
        assert isinstance(fresh, KernelOperator)
        fresh.restore({"kernel": operator.spec.digest, "rows": rows})
        if operator is plain:
            restored_plain = fresh
        else:
            restored_native = fresh
    assert restored_native.is_native
    assert not restored_plain.is_native
    return restored_plain, restored_native


@pytest.mark.slow
def test_random_stars_are_equal_too(native_tier: None, monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    stars = [fused(STREAMS + RandomStar(seed).text) for seed in range(4 * cases)]
    for star in stars:
        star.kernel()._tier.request()  # all at once: one process compiles them together
    for seed, star in enumerate(stars):
        plain, native = both_tiers(star, monkeypatch)
        for edge, batch in Events(star, seed, keys=40).batches(30, rows_max=30):
            assert take_both(plain, native, edge, batch) == ""


LARGE = """
stream S (item int, up int, big int, price decimal(10,2), few decimal(18,6));
view V = from S |> aggregate total := sum(up), most := max(big) group by item
  |> extend product := most * total, sum_of := most + total, difference := most - total;
"""


@pytest.mark.slow
def test_overflow_is_found_alike_and_nothing_is_applied(native_tier: None, monkeypatch: pytest.MonkeyPatch) -> None:
    star = fused(LARGE)
    plain, native = both_tiers(star, monkeypatch)
    rng = Random(7)
    edges_of_range = [0, 1, -1, 2, -2, 3, 2**31, -(2**31), 2**32 + 1, 3_037_000_499, 3_037_000_500]
    edges_of_range += [2**62, -(2**62), 2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1]
    failed = applied = 0
    relation = star.plan.components["S"].relation
    for tick in range(1, 1_500):
        rows = rng.randint(1, 3)
        columns = {
            "item": [rng.randint(0, 400) for _ in range(rows)],
            "up": [rng.choice(edges_of_range) for _ in range(rows)],
            "big": [rng.choice(edges_of_range) for _ in range(rows)],
        }
        wanted = [columns.get(column.name, [0] * rows) for column in relation.columns[1:]]
        before = plain.export()
        if take_both(plain, native, 0, Batch.events([tick * 4 + i for i in range(rows)], wanted)):
            failed += 1
            after = plain.export()
            known = len(before["rows"]["columns"]["key_0"])  # type: ignore[index]
            for name, column in after["rows"]["columns"].items():  # type: ignore[index]
                assert np.array_equal(column[:known], before["rows"]["columns"][name]), name  # type: ignore[index]
            for slot in range(known, plain.table.count):
                assert not plain.table.arrays["has_0"][slot]
        else:
            applied += 1
            check_products(plain)
    assert failed > 100
    assert applied > 100


def check_products(operator: KernelOperator) -> None:
    """What was let through is exact, by Python's unbounded numbers."""
    for slot in operator.rows.visible_slots():
        _, *parts = operator.rows.row_at(slot)
        names = [column.name for column in operator.relation.columns[1:]]
        row = dict(zip(names, parts, strict=True))
        total = row["total+"] - row["total-"] if "total+" in row else row["total"]  # type: ignore[operator]
        assert row["product"] == row["most"] * total  # type: ignore[operator]
        assert row["sum_of"] == row["most"] + total  # type: ignore[operator]
        assert row["difference"] == row["most"] - total  # type: ignore[operator]


@pytest.mark.slow
def test_changes_to_native_between_two_batches(native_tier: None, monkeypatch: pytest.MonkeyPatch) -> None:
    star = case("tickets")
    plain, native = both_tiers(star, monkeypatch)
    tier = native._tier
    compiled = tier.native
    for edge, batch in Events(star, 3).batches(30, 5):
        monkeypatch.setattr(tier, "native", compiled if tier.native is None else None)
        take_both(plain, native, edge, batch)
    assert plain.table.count > 5


@pytest.mark.slow
def test_compiled_kernels_are_only_loaded(native_tier: None, kernel_cache: Path) -> None:
    star = case("tickets")
    assert star.kernel().wait_for_native(COMPILE_S_MAX)
    code = (
        "import time; from tests.kernels.stars import case; kernel = case('tickets').kernel();"
        "assert not kernel.is_native; assert kernel.wait_for_native(60); import subprocess; print('loaded')"
    )
    compiled = {path: path.stat().st_mtime_ns for path in kernel_cache.rglob("*.nb?")}
    assert compiled
    environment = {**os.environ, CACHE_VARIABLE: str(kernel_cache)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "loaded", done.stderr
    assert {path: path.stat().st_mtime_ns for path in kernel_cache.rglob("*.nb?")} == compiled


def test_without_numba_it_stays_plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(MODE_VARIABLE)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    (tmp_path / "file").write_text("in the way")  # no folder can be made here
    star = case("tickets")
    kernel = star.kernel()
    started = time.monotonic()
    assert not kernel.wait_for_native(30)
    assert time.monotonic() - started < 30
    assert kernel._tier.failure
    for edge, batch in Events(star, 3).batches(5, 5):
        kernel.take(edge, batch)
    assert kernel.table.meta[Meta.COUNT] > 0


def test_a_folder_of_the_user_is_not_taken_for_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    run, imported = subprocess.run, []

    def run_instead(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        options_of_python = command[: command.index("-m")]
        what = "import runtime; print(runtime.__file__)"
        done = run([*options_of_python, "-c", what], capture_output=True, text=True, check=True)
        imported.append(done.stdout.strip())
        return done

    monkeypatch.setattr(subprocess, "run", run_instead)
    tiers._compile([tiers.Tier(case("tickets").spec, tmp_path)])
    assert imported == [runtime.__file__]


FORKED = """
import os
from threading import Event
from types import SimpleNamespace
from runtime.kernels import tier as tiers

parent, arrived, goes_on = os.getpid(), Event(), Event()


def compiled(_):
    arrived.set()
    if os.getpid() == parent:
        goes_on.wait()
    return f"no compiler in {os.getpid()}"


tiers._compile = compiled
waiting = tiers.tier_of(SimpleNamespace(digest="some"))
waiting.request()
arrived.wait()
child = os.fork()
if child == 0:
    waiting.wait(60)
    os._exit(0 if waiting.failure == f"no compiler in {os.getpid()}" else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
goes_on.set()
waiting.wait(60)
assert waiting.failure == f"no compiler in {parent}"
raise SystemExit(code)
"""


def test_a_forked_process_compiles_by_itself(native_tier: None) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
