"""The checkpoints of the components of one process: which there are, and which may still be loaded.

Rule C4: when a component has told others that its state up to a horizon is durable, they forget what it could ask for
again. From then on no older checkpoint may be loaded, and none at all only if everything can be asked for anew. So the
newest acknowledged checkpoint is remembered in a file of its own, beside those with the state.

A checkpoint belongs to a component and a digest of what it computes: other code cannot read its state. Names of files
begin with epoch and number, so that a child of an incarnation that is gone, which may still be writing, replaces
nothing newer. A host calls this, perhaps in a forked child, hence plain files and no threads.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any

import msgpack

from runtime.checkpoints.codec import CHECKPOINT_BYTES_MAX
from runtime.files import TEMPORARY, make_folder, write_durably
from runtime.protocol.coverage import TICK_MAX

VERSION = 1
HEADER_BYTES_MAX = 4096
_MAGIC = b"smileCS\n"
_HEAD = Struct("<8sIII")  # magic, version, length of the header, checksum of header and data
_ACKNOWLEDGED = "durable"
_SUFFIX = ".checkpoint"
_LOCK = "lock"
_FOR_NOW = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that say nothing about a file: a checkpoint that logs were trimmed for must not be passed over for them."""


class CheckpointFailed(Exception):
    """It could not be written, or may not: nothing has changed."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Which checkpoint: later incarnations after earlier ones."""

    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """`data` is the newest checkpoint that may be loaded. None with `is_missing`: one was acknowledged and cannot be
    read, so that starting from nothing is right only if no log was trimmed for it."""

    data: bytes | None
    acknowledged_horizon: int
    is_missing: bool


@dataclass(frozen=True, slots=True)
class _Acknowledged:
    place: Place
    horizon: int


_NOTHING = _Acknowledged(Place(-1, -1), -1)


class CheckpointStore:
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.counters: Counter[str] = Counter()
        make_folder(self.folder)

    def save(self, component: str, digest: str, epoch: int, number: int, data: bytes) -> None:
        """Durable when this returns. CheckpointFailed: no room, too large, or of an epoch that is over."""
        header: bytes = msgpack.packb([component, digest, epoch, number])
        if len(data) > CHECKPOINT_BYTES_MAX or len(header) > HEADER_BYTES_MAX:
            raise CheckpointFailed(f"{component}: {len(data)} bytes are more than a checkpoint may have")
        place, folder = Place(epoch, number), self._folder_of(component, digest)
        try:
            make_folder(folder)
            with _locked(folder):
                newest = max(_places(folder), default=_NOTHING.place)
                if newest.epoch > epoch or _read_acknowledged(folder).place > place:
                    raise CheckpointFailed(f"{component}: a checkpoint of epoch {epoch} after {newest.epoch}")
                write_durably(folder / _name(place), _framed(header, data))
                self._remove_old(folder)
        except OSError as error:
            raise CheckpointFailed(f"{component}: {error}") from error

    def note_acknowledged(self, component: str, digest: str, epoch: int, number: int, horizon: int) -> None:
        """Call it before the component tells others that this checkpoint is durable (C4). Never goes back."""
        folder = self._folder_of(component, digest)
        try:
            make_folder(folder)
            with _locked(folder):
                before = _read_acknowledged(folder)
                place = max(before.place, Place(epoch, number))
                highest = horizon if before.horizon == TICK_MAX else max(before.horizon, horizon)
                body: bytes = msgpack.packb([place.epoch, place.number, highest])
                write_durably(folder / _ACKNOWLEDGED, _framed(body, b""))
                self._remove_old(folder)
        except OSError as error:
            raise CheckpointFailed(f"{component}: {error}") from error

    def load(self, component: str, digest: str) -> Loaded:
        """Damaged checkpoints are counted and passed over; the next one must still be new enough. OSError if there are
        too many open files, or the like: then it is not known whether there is one."""
        folder = self._folder_of(component, digest)
        while True:
            acknowledged = _read_acknowledged(folder)
            places = sorted(_places(folder), reverse=True)
            damaged = 0
            for place in places:
                if place < acknowledged.place:
                    break
                data = _read(folder / _name(place), [component, digest, place.epoch, place.number])
                if data is not None:
                    self.counters["checkpoints_damaged"] += damaged
                    return Loaded(data, acknowledged.horizon, is_missing=False)
                damaged += 1
            if places == sorted(_places(folder), reverse=True):
                self.counters["checkpoints_damaged"] += damaged
                return Loaded(None, acknowledged.horizon, is_missing=acknowledged != _NOTHING)
            # A child of an incarnation that was killed has replaced them while we looked.

    def acknowledged(self, component: str, digest: str) -> int:
        """The highest horizon that was ever acknowledged as durable; -1: none, TICK_MAX: nobody knows."""
        try:
            return _read_acknowledged(self._folder_of(component, digest)).horizon
        except OSError:
            return TICK_MAX

    def clean(self, current: Mapping[str, str]) -> None:
        """Remove what belongs to other components or digests than these, and what unfinished writes left behind."""
        wanted = {self._folder_of(component, digest) for component, digest in current.items()}
        for folder in self.folder.iterdir():
            if not folder.is_dir():
                continue
            for path in folder.iterdir():
                if folder not in wanted or path.name.endswith(TEMPORARY):
                    path.unlink(missing_ok=True)
            if folder not in wanted:
                with suppress(OSError):  # a child of an incarnation that was killed may still write into it
                    folder.rmdir()

    def _folder_of(self, component: str, digest: str) -> Path:
        """A name that any file system takes, and that people recognise."""
        readable = re.sub(r"[^A-Za-z0-9_.]+", "_", component)[:60].strip(".")
        return self.folder / f"{readable}-{hashlib.sha256(repr((component, digest)).encode()).hexdigest()[:24]}"

    def _remove_old(self, folder: Path) -> None:
        """Those before the newest acknowledged one may not be loaded; of those after it, only the newest is of use."""
        acknowledged = _read_acknowledged(folder).place
        places = sorted(_places(folder))
        for place in places[:-1]:
            if place != acknowledged:
                (folder / _name(place)).unlink(missing_ok=True)


