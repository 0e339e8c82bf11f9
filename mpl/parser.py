"""The parser: source text to syntax nodes, and every syntax error of the text in one run.

`parse` cuts the text into tokens and the tokens into statements at `;`, and parses each statement alone, so that one
bad statement hides no error of another and is merely left out. It never raises for what a user wrote, takes time in
proportion to the text, and knows nothing about names or types.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from mpl.codes.syntax import EMPTY_STATEMENT, MISSING_SEMICOLON
from mpl.diagnostic import DIAGNOSTICS_MAX, Diagnostics
from mpl.nodes import Program, Statement, StreamDecl, TableDecl
from mpl.source import Source, Span
from mpl.syntax.builders.parts import Refused
from mpl.syntax.errors import add, explain
from mpl.syntax.expected import STATEMENT_WORDS
from mpl.syntax.lexical_errors import check_characters
from mpl.syntax.lexing import tokenize
from mpl.syntax.limits import Chunk, Counters, check_depth, check_text, chunks
from mpl.syntax.tables import Failure, tables
from mpl.syntax.tokens import END, Token

DECLARING_WORDS = frozenset(("stream", "table", "view", "subscribe", "function", "broker"))


def parse(source: Source, diagnostics: Diagnostics) -> Program:
    """The statements of `source` that can be understood; everything else is reported."""
    whole = Span(source, 0, len(source.text))
    if not check_text(source, diagnostics):
        return Program((), span=whole)
    check_characters(source, diagnostics)
    with _collection_paused():
        parser = _Parser(source, diagnostics)
        parser.run()
    return Program(tuple(parser.statements), frozenset(parser.unread), span=whole)


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Nearly everything a parse makes is kept, so looking for garbage meanwhile only costs (a third of the time)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Parser:
    """One run over one source."""

    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.statements: list[Statement] = []
        self.unread: set[str] = set()
        self.tables = tables()
        self.tokens = tokenize(source, self.tables.lexicon, diagnostics)
        self.counters = Counters(diagnostics)

    def run(self) -> None:
        empty_start: int | None = None
        for chunk in chunks(self.tokens, self.counters, self.diagnostics):
            if len(self.diagnostics) >= DIAGNOSTICS_MAX:
                return
            if chunk.start == chunk.end:
                empty_start = chunk.start if empty_start is None else empty_start
                continue
            if empty_start is not None:
                self._report_empty(empty_start, chunk.start)
                empty_start = None
            if chunk.too_deep:
                self._leave_out(chunk.start)
            elif not self._parse_chunk(chunk):
                return
        if empty_start is not None:
            self._report_empty(empty_start, len(self.tokens))

    def _parse_chunk(self, chunk: Chunk) -> bool:
        """Parse the statements between two `;`: one, or more where a `;` is missing. False when a limit is passed."""
        tokens = self.tokens
        start = chunk.start
        while start < chunk.end:
            result = self._parse(start, chunk.end, tokens[chunk.end])
            if not isinstance(result, Failure):
                if result is not None and tokens[chunk.end].text == "":
                    self._report_missing_semicolon(chunk.end)
                return self._keep(result, chunk, start)
            if len(self.diagnostics) >= DIAGNOSTICS_MAX:
                return False
            if self._is_missing_semicolon(result):
                self._report_missing_semicolon(result.index)
                whole = self._parse(start, result.index, Token(END, "", tokens[result.index].span))
                assert not isinstance(whole, Failure), "the tables said that it could end here"
                if not self._keep(whole, chunk, start):
                    return False
                start = result.index
            else:
                explain(self.tables, tokens, start, chunk.end, result, self.diagnostics)
                self._leave_out(start)
                start = self._next_statement(result.index, chunk.end)
        return True

    def _parse(self, start: int, end: int, end_token: Token) -> Statement | Failure | None:
        """One statement, or where it fails; None when its builder has refused it, which is reported."""
        try:
            return self.tables.parse(self.tokens, start, end, end_token)
        except Refused as refused:
            add(refused.diagnostic, self.diagnostics)
            return None

    def _leave_out(self, start: int) -> None:
        """The statement that begins at token `start` is not understood; what it declares is not missing, though."""
        declares = self.tokens[start].text.lower() in DECLARING_WORDS
        if declares and self.tokens[start + 1 : start + 2]:
            self.unread.add(self.tokens[start + 1].text.strip("`"))

    def _keep(self, statement: Statement | None, chunk: Chunk, start: int) -> bool:
        """Take the statement that begins at token `start` into the program. False when a limit is passed."""
        if statement is None or (chunk.may_be_deep and not check_depth(statement, self.diagnostics)):
            self._leave_out(start)
            return True
        self.statements.append(statement)
        if isinstance(statement, StreamDecl | TableDecl):
            return self.counters.column(statement.name.span, len(statement.columns))
        return True

    # --- where one statement ends and the next begins -----------------------------------------------------------------

    def _is_missing_semicolon(self, failure: Failure) -> bool:
        """Whether the statement could have ended where it failed, and the next begins there."""
        return (
            self.tokens[failure.index].type in STATEMENT_WORDS
            and self._begins_line(failure.index)
            and END in self.tables.accepted(failure.states)
        )

    def _next_statement(self, failed: int, end: int) -> int:
        """The next token that begins both a line and a statement, or `end`."""
        for index in range(max(failed, 1), end):
            kind = self.tables.lexicon.keywords.get(self.tokens[index].text.lower())
            if kind in STATEMENT_WORDS and self._begins_line(index):
                self.tokens[index].type = kind  # it may have been taken for a name
                return index
        return end

    def _begins_line(self, index: int) -> bool:
        between = self.source.text[self.tokens[index - 1].span.end : self.tokens[index].span.start]
        return "\n" in between

    def _report_missing_semicolon(self, index: int) -> None:
        """`index` is the token after which the `;` should have been."""
        place = self.tokens[index - 1].span.end
        self.diagnostics.report(
            MISSING_SEMICOLON,
            Span(self.source, place, place),
            "this statement does not end with `;`",
            "`;` expected here",
            help="write `;` after every statement, also after the last",
        )

    def _report_empty(self, start: int, end: int) -> None:
        span = self.tokens[start].span.to(self.tokens[end - 1].span)
        self.diagnostics.report(
            EMPTY_STATEMENT, span, "there is no statement before this `;`", "nothing to end here", help="delete it"
        )
