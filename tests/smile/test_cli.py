"""The command line as a user meets it: exit codes, what goes to which stream, files left alone or rewritten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from smile.cli import app
from smile.deploy.config import BrokerSettings

EXAMPLES = sorted(Path("examples").glob("*/*.mpl"))
GOOD = "stream S (a int);\nview V = from S |> where a > 1;\n"
BAD = "stream S (a int);\nview V = from T;\nview W = from S |> where b > 1;\n"


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=text)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_check_accepts_every_example(example: Path) -> None:
    result = run("check", str(example))
    assert result.exit_code == 0, result.stderr
    assert f"{example}: " in result.stdout


def test_check_reports_all_independent_errors_in_source_order() -> None:
    result = run("check", "-", text=BAD)
    assert result.exit_code == 1
    assert result.stdout == ""
    first, second = result.stderr.index("`T`"), result.stderr.index("`b`")
    assert first < second
    assert "2 errors" in result.stderr


def test_check_json_is_for_editors() -> None:
    result = run("check", "--json", "-", text=BAD)
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout)
    assert report["ok"] is False
    assert [(item["line"], item["severity"]) for item in report["diagnostics"]] == [(2, "error"), (3, "error")]


def test_strict_counts_warnings_as_errors() -> None:
    grows = "stream S (a int, k text);\nview V = from S |> aggregate n := count() group by k;\n"
    assert run("check", "-", text=grows).exit_code == 0
    assert run("check", "--strict", "-", text=grows).exit_code == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "cannot read"), (b"view \xff", "line 1 is not UTF-8"), (b"x" * (16 * 2**20 + 1), "larger than")],
    ids=["missing", "not UTF-8", "huge"],
)
def test_unreadable_files_exit_with_2(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "bad.mpl"
    if content is not None:
        file.write_bytes(content)
    result = run("check", str(file))
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_fmt_rewrites_and_then_leaves_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.mpl"
    file.write_text("STREAM S(a   int);-- note\nview V=from S|>where a>1;\n")
    assert run("fmt", "--check", str(file)).exit_code == 1
    assert run("fmt", "--diff", str(file)).exit_code == 1
    assert "STREAM" in file.read_text()
    assert run("fmt", str(file)).exit_code == 0
    formatted = file.read_text()
    assert "stream S (a int);" in formatted
    assert "-- note" in formatted
    assert run("fmt", "--check", str(file)).exit_code == 0
    assert run("fmt", str(file)).stdout == ""
    assert file.read_text() == formatted


def test_fmt_prints_differences_that_patch_takes(tmp_path: Path) -> None:
    """Also for a last line without an end, and for characters that are ends of lines to some."""
    file = tmp_path / "a.mpl"
    file.write_text("-- one\u2028two\nSTREAM S(a   int);")
    lines = run("fmt", "--diff", str(file)).stdout.split("\n")
    assert lines[3:] == [
        " -- one\u2028two",
        "-STREAM S(a   int);",
        "\\ No newline at end of file",
        "+stream S (a int);",
        "",
    ]


def test_fmt_leaves_a_broken_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "broken.mpl"
    file.write_text("view V = from;\n")
    result = run("fmt", str(file))
    assert result.exit_code == 1
    assert "error[MPL01" in result.stderr
    assert file.read_text() == "view V = from;\n"


def test_fmt_leaves_a_file_alone_that_cannot_be_written_as_a_whole(tmp_path: Path) -> None:
    """As on a full disk: no file may be longer than ten bytes here."""
    file = tmp_path / "a.mpl"
    file.write_text("STREAM S(a   int);\n")
    limited = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (10, 10)); from smile.cli import main; main()"
    command = [sys.executable, "-c", limited, "fmt", str(file)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 2
    assert file.read_text() == "STREAM S(a   int);\n"
    assert list(tmp_path.iterdir()) == [file]


def test_fmt_keeps_links_and_modes(tmp_path: Path) -> None:
    file, link = tmp_path / "a.mpl", tmp_path / "link.mpl"
    file.write_text("STREAM S(a   int);\n")
    file.chmod(0o600)
    link.symlink_to(file)
    assert run("fmt", str(link)).exit_code == 0
    assert file.read_text() == "stream S (a int);\n"
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600


def test_fmt_of_standard_input_goes_to_standard_output() -> None:
    result = run("fmt", "-", text="STREAM S(a int);")
    assert (result.exit_code, result.stdout) == (0, "stream S (a int);\n")


def test_explain_says_how_the_ticket_view_moves() -> None:
    result = run("explain", "examples/tickets/tickets.mpl")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "temporarily invisible -> visible -> permanently invisible" in text
    assert "total int[0..] rising" in text
    assert "avail int[..1000] a pair, shown as p - n" in text


def test_explain_json_has_the_same_facts() -> None:
    result = run("explain", "--json", "examples/tickets/tickets.mpl", "Sold")
    explained = json.loads(result.stdout)
    assert [view["name"] for view in explained["views"]] == ["Sold"]
    kinds = {column["name"]: column["kind"] for column in explained["views"][0]["columns"]}
    assert kinds == {"item_id": "final", "total": "up"}


def test_explain_of_an_unknown_view_suggests_one() -> None:
    result = run("explain", "examples/tickets/tickets.mpl", "Solt")
    assert result.exit_code == 2
    assert "did you mean `Sold`?" in result.stderr


@pytest.mark.parametrize("stage", ["algebra", "graph", "plan", "code"])
def test_explain_shows_every_stage(stage: str) -> None:
    result = run("explain", "examples/tickets/tickets.mpl", "--stage", stage)
    assert result.exit_code == 0, result.stderr
    assert "Available" in result.stdout


@pytest.mark.parametrize(("form", "sign"), [("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<svg")])
def test_explain_draws_stages(form: str, sign: str) -> None:
    for stage in ("graph", "plan"):
        result = run("explain", "examples/tickets/tickets.mpl", "--stage", stage, "--format", form)
        assert result.exit_code == 0, result.stderr
        assert sign in result.stdout


@pytest.mark.parametrize(
    "options", [("--stage", "graph", "--json"), ("--stage", "code", "Sold"), ("--format", "dot"), ("--format", "soup")]
)
def test_explain_leaves_no_option_unheeded(options: tuple[str, ...]) -> None:
    result = run("explain", "examples/tickets/tickets.mpl", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--stage" in result.stderr


def test_unknown_stages_and_formats_exit_with_2() -> None:
    assert run("explain", "examples/tickets/tickets.mpl", "--stage", "soup").exit_code == 2
    assert run("explain", "examples/tickets/tickets.mpl", "--stage", "graph", "--format", "png").exit_code == 2
    refused = run("explain", "examples/tickets/tickets.mpl", "--stage", "code", "--format", "svg")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "code is text" in refused.stderr


def test_compile_writes_a_bundle(tmp_path: Path) -> None:
    result = run("compile", "examples/tickets/tickets.mpl", "-o", str(tmp_path / "out"))
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "out" / "manifest.json").exists()


def test_compile_refuses_what_cannot_run_with_its_place(tmp_path: Path) -> None:
    result = run("compile", "examples/nexmark/nexmark.mpl", "-o", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "error[CMP" in result.stderr
    assert "nexmark.mpl:" in result.stderr
    assert not (tmp_path / "out").exists()


def test_sim_runs_seeds_and_tells_one() -> None:
    result = run("sim", "--seeds", "3", "--graph", "figure1")
    assert result.exit_code == 0, result.stdout
    assert "3 schedules" in result.stdout
    assert "0 failed" in result.stdout
    told = run("sim", "--seed", "5")
    assert told.exit_code == 0
    assert "trace " in told.stdout


def test_sim_refuses_an_unknown_graph() -> None:
    result = run("sim", "--graph", "figure9")
    assert result.exit_code == 2
    assert "figure1" in result.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("smile ")
    for command in ("check", "fmt", "explain", "compile", "sim"):
        assert run(command, "--help").exit_code == 0


def test_json_of_commands_that_write_or_try(tmp_path: Path) -> None:
    good, long, bad = (tmp_path / f"{name}.mpl" for name in ("good", "long", "bad"))
    for file, text in ((good, GOOD), (long, GOOD.replace(" |>", "   |>")), (bad, "view V = ;")):
        file.write_text(text)
    files = [str(good), str(long), str(bad)]
    for arguments, written in ((["--check"], False), ([], True)):
        result = run("fmt", "--json", *arguments, *files)
        assert result.exit_code == 1, "one of them is no program"
        assert json.loads(result.stdout) == {"changed": [files[1]], "written": written, "broken": [files[2]]}
    assert json.loads(run("fmt", "--json", *files[:2]).stdout)["changed"] == []
    assert run("fmt", "--json", "--diff", *files).exit_code == run("fmt", "--json", "-", text=GOOD).exit_code == 2
    bundle = json.loads(run("compile", files[0], "-o", str(tmp_path / "out"), "--json").stdout)
    assert (bundle["output"], bundle["views"], bundle["modules"]) == (str(tmp_path / "out"), ["V"], 1)
    assert bundle["files"] == json.loads((tmp_path / "out" / "manifest.json").read_text())["files"]


def test_sim_as_json() -> None:
    many = json.loads(run("sim", "--seeds", "2", "--graph", "figure1", "--json").stdout)
    assert (many["passed"], many["runs"], many["failures"]) == (True, 2, [])
    one = json.loads(run("sim", "--seed", "5", "--json").stdout)
    assert (one["passed"], one["seed"], one["violation"]) == (True, 5, None)
    assert one["lines"]
    small = json.loads(run("sim", "--explore", "--seconds", "0.01", "--json").stdout)
    assert all(graph["violation"] is None for graph in small["graphs"])


def test_a_broker_logs_json_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forms: list[str] = []

    def serve(settings: BrokerSettings) -> int:
        forms.append(settings.log_format)
        return 0

    monkeypatch.setattr("smile.broker.serve", serve)
    for more in ([], ["--json"]):
        assert run("broker", "b", "--listen", "tcp://127.0.0.1:1", "--data", str(tmp_path), *more).exit_code == 0
    assert forms == ["pretty", "json"]
