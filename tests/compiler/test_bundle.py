"""Bundles: the same bytes every time, written whole or not at all, and every change to one is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

import smile
from compiler.bundle import BundleError, bundle_files, verify_bundle, write_bundle

TICKETS = "examples/tickets/tickets.mpl"


def files() -> dict[str, bytes]:
    program = smile.compile(TICKETS)
    return bundle_files(program.graph, program.plan, "tickets.mpl", program.checked.source.text)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    write_bundle(files(), folder)
    return folder


def test_same_program_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "smile", "compile", TICKETS, "-o", str(tmp_path / seed)],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        )
    one, other = (
        {str(path.relative_to(tmp_path / seed)): path.read_bytes() for path in (tmp_path / seed).rglob("*.*")}
        for seed in ("1", "2")
    )
    assert one == other
    assert "manifest.json" in one


COMPILE_MANY = """
import hashlib, pathlib
import smile
from compiler.bundle import bundle_files
from tests.generator.program import generate

texts = [path.read_text() for path in sorted(pathlib.Path("examples").glob("*/*.mpl"))]
texts += [generate(seed).text for seed in range(12)]
for text in texts:
    try:
        program = smile.compile(text)
    except smile.MplError as refused:
        print("refused", len(refused.diagnostics))
        continue
    files = bundle_files(program.graph, program.plan, "some.mpl", text)
    print(len(files), hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest())
"""


def test_no_program_depends_on_the_hash_seed() -> None:
    """Brokers compile what they are sent and compare every byte with what came."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE_MANY],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": "."},
        )
        for seed in ("0", "77")
    ]
    one, other = (run.communicate()[0] for run in runs)
    assert one == other
    assert len(one.splitlines()) >= 15
    assert sum(not line.startswith("refused") for line in one.splitlines()) >= 10


def test_what_was_written_verifies(bundle: Path) -> None:
    verify_bundle(bundle)


@pytest.mark.parametrize("victim", ["plan.json", "modules/m0000.py", "program.mpl"])
def test_a_changed_file_is_noticed(bundle: Path, victim: str) -> None:
    data = (bundle / victim).read_bytes()
    (bundle / victim).write_bytes(data.replace(b"1", b"2", 1) + b" ")
    with pytest.raises(BundleError, match="was changed"):
        verify_bundle(bundle)


def test_missing_and_additional_files_are_noticed(bundle: Path) -> None:
    (bundle / "modules" / "extra.py").write_text("import os\n")
    with pytest.raises(BundleError, match="not in the manifest"):
        verify_bundle(bundle)
    (bundle / "modules" / "extra.py").unlink()
    (bundle / "plan.json").unlink()
    with pytest.raises(BundleError, match="missing"):
        verify_bundle(bundle)


def test_a_folder_that_is_no_bundle_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("keep")
    with pytest.raises(BundleError, match="not a bundle"):
        write_bundle(files(), tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "keep"


def test_a_bundle_is_replaced_whole(bundle: Path) -> None:
    (bundle / "plan.json").write_text("changed")
    (bundle / "program.mpl").unlink()
    write_bundle(files(), bundle)
    verify_bundle(bundle)
    assert [path.name for path in bundle.parent.iterdir()] == ["bundle"]


@pytest.mark.parametrize(
    "manifest",
    ["", "[1]", '{"name": "a browser extension"}', '{"format": 1, "files": ["a"]}', '{"format": 1, "files": {"a": 1}}'],
)
def test_a_manifest_of_somebody_else_protects_its_folder(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(BundleError, match=r"not a bundle.*choose another folder"):
        write_bundle(files(), tmp_path)
    assert (tmp_path / "manifest.json").read_text() == manifest


@pytest.mark.parametrize("own", ["notes.txt", "modules/notes.txt", "empty/"])
def test_what_somebody_put_into_a_bundle_is_not_deleted(bundle: Path, own: str) -> None:
    if own.endswith("/"):
        (bundle / own).mkdir()
    else:
        (bundle / own).write_text("keep")
    with pytest.raises(BundleError, match=f"something else in it, {own.rstrip('/')}"):
        write_bundle(files(), bundle)
    assert (bundle / own).exists()


def test_the_old_bundle_is_there_until_the_new_one_is(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (bundle / "manifest.json").read_bytes()
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if target == bundle and not (bundle.parent / "failed").exists():
            (bundle.parent / "failed").touch()
            others = [path for path in bundle.parent.iterdir() if (path / "manifest.json").exists()]
            assert len(others) == 2  # the old one beside the new one
            raise OSError(5, "no luck")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(BundleError, match="no luck"):
        write_bundle(files(), bundle)
    assert (bundle / "manifest.json").read_bytes() == before
    verify_bundle(bundle)
    assert {path.name for path in bundle.parent.iterdir()} == {"bundle", "failed"}


@pytest.mark.parametrize("folder", ["file/bundle", "file"])
def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("keep")
    with pytest.raises(BundleError, match=f"{tmp_path / folder}"):
        write_bundle(files(), tmp_path / folder)
    with pytest.raises(BundleError, match="cannot write /proc/no-such"):
        write_bundle(files(), Path("/proc/no-such"))
    assert (tmp_path / "file").read_text() == "keep"
