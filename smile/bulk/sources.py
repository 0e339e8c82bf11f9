"""Where the history of a deployment is: an archive, the data folders of its brokers, or both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.log.reader import LogReader
from runtime.log.stream_log import LogError
from smile.errors import SmileError

if TYPE_CHECKING:
    from runtime.bulk.manifest import ArchivedStream


@dataclass(frozen=True)
class Sources:
    """`folders` are data folders of brokers (or of a system in one process); each stream is in one of them."""

    archive: Path | None
    folders: tuple[Path, ...]

    def latest(self, streams: Collection[str]) -> dict[str, int]:
        """For each stream the newest tick that was logged or archived, -1 if it never had an event."""
        found = dict.fromkeys(streams, -1)
        archived = {name: stream.horizon for name, stream in self.archived().items()}
        for stream, tick in (*archived.items(), *self._logged().items()):
            if stream in found:
                found[stream] = max(found[stream], tick)
        return found

    def columns_of(self, stream: str) -> tuple[tuple[str, str], ...]:
        """Names and types as they were logged; SmileError if nobody has the stream."""
        for folder in self.folders:
            with reading(folder) as reader:
                logged = reader.streams().get(stream)
            if logged is not None:
                return logged.columns
        archived = self.archived().get(stream)
        if archived is not None:
            return archived.columns
        places = ", ".join(map(str, (*self.folders, *([self.archive] if self.archive else []))))
        raise SmileError(f"no events of stream `{stream}` in {places or 'nowhere: no folder was named'}")

    def archived(self) -> Mapping[str, ArchivedStream]:
        """What the archive has now; nothing if there is none. SmileError if its manifest cannot be read."""
        if self.archive is None:
            return {}
        from runtime.bulk.manifest import ArchiveError, read_manifest

        try:
            return read_manifest(self.archive).streams
        except ArchiveError as error:
            raise SmileError(str(error)) from error

    def _logged(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder in self.folders:
            with reading(folder) as reader:
                found |= {name: stream.last_tick for name, stream in reader.streams().items()}
        return found


@contextmanager
def reading(folder: Path) -> Iterator[LogReader]:
    """The logs in a folder; what is wrong with them is a SmileError."""
    try:
        with LogReader(folder) as reader:
            yield reader
    except LogError as error:
        raise SmileError(str(error)) from error
