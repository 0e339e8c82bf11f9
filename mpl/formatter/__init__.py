"""The formatter: MPL text in its canonical layout, with every comment kept and its meaning unchanged.

`format_source` is called by the command line. It parses the text, turns each statement's nodes into a layout, takes
names, literals and comments from the source, and prints to a width of 100 columns. It never formats a text that has
syntax errors.
"""

from __future__ import annotations

from mpl.diagnostic import Diagnostics, MplError
from mpl.formatter.comments import attach, fit
from mpl.formatter.layout import layout, words_of
from mpl.formatter.statements import statement
from mpl.nodes import Statement
from mpl.parser import parse
from mpl.source import Source, Span
from mpl.syntax.lexing import comments, tokenize
from mpl.syntax.tables import tables
from mpl.syntax.tokens import END, Token

__all__ = ["format_source"]


def format_source(source: Source) -> str:
    """The formatted text; raises `MplError` when the text has syntax errors."""
    diagnostics = Diagnostics()
    program = parse(source, diagnostics)
    if diagnostics.has_errors:
        raise MplError(diagnostics)
    return _Formatter(source).run(program.statements)


class _Formatter:
    """Statements and the comments between them, top to bottom."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables()
        self.tokens = tokenize(source, self.tables.lexicon, Diagnostics())
        self.comments = comments(source, self.tables.lexicon)
        self.next_comment = 0
        self.lines: list[str] = []
        self.written_to = 0

    def run(self, statements: tuple[Statement, ...]) -> str:
        start = 0
        for node in statements:
            end = next(index for index in range(start, len(self.tokens)) if self.tokens[index].type == END)
            self._between(self.tokens[start].span.start)
            self._statement(node, self.tokens[start : end + 1])
            start = end + 1
        self._between(len(self.source.text))
        return "".join(line + "\n" for line in self.lines)

    def _between(self, end: int) -> None:
        """Comments between statements, up to offset `end`, and one blank line where there were any."""
        while self.next_comment < len(self.comments) and self.comments[self.next_comment].start < end:
            comment = self.comments[self.next_comment]
            self._blank_line(comment.start)
            self.lines.append(comment.text)
            self.written_to = comment.end
            self.next_comment += 1
        self._blank_line(end)

    def _blank_line(self, start: int) -> None:
        gap = self.source.text[self.written_to : start]
        if self.lines and start < len(self.source.text) and gap.count("\n") > 1:
            self.lines.append("")

    def _statement(self, node: Statement, tokens: list[Token]) -> None:
        doc = statement(node)
        pairs = fit(words_of(doc), tokens, self.tables)
        end = tokens[-1].span.end
        inside: list[Span] = []
        while self.next_comment < len(self.comments):
            comment = self.comments[self.next_comment]
            # After the `;`, only a comment that nothing but blanks part from it still belongs to the statement.
            between = self.source.text[end : comment.start]
            if comment.start > end and ("\n" in between or between.strip()):
                break
            inside.append(comment)
            end = max(end, comment.end)
            self.next_comment += 1
        attach(pairs, inside)
        self.lines.append(layout(doc))
        self.written_to = end
