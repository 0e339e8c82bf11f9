"""What must hold: for a generated program, and for any text at all.

Each property returns what is wrong in words, or None. The tests and `python -m tests.generator` run them over many
seeds; shrinking runs them again over smaller and smaller texts.
"""

from __future__ import annotations

import json
import re
import traceback
from itertools import pairwise

from mpl import typed
from mpl.check import Checked, check
from mpl.checker import check_program
from mpl.codes import CODES
from mpl.diagnostic import Diagnostic, Diagnostics, Severity
from mpl.formatter import format_source
from mpl.nodes import Program
from mpl.parser import parse
from mpl.render import record, render_all
from mpl.source import Source
from mpl.types import DecimalType
from tests.generator.program import Generated
from tests.generator.shapes import Column
from tests.generator.tokens import cut

KNOWN_CODES = frozenset(CODES)
SECOND_SENTENCE = re.compile(r"[.!?] [A-Z]")


def wrong_with_any(text: str) -> str | None:
    """Any text is answered: no exception, and diagnostics that are fit to be shown."""
    try:
        return _wrong_with_diagnostics(check(Source("random.mpl", text)))
    except Exception:  # noqa: BLE001  (what must not happen is what is looked for)
        return traceback.format_exc()


def wrong_with_program(generated: Generated) -> str | None:
    """A generated program has no errors, its views have the columns that the generator meant."""
    try:
        checked = check(Source("random.mpl", generated.text))
        return _wrong_with_diagnostics(checked) or _errors_of(checked) or _wrong_columns(generated, checked.program)
    except Exception:  # noqa: BLE001
        return traceback.format_exc()


def wrong_with_format(text: str) -> str | None:
    """Formatting keeps the nodes, the comments and the typed program, and formatting again changes nothing."""
    try:
        formatted = format_source(Source("random.mpl", text))
        if format_source(Source("random.mpl", formatted)) != formatted:
            return "formatting twice is not formatting once"
        before, after = _parsed(text), _parsed(formatted)
        if before != after:
            return f"other nodes after formatting:\n{formatted}"
        if _comments(formatted) != _comments(text):
            return f"comments {_comments(text)} became {_comments(formatted)}"
        if check_program(before, Diagnostics()) != check_program(after, Diagnostics()):
            return f"another typed program after formatting:\n{formatted}"
        return None
    except Exception:  # noqa: BLE001
        return traceback.format_exc()


def _parsed(text: str) -> Program:
    return parse(Source("random.mpl", text), Diagnostics())


def _comments(text: str) -> list[str]:
    return sorted(token.rstrip() for token in cut(text) if token.startswith("--"))


def _errors_of(checked: Checked) -> str | None:
    return render_all(item for item in checked.diagnostics if item.severity is Severity.ERROR) or None


def _wrong_with_diagnostics(checked: Checked) -> str | None:
    items = checked.diagnostics
    if checked.ok == any(item.severity is Severity.ERROR for item in items):
        return f"ok is {checked.ok} with {[item.code.name for item in items]}"
    for item in items:
        wrong = _wrong_with_diagnostic(item, checked.source)
        if wrong is not None:
            return f"{wrong}\n{item}"
    if any(one.span.start > other.span.start for one, other in pairwise(items)):
        return f"not in source order: {[item.span.start for item in items]}"
    render_all(items, color=True, dropped=checked.dropped)
    json.dumps([record(item) for item in items], ensure_ascii=True)
    return None


def _wrong_with_diagnostic(item: Diagnostic, source: Source) -> str | None:
    if item.code not in KNOWN_CODES:
        return "unknown code"
    spans = [item.span, *([item.note.span] if item.note and item.note.span else [])]
    if any(span.source is not source or not 0 <= span.start <= span.end <= len(source.text) for span in spans):
        return "a span outside of the text"
    texts = [item.message, item.label, item.help or "", item.note.text if item.note else ""]
    if not item.message.strip() or any("\n" in text for text in texts if text):
        return "a message that is empty or not one line"
    # What the user wrote is quoted in backticks and may hold anything.
    own_words = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "", item.message)
    if item.message.endswith(".") or SECOND_SENTENCE.search(own_words):
        return "a message that is not one sentence without a full stop"
    return None


def _wrong_columns(generated: Generated, program: typed.TypedProgram) -> str | None:
    for name, expected in generated.columns.items():
        actual = program.views[name].schema.visible
        if [column.full_name for column in expected] != [column.name for column in actual]:
            return f"{name} has columns {[c.name for c in actual]}, not {[c.full_name for c in expected]}"
        for one, other in zip(expected, actual, strict=True):
            if not _same_column(one, other):
                return f"{name}.{other.name} is {other}, not {one}"
    return None


def _same_column(expected: Column, actual: typed.Column) -> bool:
    """The same family, the same scale where the generator follows it, and null only where it expects it."""
    shape = expected.shape
    same = str(actual.type).partition("(")[0] == shape.family
    if isinstance(actual.type, DecimalType) and shape.digits is not None:
        same = same and actual.type.scale == shape.digits[1]
    if shape.family == "enum":
        same = same and str(actual.type) == shape.written
    return same and (expected.nullable or not actual.nullable) and expected.is_tick == actual.is_tick
