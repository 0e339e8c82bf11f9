"""Goal: the repository keeps its own promises.

Each rule is a function from the files of a tree to complaints. It is run over this repository, where it must find
nothing, and over a small planted tree, where it must find exactly what was planted: a rule that cannot fail would be
worth nothing.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent

Files = Mapping[str, str]
Rule = Callable[[Files], list[str]]

LINES_MAX = 500

# Which of our packages a package may import: inner layers know nothing of outer ones.
IMPORTS_ALLOWED = {
    "mpl": {"mpl"},
    "runtime": {"runtime"},
    "codegen_templates": {"codegen_templates"},
    "compiler": {"compiler", "mpl", "runtime", "codegen_templates"},
    "smile": {"smile", "compiler", "mpl", "runtime", "codegen_templates"},
}
SPARK_FOLDER = "runtime/bulk/"
SPARK_MODULES = {"pyspark", "py4j"}
# The simulator drives the same protocol code as a broker does, so that code may not reach for the world itself.
PURE_FOLDERS = ("runtime/protocol/", "runtime/operators/")
IMPURE_MODULES = {
    *("os", "pathlib", "shutil", "sqlite3", "tempfile"),  # files
    *("asyncio", "select", "selectors", "socket", "zmq"),  # network
    *("multiprocessing", "signal", "subprocess", "threading"),  # other threads of control
    *("random", "secrets", "time", "uuid"),  # answers that differ from run to run
}


def packaged(files: Files) -> dict[str, str]:
    """The Python files of our packages."""
    return {
        path: text
        for path, text in files.items()
        if path.endswith(".py") and PurePosixPath(path).parts[0] in IMPORTS_ALLOWED
    }


def imported_modules(text: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every absolute import, also those inside functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.lineno, node.module


def imports_pointing_back(files: Files) -> list[str]:
    return [
        f"{path}:{line} imports {module}"
        for path, text in packaged(files).items()
        for line, module in imported_modules(text)
        if (top := module.split(".")[0]) in IMPORTS_ALLOWED and top not in IMPORTS_ALLOWED[path.split("/")[0]]
    ]


def spark_outside_bulk(files: Files) -> list[str]:
    return [
        f"{path}:{line} imports {module}"
        for path, text in packaged(files).items()
        if not path.startswith(SPARK_FOLDER)
        for line, module in imported_modules(text)
        if module.split(".")[0] in SPARK_MODULES
    ]


def impure_protocol(files: Files) -> list[str]:
    return [
        f"{path}:{line} imports {module}"
        for path, text in packaged(files).items()
        if path.startswith(PURE_FOLDERS)
        for line, module in imported_modules(text)
        if module.split(".")[0] in IMPURE_MODULES
    ]


def modules_without_docstring(files: Files) -> list[str]:
    tests = {path: text for path, text in files.items() if path.startswith("tests/") and path.endswith(".py")}
    return [path for path, text in {**packaged(files), **tests}.items() if not ast.get_docstring(ast.parse(text))]


def files_too_long(files: Files) -> list[str]:
    return [
        f"{path} has {lines} lines"
        for path, text in files.items()
        if path.split("/")[0] in IMPORTS_ALLOWED and (lines := text.count("\n")) > LINES_MAX
    ]


def packages_not_shipped(files: Files) -> list[str]:
    """Folders with Python in them that `pyproject.toml` would leave out of an installed copy."""
    include = tomllib.loads(files["pyproject.toml"])["tool"]["setuptools"]["packages"]["find"]["include"]
    folders = {str(PurePosixPath(path).parent) for path in packaged(files)}
    folders |= {str(PurePosixPath(path).parent) for path in files if path.endswith("/py.typed")}
    return sorted(
        folder
        for folder in folders
        if f"{folder}/__init__.py" not in files
        or not any(fnmatch(folder.replace("/", "."), pattern) for pattern in include)
    )


def dead_templates(files: Files) -> list[str]:
    """Templates that neither the compiler, nor the operators, nor another template names."""
    templates = [path for path in files if path.startswith("codegen_templates/") and path.endswith(".j2")]
    return [
        template
        for template in templates
        if not any(
            PurePosixPath(template).name in text
            for path, text in files.items()
            if path != template and (path.startswith(("compiler/", "runtime/")) or path in templates)
        )
    ]


# Patterns are written so that this file does not contain what they look for.
MACHINE_PATH = re.compile(r"(?<![\w.:/-])(?:/(?:home|Users|root|work|opt|mnt|srv)/\w[^\s`'\")]*|[A-Z]:\\\w+)")
REGISTRY = re.compile(r"pypi[.]org|pythonhosted[.]org|--(?:extra-)?index[-]url\b|file:/[/]/")


def lines_matching(pattern: re.Pattern[str], files: Files) -> list[str]:
    return [
        f"{path}:{number} says {match.group()}"
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), start=1)
        for match in pattern.finditer(line)
    ]


def machine_paths(files: Files) -> list[str]:
    return lines_matching(MACHINE_PATH, files)


def registry_hosts(files: Files) -> list[str]:
    locked = {path: text for path, text in files.items() if path.endswith(".lock")}
    return lines_matching(REGISTRY, files) + lines_matching(re.compile(r"\w+://\S*"), locked)


INLINE_CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
ROOT_FILE = re.compile(r"Makefile|pyproject\.toml|requirements\.lock|LICENSE|[A-Z]+\.md")


def names_repository_path(text: str, tops: set[str]) -> bool:
    """Does this piece of inline code look like a path here? Placeholders such as `<name>` are no claims."""
    if re.search(r"[\s<>{}()=,]|\.\.\.|…", text):
        return False
    return bool(ROOT_FILE.fullmatch(text)) or ("/" in text and text.split("/")[0] in tops)


def documented_paths_missing(files: Files) -> list[str]:
    """Paths in README, CONTRIBUTING and docs/ that do not exist.

    Dated notes are left alone: a decision is superseded, not edited, and may name what has since gone.
    """
    existing = {str(parent) for path in files for parent in PurePosixPath(path).parents} | set(files)
    # A folder that does not exist is still recognised as a claim if it is one of the layout's own names.
    tops = {path.split("/")[0] for path in files if "/" in path} | {*IMPORTS_ALLOWED, "bench", "docs", "examples"}
    missing = []
    for page, text in files.items():
        if not page.endswith(".md") or page.startswith("docs/decisions/"):
            continue
        if page not in ("README.md", "CONTRIBUTING.md") and not page.startswith("docs/"):
            continue
        prose = FENCE.sub("", text)
        claims = [found for found in INLINE_CODE.findall(prose) if names_repository_path(found, tops)]
        for claim in claims:
            path = re.sub(r":.*", "", claim).rstrip("/")
            if not any(fnmatch(known, path) for known in existing):
                missing.append(f"{page}: {claim}")
        for target in LINK.findall(prose):
            if re.match(r"[a-z]+:|#", target):
                continue
            path = str((ROOT / page).parent.joinpath(target.split("#")[0]).resolve().relative_to(ROOT))
            if path not in existing:
                missing.append(f"{page}: {target}")
    return missing


RULES: tuple[Rule, ...] = (
    imports_pointing_back,
    spark_outside_bulk,
    impure_protocol,
    modules_without_docstring,
    files_too_long,
    packages_not_shipped,
    dead_templates,
    machine_paths,
    registry_hosts,
    documented_paths_missing,
)

PYPROJECT = '[tool.setuptools.packages.find]\ninclude = ["mpl*", "runtime*"]\n'

# Rule, planted files, what must be found. Text that a rule looks for is joined from parts: this file is looked at too.
PLANTED: tuple[tuple[Rule, dict[str, str], list[str]], ...] = (
    (
        imports_pointing_back,
        {
            "mpl/a.py": "import mpl.b\nimport runtime.log",
            "runtime/a.py": "def f():\n    from mpl.nodes import View",
            "compiler/a.py": "from runtime import log\nfrom smile.cli import main",
            "smile/a.py": "import compiler, mpl, runtime",
            "tests/a.py": "import smile",
        },
        ["mpl/a.py:2 imports runtime.log", "runtime/a.py:2 imports mpl.nodes", "compiler/a.py:2 imports smile.cli"],
    ),
    (
        spark_outside_bulk,
        {"runtime/bulk/a.py": "import pyspark", "compiler/a.py": "from pyspark.sql import functions"},
        ["compiler/a.py:1 imports pyspark.sql"],
    ),
    (
        impure_protocol,
        {"runtime/protocol/a.py": "import random\nimport bisect", "runtime/simulation/a.py": "import random"},
        ["runtime/protocol/a.py:1 imports random"],
    ),
    (
        modules_without_docstring,
        {"mpl/a.py": "'''Says what it holds.'''", "mpl/b.py": "x = 1", "tests/c.py": "# goal", "tools/d.py": ""},
        ["mpl/b.py", "tests/c.py"],
    ),
    (
        files_too_long,
        {"mpl/a.py": "\n" * 500, "mpl/grammar.lark": "\n" * 501, "tests/a.py": "\n" * 900},
        ["mpl/grammar.lark has 501 lines"],
    ),
    (
        packages_not_shipped,
        {
            "pyproject.toml": PYPROJECT,
            "mpl/__init__.py": "",
            "mpl/codes/__init__.py": "",
            "mpl/deep/a.py": "",
            "smile/__init__.py": "",
        },
        ["mpl/deep", "smile"],
    ),
    (
        dead_templates,
        {
            "codegen_templates/sum.py.j2": "{% include 'head.py.j2' %}",
            "codegen_templates/head.py.j2": "",
            "codegen_templates/old.py.j2": "old.py.j2",
            "compiler/sum.py": "TEMPLATE = 'sum.py.j2'",
        },
        ["codegen_templates/old.py.j2"],
    ),
    (
        machine_paths,
        {
            "a.py": "open('/" + "home/me/x')",
            "b.md": "see https://example.org/home/page and docs/work/x and #!/usr/bin/env",
            "c.toml": "x = /" + "work/y\ny = C" + ":\\Users",
        },
        ["a.py:1 says /" + "home/me/x", "c.toml:1 says /" + "work/y", "c.toml:2 says C" + ":\\Users"],
    ),
    (
        registry_hosts,
        {
            "a.lock": "x==1 @ https://" + "host/x",
            "b.sh": "pip install --index" + "-url x",
            "c.md": "https://example.org",
        },
        ["b.sh:1 says --index" + "-url", "a.lock:1 says https://" + "host/x"],
    ),
    (
        documented_paths_missing,
        {
            "README.md": "`docs/a.md`, `docs/no.md`, `Makefile`, `bench/`, [a](docs/a.md#x), [b](docs/b.md), `make x`",
            "docs/a.md": "`docs/*.md`, `docs/a.md:12`, `docs/<name>.md`, [up](../README.md), `and/or`\n"
            "```\n`docs/in-a-fence.md`\n```\n",
            "docs/decisions/0001.md": "`docs/gone.md`",
        },
        ["README.md: docs/no.md", "README.md: Makefile", "README.md: bench/", "README.md: docs/b.md"],
    ),
)


@pytest.fixture(scope="module")
def repository() -> Files:
    """The texts of all files that are tracked or would be: what a clone will hold after the next commit."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    paths = [path for path in listing.split("\0") if path and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in sorted(paths)}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_repository_keeps_rule(rule: Rule, repository: Files) -> None:
    assert len(repository) > 20, "the listing of the repository is incomplete"
    assert rule(repository) == []


@pytest.mark.parametrize(("rule", "files", "complaints"), PLANTED, ids=lambda part: getattr(part, "__name__", ""))
def test_rule_finds_what_was_planted(rule: Rule, files: Files, complaints: list[str]) -> None:
    assert rule(files) == complaints


def test_every_rule_was_planted() -> None:
    assert [rule for rule, _, _ in PLANTED] == list(RULES)


def test_the_two_commands_are_what_readme_and_ci_say(repository: Files) -> None:
    for command in ("make demo", "make test"):
        assert f"\n    {command}" in repository["README.md"] or f"\n{command}" in repository["README.md"]
    commands = [line for line in repository[".ci/run"].splitlines() if line and not line.startswith("#")]
    assert commands[-1] == "make test"
    assert len(commands) == 3, "the build server runs what developers run, nothing beside it"
