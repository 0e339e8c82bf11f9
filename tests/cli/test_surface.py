"""Goal: the command line as a whole keeps its promises: help that teaches, documented exit codes, a fast start."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import smile
from mpl.formatter import format_source
from mpl.source import Source
from runtime.security.allow_list import read_allow_list
from smile.cli import app
from smile.cli.exits import MEANINGS, Exit
from smile.cli.project import project_files
from smile.deploy.config import read_config

PAGE = Path("docs/cli.md").read_text(encoding="utf-8")


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=text)


def commands() -> Iterator[tuple[str, Any]]:
    """Name and command, those of groups included; typer brings its own copy of click's classes."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        children = getattr(command, "commands", None)
        if children is None:
            yield name, command
            return
        for child in children.values():
            yield from walk(f"{name} {child.name}".strip(), child)

    yield from walk("", typer.main.get_command(app))


COMMANDS = dict(commands())
NAMES = list(COMMANDS)


def test_there_are_all_commands() -> None:
    assert {name.split()[0] for name in NAMES} >= {
        *("init", "check", "fmt", "explain", "compile", "run", "broker", "deploy", "publish", "subscribe", "query"),
        *("status", "top", "logs", "fault", "keys", "sim", "bench"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_help_teaches_with_an_example_that_parses(name: str) -> None:
    command = COMMANDS[name]
    examples = re.findall(r"Example: (.*)", command.help or "")
    assert examples, "no example"
    own = [part for example in examples for part in re.split(r"[|]|&&", example) if part.strip().startswith("smile ")]
    for example in own:
        words = example.split()[1:]
        assert " ".join(words).startswith(name) or words[0] in ("run", "init"), example
    assert run(*name.split(), "--help").exit_code == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_option_and_argument_says_what_it_is(name: str) -> None:
    for parameter in COMMANDS[name].params:
        assert getattr(parameter, "help", None), f"{name}: {parameter.name}"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_every_command(name: str) -> None:
    assert f"`smile {name}" in PAGE


def test_exit_codes_are_documented_as_they_are() -> None:
    table = dict(re.findall(r"^\| (\d+) \| (.*?) \|$", PAGE, re.MULTILINE))
    assert table == {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    assert set(MEANINGS) == set(Exit)


def test_help_loads_neither_language_nor_runtime() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from smile.cli import app; "
        "CliRunner().invoke(app, ['--help']); "
        "print([m for m in ('mpl.check', 'compiler', 'numpy', 'zmq', 'textual', 'lark') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_shells_can_complete() -> None:
    environment = {**os.environ, "_SMILE_COMPLETE": "complete_bash", "COMP_WORDS": "smile su", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "smile"], env=environment, capture_output=True, text=True, check=False)
    assert "subscribe" in done.stdout


def test_init_makes_a_project_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my shop"
    result = run("init", str(folder))
    assert result.exit_code == 0, result.stderr
    assert f"next: cd '{folder}' && smile run my_shop.mpl" in result.stdout
    assert {path.name for path in folder.iterdir()} == set(project_files("my_shop"))
    program = smile.compile(folder / "my_shop.mpl")
    assert program.checked.diagnostics == ()
    text = (folder / "my_shop.mpl").read_text()
    assert format_source(Source("x", text)) == text
    config = read_config(folder / "smile.toml")
    assert config.required_program() == folder / "my_shop.mpl"
    assert list(config.brokers) == ["one", "two"]
    with smile.run(program) as system:
        for stream in ("Deliveries", "Sales"):
            made = subprocess.run(
                [sys.executable, folder / "generate.py", stream, "--count", "50"], capture_output=True, check=True
            )
            system.publish_many(stream, [json.loads(line) for line in made.stdout.splitlines()])
        assert {row["product"] for row in system.rows("Stock")} <= {"apples", "bread", "milk", "soap", "tea"}
        assert len(system.rows("Stock")) == 5


def test_init_touches_nothing_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "smile.toml").write_text("mine")
    result = run("init", str(tmp_path))
    assert result.exit_code == Exit.USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["smile.toml"]


def test_keys_are_made_shown_and_allowed(tmp_path: Path) -> None:
    made = json.loads(run("keys", "new", "till", "--folder", str(tmp_path), "--json").stdout)
    for file in (made["secret"], made["public"]):
        assert run("keys", "show", file).stdout.strip() == made["key"]
    assert Path(made["secret"]).stat().st_mode & 0o077 == 0
    allowed = tmp_path / "allowed.toml"
    words = ("keys", "allow", str(allowed), "till", made["public"], "--publish", "Sales", "--subscribe", "St*")
    assert run(*words).exit_code == 0
    (entry,) = read_allow_list(allowed).entries
    assert (entry.name, entry.key.text) == ("till", made["key"])
    assert entry.rights.publish.contain("Sales")
    assert entry.rights.subscribe.contain("Stock")
    assert run("keys", "new", "till", "--folder", str(tmp_path)).exit_code == Exit.USAGE, "never over a secret"
    assert run("keys", "allow", str(allowed), "x", "nonsense").exit_code == Exit.USAGE


def test_bench_lists_and_runs_what_a_checkout_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = json.loads(run("bench", "--json").stdout)
    assert "tickets" in listed
    assert all(listed.values())
    assert "did you mean `tickets`?" in run("bench", "ticket").stderr
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "three.py").write_text('"""Exits with 3."""\nimport sys\nsys.exit(int(sys.argv[1]))\n')
    monkeypatch.chdir(tmp_path)
    assert run("bench", "three", "3").exit_code == 3
    monkeypatch.chdir(tmp_path / "bench")
    assert run("bench").exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("broker", "x", "--listen", "tcp://127.0.0.1:1", "--data", "d", "--sync", "alway"), "did you mean `always`?"),
        (("broker", "x", "--listen", "tcp://127.0.0.1:1", "--data", "d", "--checkpoint-every", "x"), "like 10s"),
        (("broker", "x"), "there is no smile.toml"),
        (("deploy",), "there is no smile.toml"),
        (("query", "V", "--format", "x"), "one of table, csv, jsonl"),
        (("publish", "S", "missing.csv"), "cannot read missing.csv"),
        (("publish", "S", "--format", "xml"), "one of jsonl, csv"),
    ],
)
def test_wrong_use_is_told_before_anything_happens(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == Exit.USAGE
    assert says in result.stderr


@pytest.mark.parametrize(
    "words",
    [("subscribe", "V", "--emit", "deltas"), ("subscribe", "V", "--mode", "list"), ("query", "V", "--format", "xml")],
)
def test_an_option_that_does_not_exist_is_a_wrong_use(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == Exit.USAGE
    assert "one of" in result.stderr
