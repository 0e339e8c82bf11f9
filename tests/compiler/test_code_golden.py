"""Goal: the loop that each template prints can be read, is laid out as ruff would, and does not change by accident.

`tests/golden/code/<template>.txt` has the modules that a small program gets from it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import codegen_templates
from compiler.modules import module_texts
from compiler.plan.build import build_plan
from mpl.diagnostic import MplError
from runtime.loops.layout import laid_out
from runtime.operators.matching import MatchIndex
from runtime.operators.union import UnionAllSpec
from runtime.plan import Column, Relation
from smile.program import compile as compile_program
from tests.conftest import Golden

STREAMS = """
stream Bids (bidder int, item int, price int[0..1000], note text(20) null) unique bidder, item;
stream Items (item int, seller text(20), least int[0..1000]) unique item;
"""

PROGRAMS = {
    "select": """
        view High = from Bids |> where price > 900 and note is not null;
        view Most = from Bids |> aggregate most := max(price) group by item;
        view Few = from Most |> where most < 500;
        view Part = from Most |> where 1000 / most > 3;
    """,
    "extend": """
        view Twice = from Bids |> extend double := price * 2, short := note is null;
        view Sums = from Bids |> aggregate total := sum(price) group by item |> extend more := total + item;
    """,
    "project": """
        view Best = from Bids |> aggregate most := max(price), n := count() group by item |> project item, most;
    """,
    "group_by": """
        view Totals = from Bids
          |> aggregate n := count() where price > 10, total := sum(price), mean := avg(price), most := max(price)
             group by item;
        view Counts = from Totals |> aggregate items := count(), low := min(total) group by n;
    """,
    "join": """
        view Offers = from Bids |> join Items using item |> where price > least;
        view Counts = from Bids |> aggregate n := count() group by item;
        view Known = from Items |> left join Counts using item default n := 0;
    """,
    "match": """
        view Wanted = from Items |> matching Bids using item;
        view High = from Bids |> where price > 10;
        view Unwanted = from Items |> not matching High using item;
    """,
    "distinct": "view Bidders = from Bids |> project bidder |> distinct;",
    "latest": "view Last = from Bids |> latest per item; view Least = from Bids |> first per item by price;",
    "top": """
        view Best = from Bids |> top 3 per item by price desc;
        view Counts = from Bids |> aggregate n := count() group by item;
        view Hot = from Counts |> top 2 by n desc;
    """,
    "best": "view Totals = from Bids |> aggregate t := sum(price) group by item, bidder |> latest per item by t;",
    "asof": """
        stream Quotes (item int, bid int, at time) event time at late 2 s;
        stream Trades (item int, price int, at time) event time at late 2 s;
        view Priced = from Trades |> asof left join Quotes as Q using item;
    """,
    "row_function": """
        view Either = from Bids |> full join Items on Bids.item = Items.item and price > least;
    """,
}
OPERATORS = [path.name.removesuffix(".py.j2") for path in Path(codegen_templates.__file__).parent.glob("*.py.j2")]


def modules(template: str) -> str:
    match template:
        case "union":
            side = Relation("side", (Column("k"), Column("v")), 1)
            both = Relation("both", (Column("side"), *side.columns), 2)
            return UnionAllSpec().code((side, side), both).text.lstrip()
        case "match_index":
            return MatchIndex((2, 1)).code.text.lstrip()
        case _:
            program = compile_program(STREAMS + PROGRAMS[template])
            texts = module_texts(build_plan(program.graph, kernels=False)).values()
            return "\n\n".join(text for text in texts if f"Template: {template}.py.j2" in text)


def test_every_template_of_an_operator_has_a_case() -> None:
    kernels = {name for name in OPERATORS if name.startswith(("keyed_star", "bulk"))}
    assert {*PROGRAMS, "union", "match_index"} == set(OPERATORS) - kernels


@pytest.mark.parametrize("template", [*PROGRAMS, "union", "match_index"])
def test_modules_of_a_template(template: str, golden: Golden) -> None:
    text = modules(template)
    golden(f"code/{template}.txt", text)
    laid_out = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert text == laid_out.stdout


def test_modules_of_the_examples_are_laid_out_too(tmp_path: Path) -> None:
    for path in Path("examples").glob("*/*.mpl"):
        try:
            texts = module_texts(compile_program(path).plan)
        except MplError:
            continue  # windows are checked but do not run yet
        for number, text in enumerate(texts.values()):
            (tmp_path / f"{path.stem}_{number}.py").write_text(text)
    assert len(list(tmp_path.iterdir())) > 20
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "--diff", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        f"for {', '.join(f'c{n}' for n in range(9))} in zip({', '.join(f'columns[{n}]' for n in range(9))}):",
        f"for {', '.join(f'c{n}' for n in range(15))} in zip({', '.join(f'columns[{n}]' for n in range(15))}):",
        f"if {' and '.join(f'o{n}[slot] == (c{n} or c{n + 1})' for n in range(9))}:",
        f"if {' and '.join(f'o{n}[slot] == c{n}' for n in range(4))} or seen and (slot < 0 or {'x' * 60}):",
        f"if seen or ({'a' * 50} if slot < 0 and seen else {'b' * 50} or slot):",
        f"if not ({'a' * 50} or slot < 0 and seen or {'b' * 50}):",
        "value = (c2 - c3)",
        "value = (c2 - c3) * (c4 - c5)",
        "key = (c0,)",
        "key = (c0, c1)",
        "part = ()",
    ],
)
def test_a_line_is_laid_out_as_the_formatter_does_it(line: str) -> None:
    body = "    continue\n" if line.endswith(":") else ""
    around = "" if line.startswith("for ") or not body else "while seen:\n"
    indent = "    " if around else ""
    written = "".join(f"{indent}{one}\n" for one in laid_out(line))
    text = around + written + (indent + body if body else "")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stdout == text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(f"{around}{indent}{line}\n{indent}{body}"))


@pytest.mark.parametrize(
    "line",
    [
        f"if {'a' * 50} if slot < 0 else {'b' * 50} or slot if seen else slot:",
        f"if {'a' * 60} < {'b' * 60}:",
        f"for i, (a, b) in zip({'a' * 60}, {'b' * 60}):",
    ],
)
def test_whatever_is_long_means_the_same(line: str) -> None:
    text = "\n".join(laid_out(line))
    assert ast.dump(ast.parse(f"{text}\n    pass")) == ast.dump(ast.parse(f"{line}\n    pass"))
