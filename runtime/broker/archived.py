"""How far an archive holds the logs of this broker: the bound below which they may be trimmed.

A thread reads the archive's manifest now and then, and the loop asks for the result. The manifest alone is not
believed. It must be on disk and of the very log that is kept here, its files must be there with their right sizes, and
each that has ticks of the log was read once and had its checksum. Whatever is wrong, missing or unreadable lowers the
bound; no mistake raises it.
What was trimmed before stays trimmed: then the archive is the only copy, and must be kept as such.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from runtime.bulk.manifest import ArchivedFile, ArchivedStream, ArchiveError, Manifest, newest_number, read_manifest
from runtime.files import sync_folder
from runtime.log.reader import LogReader
from runtime.log.stream_log import LogError
from runtime.protocol.coverage import NO_TICK

log = logging.getLogger("smile.archive")

LOOK_EVERY_S = 2.0
CHUNK_BYTES = 1 << 20

_Ours = tuple[ArchivedStream, int]
"""What the archive has of a stream, and up to where our log was trimmed when we looked."""


class ArchiveWatch:
    """`held` may be called from any thread and costs nothing. Between `start` and `close` it has a thread."""

    def __init__(self, archive: Path, logs: Path, look_every_s: float = LOOK_EVERY_S) -> None:
        self._archive = archive
        self._logs = logs
        self._look_every_s = look_every_s
        self._held: Mapping[str, int] = {}
        self._manifest = Manifest()
        self._ours: dict[str, _Ours] = {}  # streams of the manifest that are those of our logs
        self._checked: set[tuple[str, str]] = set()  # files that were read: path and checksum
        self._problem = ""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smile-archive-watch", daemon=True)

    def start(self) -> ArchiveWatch:
        self._thread.start()
        return self

    def held(self, stream: str) -> int:
        """The log of this stream may be trimmed up to here; NO_TICK: not at all."""
        return self._held.get(stream, NO_TICK)

    def status(self) -> dict[str, int]:
        return {"archive_manifest": self._manifest.number, "archive_problems": int(bool(self._problem))}

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                held, problem = self.look()
            except (ArchiveError, LogError, OSError) as error:
                held, problem = {}, str(error)
            except Exception as error:  # whatever is in that file: a broker goes on, and trims nothing
                log.exception("the archive cannot be read")
                held, problem = {}, f"{type(error).__name__}: {error}"
            self._held = held
            if problem and problem != self._problem:
                log.warning("logs are not trimmed: %s", problem)
            self._problem = problem
            self._closing.wait(self._look_every_s)

    def look(self) -> tuple[dict[str, int], str]:
        """How far each stream is held now, and what is wrong, if anything is."""
        if newest_number(self._archive) != self._manifest.number:
            manifest = read_manifest(self._archive)
            if manifest.number:  # it can be seen before it would survive a power failure
                sync_folder(self._archive / "manifests")
            self._ours = self._of_our_logs(manifest)
            self._manifest = manifest
        held: dict[str, int] = {}
        problem = ""
        for name, (stream, trimmed_tick) in self._ours.items():
            # The batch at the horizon stays in the log: it proves whose archive this is.
            tick = min(stream.complete_tick, stream.horizon - 1)
            for file in stream.files:
                if not self._is_whole(file, trimmed_tick):
                    problem = f"{self._archive / file.path} is missing or damaged"
                    tick = min(tick, file.first_tick - 1)
            held[name] = tick
        return held, problem

    def _of_our_logs(self, manifest: Manifest) -> dict[str, _Ours]:
        found: dict[str, _Ours] = {}
        with LogReader(self._logs) as reader:
            for name, logged in reader.streams().items():
                archived = manifest.streams.get(name)
                if archived is None or archived.end_checksum is None:
                    continue
                if reader.checksum_at(logged, archived.horizon) == archived.end_checksum:
                    found[name] = archived, logged.trimmed_tick
                else:
                    log.warning("the archive in %s is of another log of stream `%s`", self._archive, name)
        return found

    def _is_whole(self, file: ArchivedFile, trimmed_tick: int) -> bool:
        """A file whose ticks have all left the log is not read again: nothing more is trimmed on its word."""
        path = self._archive / file.path
        try:
            if path.stat().st_size != file.bytes:
                return False
            if file.last_tick > trimmed_tick and (file.path, file.sha256) not in self._checked:
                digest = hashlib.sha256()
                with path.open("rb") as content:
                    while (chunk := content.read(CHUNK_BYTES)) and not self._closing.is_set():
                        digest.update(chunk)
                if digest.hexdigest() != file.sha256:
                    return False
                self._checked.add((file.path, file.sha256))
        except OSError:
            return False
        return True
