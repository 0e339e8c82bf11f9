"""What Spark's errors say, in one sentence: without stack traces, stage numbers and addresses of workers."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
"""All that Spark raises, on either side of its gateway."""

SENTENCE_MAX = 500

_PYTHON = re.compile(r"^(?:\w+\.)*(?:LogError|LogCorrupt|TicksGone|ArchiveError|SourceError): (.+)$", re.MULTILINE)
"""What our own reader said in a worker: Spark quotes its whole trace."""

_NAMED = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""Spark's way: the name of the condition, a sentence, a code."""

_JAVA = re.compile(r"^(?:Caused by)?: (?:[\w$]+\.)+([\w$]+): (.+)$", re.MULTILINE)
"""What Java raised, after a line that only says which call failed; the last one is where it began."""

_OWN_WORDS = "USER_RAISED_EXCEPTION"

_REMEDIES = {
    "PYTHON_VERSION_MISMATCH": "set PYSPARK_PYTHON to a Python of the same version on every worker",
    "PATH_ALREADY_EXISTS": "name another folder, or remove it",
    "PATH_NOT_FOUND": "if it is a file of the archive, restore it from a copy",
    "FAILED_READ_FILE.NO_HINT": "if it is a file of the archive, restore it from a copy; `smile archive --check` says"
    " which are damaged",
    "DATA_SOURCE_NOT_FOUND": "name its jars in [spark] packages of smile.toml",
}


def words_of(error: BaseException) -> str:
    text = str(error)
    ours = _PYTHON.search(text)
    if ours is not None:
        return ours.group(1)[:SENTENCE_MAX]
    named = _NAMED.search(text)
    java = _JAVA.findall(text)
    if named is None and java:
        kind, sentence = java[-1]
        return f"{sentence.strip()[:SENTENCE_MAX]} [{kind}]"
    if named is None:
        return (text.strip().splitlines() or [type(error).__name__])[0][:SENTENCE_MAX]
    condition, sentence = named.groups()
    remedy = _REMEDIES.get(condition)
    said = sentence.strip()[:SENTENCE_MAX]
    if condition == _OWN_WORDS:
        return said
    return f"{said} [{condition}]" + (f"; {remedy}" if remedy else "")
