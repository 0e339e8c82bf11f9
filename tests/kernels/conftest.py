"""Kernels under test run in the plain tier unless a test asks for the native one, compiled into a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.kernels.tier import CACHE_VARIABLE, MODE_VARIABLE


@pytest.fixture(autouse=True)
def plain_tier(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "plain")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def native_tier(plain_tier: None, monkeypatch: pytest.MonkeyPatch, kernel_cache: Path) -> Iterator[None]:
    """Operators built from here on may become native."""
    monkeypatch.setenv(CACHE_VARIABLE, str(kernel_cache))
    monkeypatch.delenv(MODE_VARIABLE)
    yield
    assert os.environ[CACHE_VARIABLE] == str(kernel_cache)
