"""The parser: source text to syntax nodes, and every syntax error of the text in one run.

`parse` cuts the text into tokens, the tokens into statements at `;`, and parses each statement alone with lark's LALR
tables, so that one bad statement hides no error of another. It never raises for what a user wrote, and knows nothing
about names or types.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, cast

from lark import Lark
from lark.exceptions import UnexpectedToken

from mpl.builders import Builders
from mpl.codes.syntax import UNEXPECTED
from mpl.diagnostic import Diagnostics
from mpl.lexing import END, NAME, RESERVED, Lexicon, Token, tokenize
from mpl.nodes import Program, Statement
from mpl.source import Source, Span


class Grammar:
    """The tables made from `grammar.lark`: built once, at the first parse, and never changed."""

    def __init__(self) -> None:
        text = files("mpl").joinpath("grammar.lark").read_text(encoding="utf-8")
        self.lark = Lark(
            text,
            parser="lalr",
            lexer="basic",
            start="statement",
            keep_all_tokens=True,
            maybe_placeholders=True,
            transformer=cast(Any, Builders()),
        )
        self.lexicon = Lexicon.of(self.lark.terminals)
        self.soft = frozenset(self.lexicon.keywords[word] for word in self.lexicon.keywords if word not in RESERVED)


@cache
def grammar() -> Grammar:
    return Grammar()


def parse(source: Source, diagnostics: Diagnostics) -> Program:
    tables = grammar()
    tokens = tokenize(source, tables.lexicon)
    statements: list[Statement] = []
    start = 0
    for index, token in enumerate(tokens):
        if token.type == END:
            if index > start:
                _parse_statement(tables, tokens, start, index, statements, diagnostics)
            start = index + 1
    return Program(tuple(statements), span=Span(source, 0, len(source.text)))


def _parse_statement(
    tables: Grammar, tokens: list[Token], start: int, end: int, statements: list[Statement], diagnostics: Diagnostics
) -> None:
    state = tables.lark.parse_interactive().parser_state
    states = state.parse_conf.states
    stack = state.state_stack
    feed = cast(Any, state.feed_token)
    soft = tables.soft
    try:
        for index in range(start, end):
            token = tokens[index]
            if token.type in soft:
                actions = states[stack[-1]]
                if token.type not in actions and NAME in actions:
                    token.type = NAME
            feed(token)
        statements.append(feed(tokens[end], True))
    except UnexpectedToken as error:
        token = cast(Token, error.token)
        diagnostics.report(
            UNEXPECTED, token.span, f"`{token.text}` cannot be here", f"expected {sorted(error.expected)}"
        )