def _name(place: Place) -> str:
    return f"{place.epoch}-{place.number}{_SUFFIX}"


def _places(folder: Path) -> Iterator[Place]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        found = re.fullmatch(r"(\d{1,19})-(\d{1,19})" + re.escape(_SUFFIX), name)
        if found:
            yield Place(int(found[1]), int(found[2]))


def _framed(header: bytes, data: bytes) -> list[bytes]:
    checksum = zlib.crc32(data, zlib.crc32(header))
    return [_HEAD.pack(_MAGIC, VERSION, len(header), checksum), header, data]


def _unframed(path: Path) -> tuple[Any, bytes] | None:
    """Header and data; None if the file is missing or damaged. OSError if nobody could read any file now."""
    try:
        if path.stat().st_size > _HEAD.size + HEADER_BYTES_MAX + CHECKPOINT_BYTES_MAX:
            return None
        content = path.read_bytes()
        magic, version, header_bytes, checksum = _HEAD.unpack_from(content)
        view = memoryview(content)[_HEAD.size :]
        if magic != _MAGIC or version != VERSION or header_bytes > HEADER_BYTES_MAX or zlib.crc32(view) != checksum:
            return None
        return msgpack.unpackb(view[:header_bytes]), content[_HEAD.size + header_bytes :]
    except OSError as error:
        if error.errno in _FOR_NOW:
            raise
        return None
    except (StructError, msgpack.UnpackException, ValueError, TypeError):
        return None


def _read(path: Path, expected: list[object]) -> bytes | None:
    found = _unframed(path)
    return found[1] if found is not None and found[0] == expected else None


def _read_acknowledged(folder: Path) -> _Acknowledged:
    """If it cannot be read, the newest checkpoint is the only one that is surely not older than it, and no horizon is
    surely high enough. No file: nothing was acknowledged."""
    path = folder / _ACKNOWLEDGED
    if not path.exists():
        return _NOTHING
    match _unframed(path):
        case ([int(epoch), int(number), int(horizon)], b""):
            return _Acknowledged(Place(epoch, number), horizon)
        case _:
            return _Acknowledged(max(_places(folder), default=Place(0, 0)), TICK_MAX)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Against a child of an earlier incarnation that is still writing."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
