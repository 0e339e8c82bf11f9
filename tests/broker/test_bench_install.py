"""The benchmark of installs, small: it must run and find the view right. Its figures mean nothing here."""

from __future__ import annotations

from pathlib import Path

from bench.install import installed_while_publishing


def test_a_small_install_is_measured(tmp_path: Path) -> None:
    found = installed_while_publishing(rows=2_000, rate=5_000, seconds=0.5, folder=tmp_path / "data")
    before, during = found["latencies_ms"]
    assert before["publishes"] > 0
    assert during["publishes"] > 0
    assert found["bytes"] > 2_000 * 8 * 3  # key, total and number of every row
    assert 0 < found["switch_s"] <= found["durable_s"]
