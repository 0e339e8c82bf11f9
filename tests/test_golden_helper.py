"""Goal: the golden helper fails when a text differs or is new, and writes only when told to."""

from pathlib import Path

import pytest

from tests.conftest import Golden


def test_equal_text_passes_and_different_text_fails(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n")
    compare = Golden(tmp_path, update=False)
    compare("a.txt", "one\n")
    with pytest.raises(AssertionError, match=r"a\.txt"):
        compare("a.txt", "one")


def test_missing_file_fails_and_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="--update-golden"):
        Golden(tmp_path, update=False)("new.txt", "text")
    assert not (tmp_path / "new.txt").exists()


def test_update_writes_exact_bytes(tmp_path: Path) -> None:
    Golden(tmp_path, update=True)("deep/new.txt", "caf\u00e9\r\n")
    assert (tmp_path / "deep" / "new.txt").read_bytes() == b"caf\xc3\xa9\r\n"


def test_name_outside_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="leaves"):
        Golden(tmp_path, update=True)("../escape.txt", "text")
