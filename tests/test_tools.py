"""Goal: the set-up scripts recognise what is missing and say what to install; they act only when they may.

The machine is played by a folder of stand-in commands that is the whole PATH, so nothing is installed here.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
JAVA_17 = 'openjdk version "17.0.12" 2024-07-16'
JAVA_21 = 'openjdk version "21" 2023-09-19'
JAVA_8 = 'java version "1.8.0_392"'


@dataclass(frozen=True)
class Machine:
    """A PATH with the plain commands a script needs and the stand-ins a test adds."""

    folder: Path

    def add(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def add_java(self, version: str, name: str = "java") -> None:
        self.add(name, f"echo '{version}' >&2")

    def add_apt(self, *, offers: str, installs: str) -> None:
        """An apt that offers one package, and whose installation puts a `java` of that version there."""
        self.add_java(installs, name="java-to-be-installed")
        self.add("apt-cache", f'[ "$2" = {offers} ] && echo "  Candidate: 17.0.12+7" || echo "  Candidate: (none)"')
        log, ready, java = self.folder / "apt.log", self.folder / "java-to-be-installed", self.folder / "java"
        self.add("apt-get", f'echo "$@" >> {log}; case "$1" in install) cp {ready} {java};; esac')

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.folder), **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def apt_log(self) -> list[str]:
        path = self.folder / "apt.log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("bash", "cat", "cp", "dirname", "env", "grep", "head", "sed"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    made = Machine(tmp_path)
    made.add("id", "echo 0")
    return made


@pytest.mark.parametrize(("version", "major"), [(JAVA_17, "17"), (JAVA_21, "21")])
def test_java_present_is_named_and_nothing_is_installed(machine: Machine, version: str, major: str) -> None:
    machine.add_java(version)
    machine.add_apt(offers="openjdk-17-jre-headless", installs=JAVA_17)
    done = machine.run(str(TOOLS / "java.sh"))
    assert (done.returncode, done.stdout) == (0, f"Java {major}: {machine.folder}/java\n")
    assert machine.apt_log() == []


@pytest.mark.parametrize("package", ["openjdk-17-jre-headless", "openjdk-21-jre-headless"])
def test_java_missing_is_installed_by_root(machine: Machine, package: str) -> None:
    machine.add_apt(offers=package, installs=JAVA_21)
    done = machine.run(str(TOOLS / "java.sh"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"Java 21: {machine.folder}/java\n")
    assert machine.apt_log() == ["update -qq", f"install -y -qq --no-install-recommends {package}"]


def test_java_too_old_is_not_enough(machine: Machine) -> None:
    machine.add_java(JAVA_8)
    machine.add_apt(offers="openjdk-17-jre-headless", installs=JAVA_8)
    done = machine.run(str(TOOLS / "java.sh"))
    assert done.returncode == 1
    assert "is installed, but `java` is still another one" in done.stderr


def test_java_missing_without_root_says_what_to_do(machine: Machine) -> None:
    machine.add_apt(offers="openjdk-17-jre-headless", installs=JAVA_17)
    machine.add("id", "echo 1000")
    machine.add("sudo", "exit 1")
    done = machine.run(str(TOOLS / "java.sh"))
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr
    assert machine.apt_log() == []


def test_java_missing_is_installed_with_sudo_that_asks_nothing(machine: Machine) -> None:
    machine.add_apt(offers="openjdk-17-jre-headless", installs=JAVA_17)
    machine.add("id", "echo 1000")
    machine.add("sudo", 'shift; [ "$1" = true ] || exec "$@"')
    done = machine.run(str(TOOLS / "java.sh"))
    assert done.returncode == 0, done.stderr
    assert len(machine.apt_log()) == 2


def test_java_missing_and_no_apt(machine: Machine) -> None:
    done = machine.run(str(TOOLS / "java.sh"))
    assert done.returncode == 1
    assert "no apt-get" in done.stderr


def test_java_home_without_java_is_reported_not_overruled(machine: Machine) -> None:
    machine.add_java(JAVA_17)
    machine.add_apt(offers="openjdk-17-jre-headless", installs=JAVA_17)
    done = machine.run(str(TOOLS / "java.sh"), JAVA_HOME="nowhere")
    assert done.returncode == 1
    assert "JAVA_HOME is set to nowhere" in done.stderr
    assert machine.apt_log() == []


def test_python_missing(machine: Machine) -> None:
    done = machine.run(str(TOOLS / "venv.sh"), "python3", str(machine.folder / "venv"))
    assert done.returncode == 1
    assert "apt-get install python3 python3-venv" in done.stderr


def test_python_too_old(machine: Machine) -> None:
    machine.add("python3", 'case "$1" in --version) echo "Python 3.10.12";; *) exit 1;; esac')
    done = machine.run(str(TOOLS / "venv.sh"), "python3", str(machine.folder / "venv"))
    assert done.returncode == 1
    assert "`python3` is Python 3.10.12; SMILE needs Python 3.11 or newer" in done.stderr


def test_python_without_venv(machine: Machine) -> None:
    machine.add("python3", f'case "$2" in *ensurepip*) exit 1;; *) exec {sys.executable} "$@";; esac')
    done = machine.run(str(TOOLS / "venv.sh"), "python3", str(machine.folder / "venv"))
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert not (machine.folder / "venv").exists()
