"""Goal: formatting changes layout and nothing else.

Formatting twice is formatting once, nodes stay equal, every comment is still there, and the layout is the one we want.
"""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpl.diagnostic import Diagnostics, MplError
from mpl.formatter import format_source
from mpl.formatter.layout import WIDTH
from mpl.nodes import Program
from mpl.parser import parse
from mpl.source import Source
from mpl.syntax.lexing import tokenize
from mpl.syntax.tables import tables
from mpl.syntax.tokens import END, NAME, Token
from tests.mpl.constructs import EVERY_CONSTRUCT

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*/*.mpl"))


def program(text: str) -> Program:
    diagnostics = Diagnostics()
    result = parse(Source("test.mpl", text), diagnostics)
    assert not diagnostics.has_errors, [f"{item.span}: {item.message}" for item in diagnostics]
    return result


def formatted(text: str) -> str:
    """The formatted text, after checking everything that holds for all texts."""
    result = format_source(Source("test.mpl", text))
    assert program(result) == program(text), f"formatting changed the meaning:\n{result}"
    assert format_source(Source("test.mpl", result)) == result, f"formatting again changes:\n{result}"
    assert comments_of(result) == comments_of(text)
    assert not re.search(r"[ \t]$", result, re.MULTILINE)
    assert "\n\n\n" not in result
    assert result == "" or (result.endswith("\n") and not result.endswith("\n\n"))
    return result


def comments_of(text: str) -> list[str]:
    strings = re.compile(r"'(?:[^'\n]|'')*'|\"[^\"\n]*\"|`[^`\n]*`|(--[^\n]*)")
    return [match.group(1).rstrip() for match in strings.finditer(text) if match.group(1)]


# --- the layout -------------------------------------------------------------------------------------------------------


def test_short_pipelines_stay_on_one_line() -> None:
    assert (
        formatted("view v=from S\n|>where a>1\n |> project a,b ;")
        == "view v = from S |> where a > 1 |> project a, b;\n"
    )


def test_long_pipelines_have_a_line_for_each_step() -> None:
    text = (
        "view busy = from Bid |> where price > 1000 and channel = 'apple' |> extend day := date(ts) |> project day, x;"
    )
    assert formatted(text) == (
        "view busy = from Bid\n"
        "  |> where price > 1000 and channel = 'apple'\n"
        "  |> extend day := date(ts)\n"
        "  |> project day, x;\n"
    )


def test_long_lists_have_a_line_for_each_item() -> None:
    text = (
        "view q = from Bid |> aggregate total_bids := count(), rank1_bids := count() where price < 10000,"
        " total_bidders := count(distinct bidder) group by day;"
    )
    assert formatted(text) == (
        "view q = from Bid\n"
        "  |> aggregate\n"
        "      total_bids := count(),\n"
        "      rank1_bids := count() where price < 10000,\n"
        "      total_bidders := count(distinct bidder)\n"
        "    group by day;\n"
    )


def test_long_relations_in_parentheses_are_indented() -> None:
    text = (
        "view q = from Auction |> join (from Person |> where state in ('OR', 'ID', 'CA') and city <> 'Portland'"
        " |> project id, name, city) as P on seller = P.id;"
    )
    assert formatted(text) == (
        "view q = from Auction\n"
        "  |> join (\n"
        "    from Person\n"
        "    |> where state in ('OR', 'ID', 'CA') and city <> 'Portland'\n"
        "    |> project id, name, city\n"
        "  ) as P on seller = P.id;\n"
    )


def test_columns_with_defaults() -> None:
    text = "STREAM S(a int [ 0 .. 9 ]DEFAULT -  3,default text  default 'it''s',t time default TIME '2026-01-01');"
    assert formatted(text) == (
        "stream S (a int[0..9] default -3, default text default 'it''s', t time default time '2026-01-01');\n"
    )


def test_comments_keep_their_place() -> None:
    text = (
        "-- about S\n"
        "stream S (a int,   -- the first\n"
        "          b int);  -- the end\n"
        "\n\n\n"
        "-- about v\n"
        "\n"
        "-- more about v\n"
        "view v = from S\n"
        "      -- only some\n"
        "  |> where a > 1 -- not all\n"
        "  |> project a;\n"
        "-- the last\n"
    )
    assert formatted(text) == (
        "-- about S\n"
        "stream S (\n"
        "  a int,  -- the first\n"
        "  b int\n"
        ");  -- the end\n"
        "\n"
        "-- about v\n"
        "\n"
        "-- more about v\n"
        "view v = from S\n"
        "  -- only some\n"
        "  |> where a > 1  -- not all\n"
        "  |> project a;\n"
        "-- the last\n"
    )


def test_comments_before_a_comma_or_semicolon_go_behind_it() -> None:
    assert formatted("view v = from S |> project a -- first\n , b\n-- last\n;") == (
        "view v = from S\n  |> project\n      a,  -- first\n      b;  -- last\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("((a))", "a"),
        ("(a + b) * c", "(a + b) * c"),
        ("(a * b) + c", "a * b + c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "(a - b) - c"),  # grouped by hand is another tree than a chain
        ("((a - b) - c)", "(a - b) - c"),
        ("- (-a)", "- -a"),
        ("-(a + b)", "-(a + b)"),
        ("(not a) and (b or c)", "not a and (b or c)"),
        ("not (not a)", "not not a"),
        ("not ((a = b))", "not a = b"),
        ("(a = b) = c", "(a = b) = c"),
        ("(a and b) or (c and d)", "a and b or c and d"),
        ("(a in (1)) = (b is null)", "(a in (1)) = (b is null)"),
        ("f((a), (b + c))", "f(a, b + c)"),
        ("CASE WHEN (a) THEN (1) ELSE 2 END", "case when a then 1 else 2 end"),
        ("CAST((a) AS Decimal( 10 , 2 ))", "cast(a as decimal(10,2))"),
        ("10S", "10 s"),
        ("1E3", "1e3"),
        ("`a` + `from` + `a b` + `key`", "a + `from` + `a b` + key"),
        ("TIME  '2026-01-01'", "time '2026-01-01'"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert formatted(f"view v = from S |> extend x := {text};") == f"view v = from S |> extend x := {expected};\n"


def test_ascending_is_left_out_and_names_are_not_touched() -> None:
    assert formatted("VIEW V = FROM Key |> TOP 1 BY A ASC, B DESC;") == "view V = from Key |> top 1 by A, B desc;\n"


def test_statements_on_one_line_are_parted() -> None:
    assert formatted("drop view a;drop view b; -- both\n\n\ndrop view c;") == (
        "drop view a;\ndrop view b;  -- both\n\ndrop view c;\n"
    )


def test_an_empty_program_and_lone_comments() -> None:
    assert formatted("") == ""
    assert formatted(" \n\n") == ""
    assert formatted("\n\n--  a \n\n\n-- b") == "--  a\n\n-- b\n"


def test_wide_statements_fit_the_page() -> None:
    assert max(len(line) for line in formatted(EVERY_CONSTRUCT).splitlines()) <= WIDTH


def test_every_construct_keeps_its_meaning() -> None:
    assert formatted(EVERY_CONSTRUCT).count(";") == EVERY_CONSTRUCT.count(";")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_formatted_already_or_can_be(path: Path) -> None:
    assert formatted(path.read_text(encoding="utf-8"))


def test_a_text_with_errors_is_refused() -> None:
    with pytest.raises(MplError) as raised:
        format_source(Source("test.mpl", "view v = frm S;"))
    assert [item.code.name for item in raised.value.diagnostics] == ["MPL0101"]


# --- random layout ----------------------------------------------------------------------------------------------------


def statements_of(text: str) -> list[list[Token]]:
    """The tokens of each statement; those that the parser takes for names are typed as names."""
    tokens = tokenize(Source("test.mpl", text), tables().lexicon, Diagnostics())
    parts: list[list[Token]] = [[]]
    for token in tokens:
        parts[-1].append(token)
        if token.type == END:
            tables().parse(parts[-1], 0, len(parts[-1]) - 1, token)
            parts.append([])
    return parts[:-1]


STATEMENTS = statements_of(EVERY_CONSTRUCT + "".join(path.read_text(encoding="utf-8") for path in EXAMPLES))
KEYWORDS = frozenset(tables().lexicon.keywords.values())
BLANKS = (" ", " ", " ", "\n", "  \t", "\n\n\n  ", "\r\n", " -- c\n", "\n-- own line\n", "\n  --\n\n -- it's; |>\n")


@st.composite
def rearranged(draw: st.DrawFn) -> str:
    """A few statements with blanks, line breaks and comments strewn between their tokens, and keywords in any case."""
    random = draw(st.randoms(use_true_random=False))
    share_of_comments = draw(st.sampled_from((0.0, 0.02, 0.3)))
    parts: list[str] = []
    for tokens in draw(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=3)):
        for token in tokens:
            is_keyword = token.type != NAME and token.type in KEYWORDS
            parts.append(random.choice((str.upper, str.title, str.lower))(token.text) if is_keyword else token.text)
            parts.append(random.choice(BLANKS) if random.random() < share_of_comments else random.choice(BLANKS[:3]))
    return "".join(parts)


@given(rearranged())
@settings(deadline=None, max_examples=300)
def test_any_layout_is_formatted_without_loss(text: str) -> None:
    formatted(text)


@given(rearranged())
@settings(deadline=None, max_examples=100)
def test_layout_does_not_matter(text: str) -> None:
    """Without comments, the text that comes out depends on the program only."""
    bare = re.sub(r"(?m)^((?:[^'\"`\n-]|-(?!-)|'(?:[^'\n]|'')*'|\"[^\"\n]*\"|`[^`\n]*`)*)--.*$", r"\1", text)
    once = formatted(bare)
    tokens = [token.text for token in tokenize(Source("test.mpl", bare), tables().lexicon, Diagnostics())]
    assert formatted(" ".join(tokens)) == re.sub(r"\n\n", "\n", once)
