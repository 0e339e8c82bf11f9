"""Goal: damage in the log of one stream stops that stream, not those that were to be written with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from runtime.batch import Batch
from runtime.broker.log_access import LogAccess
from runtime.log.memory import MemoryLog
from runtime.log.sqlite import LogDirectory
from runtime.log.stream_log import LogCorrupt
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import AppendToLog, LogFailed, LogWritten, TrimLog


class DamagedLog(MemoryLog):
    """Takes everything, and is found to be damaged when it is committed."""

    is_touched = False

    def append(self, epoch: int, rows: Batch, producer: str, sequence: int, forgotten: tuple[str, ...] = ()) -> None:
        self.is_touched = True


def append(tick: int) -> AppendToLog:
    return AppendToLog(1, tick, Batch.events([tick], [[tick]]), "p", tick)


def test_damage_stops_one_stream_of_a_commit(tmp_path: Path) -> None:
    damaged = DamagedLog(2)
    with closing(LogDirectory(tmp_path)) as directory:
        sound = directory.stream("Sound", [("x", "int")])
        sound.open(1)

        @contextmanager
        def group() -> Iterator[None]:
            with directory.group():
                yield
                if damaged.is_touched:
                    damaged.is_touched = False
                    raise LogCorrupt("a page is damaged")

        access = LogAccess(group)
        access.write("Damaged", damaged, append(1))
        access.write("Sound", sound, append(1))
        access.write("Sound", sound, append(2))
        access.write("Trimmed", MemoryLog(2), TrimLog(1))
        told = {component: (event, error) for component, event, error in access.commit()}
        assert told.keys() == {"Damaged", "Sound"}
        event, error = told["Damaged"]
        assert isinstance(event, LogFailed)
        assert isinstance(error, LogCorrupt)
        assert told["Sound"] == (LogWritten(2), None)
        _, rows, _ = sound.read(Coverage.of((0, 9)), 10)
        assert list(rows.max_ticks) == [1, 2]
        assert access.commits.count == 1
