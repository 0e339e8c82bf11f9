"""Goal: an installed copy is complete and runs, although it was built without network and away from this folder.

The way a user's copy takes: source archive -> wheel -> installed files. Everything happens on a copy, since building
in place would leave `build/` behind and a later wheel would contain files that no longer exist.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("mpl", "compiler", "runtime", "codegen_templates", "smile")


@dataclass(frozen=True)
class InstalledCopy:
    """Where the copy lies, and which files of our packages the repository has."""

    site: Path
    expected: frozenset[str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        # PYTHONPATH precedes the editable install of the development environment.
        environment = {**os.environ, "PYTHONPATH": str(self.site)}
        return subprocess.run(command, cwd=self.site, env=environment, capture_output=True, text=True, check=False)


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> InstalledCopy:
    folder = tmp_path_factory.mktemp("packaging")
    listing = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    paths = [path for path in listing.split("\0") if path and (ROOT / path).is_file()]
    for path in paths:
        target = folder / "source" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)

    build_archive = f"from setuptools.build_meta import build_sdist; build_sdist({str(folder)!r})"
    run(sys.executable, "-c", build_archive, cwd=folder / "source")
    (archive,) = folder.glob("*.tar.gz")

    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    offline = ("--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "wheel", *offline, "--wheel-dir", str(folder), str(archive), cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(*pip, "install", *offline, "--target", str(folder / "site"), str(wheel), cwd=folder)
    return InstalledCopy(folder / "site", frozenset(path for path in paths if path.split("/")[0] in PACKAGES))


def test_copy_holds_exactly_the_files_of_the_packages(installed: InstalledCopy) -> None:
    found = {
        path.relative_to(installed.site).as_posix()
        for package in PACKAGES
        for path in (installed.site / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert sorted(found ^ installed.expected) == []
    assert {f"{package}/py.typed" for package in PACKAGES} <= found
    assert "mpl/grammar.lark" in found


def test_copy_installs_nothing_beside_the_packages(installed: InstalledCopy) -> None:
    top = {path.name for path in installed.site.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {*PACKAGES, "bin"}


def test_command_runs_from_the_copy(installed: InstalledCopy) -> None:
    where = installed.run(sys.executable, "-c", "import mpl, smile.cli; print(mpl.__file__, smile.cli.__file__)")
    assert where.returncode == 0, where.stderr
    assert all(Path(found).is_relative_to(installed.site) for found in where.stdout.split()), where.stdout
    shown = installed.run(str(installed.site / "bin" / "smile"), "--help")
    assert shown.returncode == 0, shown.stderr
    assert "check" in shown.stdout
    assert "explain" in shown.stdout


@pytest.mark.parametrize("page", ["README.md", "examples/tickets/tickets.mpl"])
def test_copy_checks_the_ticket_program(installed: InstalledCopy, page: str, tmp_path: Path) -> None:
    """The grammar is found where the copy put it; and what a newcomer sees first is a correct program."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".md"):
        (text,) = re.findall(r"^```mpl\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    program = tmp_path / "tickets.mpl"
    program.write_text(text, encoding="utf-8")
    checked = installed.run(str(installed.site / "bin" / "smile"), "check", str(program))
    assert checked.returncode == 0, checked.stdout + checked.stderr
