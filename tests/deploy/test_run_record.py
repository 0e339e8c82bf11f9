"""Goal: looking at a run disturbs nobody: not a run that starts, not others who look."""

import fcntl
from pathlib import Path
from time import sleep

import pytest

from smile.deploy import run_record
from smile.deploy.run_record import LOCK_NAME, RunRecord, lock_run


def test_a_run_that_starts_waits_for_those_who_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LOCK_NAME).touch()
    with (tmp_path / LOCK_NAME).open("rb") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)

        def look_away(seconds: float) -> None:
            looker.close()
            sleep(seconds)

        monkeypatch.setattr("smile.deploy.run_record.time.sleep", look_away)
        with lock_run(tmp_path) as is_ours:
            assert is_ours


def test_those_who_look_do_not_take_each_other_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RunRecord(tmp_path, 1, "shop.mpl", {})
    (tmp_path / LOCK_NAME).touch()
    found: list[bool] = []
    locked = run_record._locked

    def others_look_too(file: object, how: int) -> bool:
        is_locked = locked(file, how)  # type: ignore[arg-type]
        monkeypatch.setattr(run_record, "_locked", locked)
        found.append(record.is_alive)
        return is_locked

    monkeypatch.setattr(run_record, "_locked", others_look_too)
    found.append(record.is_alive)
    assert found == [False, False]
    monkeypatch.setattr(run_record, "LOOKERS_S_MAX", 0.0)
    with lock_run(tmp_path) as is_ours, lock_run(tmp_path) as is_another:
        assert is_ours
        assert not is_another
        found.append(record.is_alive)
    found.append(record.is_alive)
    assert found == [False, False, True, False]


def test_looking_writes_nothing(tmp_path: Path) -> None:
    """The folder may be somebody else's."""
    assert not RunRecord(tmp_path, 1, "shop.mpl", {}).is_alive
    assert list(tmp_path.iterdir()) == []
