"""How a broker's log lines look: one JSON object per line, or text for people. To stderr, in the glossary's words."""

from __future__ import annotations

import json
import logging
import sys
import time

FIELDS = ("component", "edge", "epoch", "code", "is_new")
"""What a line may carry besides its text."""


class JsonLines(logging.Formatter):
    def __init__(self, broker: str) -> None:
        super().__init__()
        self._broker = broker

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "broker": self._broker,
            "part": record.name.removeprefix("smile."),
            "text": record.getMessage(),
        }
        said.update({field: getattr(record, field) for field in FIELDS if hasattr(record, field)})
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


class PrettyLines(logging.Formatter):
    def __init__(self, broker: str) -> None:
        super().__init__()
        self._broker = broker

    def format(self, record: logging.LogRecord) -> str:
        marks = [f"{field}={getattr(record, field)}" for field in FIELDS if hasattr(record, field)]
        part = record.name.removeprefix("smile.")
        line = f"{_time(record.created)} {record.levelname.lower():7} {self._broker} {part}: {record.getMessage()}"
        line += f"  [{' '.join(marks)}]" if marks else ""
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1_000) % 1_000:03}Z"


def log_to_stderr(broker: str, form: str) -> None:
    """`form` is "json" or "pretty"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(broker) if form == "json" else PrettyLines(broker))
    root = logging.getLogger("smile")
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
