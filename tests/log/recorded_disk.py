"""A disk that can lose its power: every write and sync of this process below one folder, in order, and what of it a
power cut at any moment would leave.

SQLite's own writes are recorded by putting functions of ours into the table of its file methods, in the very library
that Python uses; plain files by replacing functions of `os`. Nothing of the product knows. `Recording.cut` then builds
the folder as it may look after a cut: what was synced is there; of what was not, any sector may be, may not be or may
be torn; names of files that no sync of their folder followed may be missing, and so may deletions.
"""

from __future__ import annotations

import _sqlite3
import ctypes as c
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from unittest import mock

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    path: str


@dataclass(frozen=True, slots=True)
class Create:
    path: str


@dataclass(frozen=True, slots=True)
class Delete:
    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    path: str
    target: str


@dataclass(frozen=True, slots=True)
class Told:
    """Not an operation: here the product said that something is durable."""

    fact: Any


Operation = Write | Truncate | Sync | Create | Delete | Rename | Told


@dataclass
class _File:
    """`synced` survives; of `later` anything may."""

    synced: bytearray = field(default_factory=bytearray)
    later: list[Write | Truncate] = field(default_factory=list)

    def sync(self) -> None:
        for one in self.later:
            _apply(self.synced, one)
        self.later = []

    def after_cut(self, rng: Random) -> bytes:
        content = bytearray(self.synced)
        chance = rng.choice((0.0, 0.5, 0.9, 1.0))  # nothing, half, nearly all, all of what was on its way
        for one in self.later:
            for piece in _sectors(one) if isinstance(one, Write) else [one]:
                if rng.random() < chance:
                    _apply(content, _torn(piece, rng) if chance < 1 and rng.random() < 0.1 else piece)
        return bytes(content)


def _apply(content: bytearray, one: Write | Truncate) -> None:
    if isinstance(one, Truncate):
        del content[one.size :]
        content.extend(bytes(one.size - len(content)))
        return
    content.extend(bytes(max(0, one.offset - len(content))))
    content[one.offset : one.offset + len(one.data)] = one.data


def _sectors(one: Write) -> Iterator[Write]:
    at = one.offset
    end = one.offset + len(one.data)
    while at < end:
        stop = min(end, (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield Write(one.path, at, one.data[at - one.offset : stop - one.offset])
        at = stop


def _torn(one: Write | Truncate, rng: Random) -> Write | Truncate:
    return one if isinstance(one, Truncate) else Write(one.path, one.offset, one.data[: rng.randrange(len(one.data))])


class Recording:
    """All that happened below `folder` since it was made, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.operations: list[Operation] = []
        self._lock = threading.Lock()
        self._before = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def add(self, one: Operation) -> None:
        with self._lock:
            self.operations.append(one)

    def told(self, fact: Any) -> None:
        self.add(Told(fact))

    def cut(self, moment: int, target: Path, rng: Random) -> list[Any]:
        """Build in `target` what a power cut after so many operations may leave; the facts that were told before."""
        files = {path: _File(bytearray(data)) for path, data in self._before.items()}
        on_disk = dict(files)  # names that a sync of the folder has made durable
        facts = []
        for one in self.operations[:moment]:
            match one:
                case Write(path) | Truncate(path):
                    files[path].later.append(one)
                case Sync(path) if path in files:
                    files[path].sync()
                    on_disk[path] = files[path]  # SQLite syncs the folder with a new file; so do file systems
                case Sync(path):
                    self._sync_names(path, files, on_disk)
                case Create(path):
                    files.setdefault(path, _File())
                case Delete(path):
                    files.pop(path, None)
                case Rename(path, new):
                    files[new] = files.pop(path)
                case Told(fact):
                    facts.append(fact)
        for path in sorted({*files, *on_disk}):
            found = rng.choice([store.get(path) for store in (files, on_disk)])
            if found is not None:
                to = target / Path(path).relative_to(self.folder)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(found.after_cut(rng))
        return facts

    @staticmethod
    def _sync_names(folder: str, files: dict[str, _File], on_disk: dict[str, _File]) -> None:
        for path in [path for path in {*files, *on_disk} if str(Path(path).parent) == folder]:
            if path in files:
                on_disk[path] = files[path]
            else:
                del on_disk[path]


@contextmanager
def recorded(folder: Path) -> Iterator[Recording]:
    recording = Recording(folder)
    with _SqliteFiles.into(recording), _plain_files(recording):
        yield recording


# Plain files


@contextmanager
def _plain_files(recording: Recording) -> Iterator[None]:
    paths: dict[int, str] = {}
    real = {name: getattr(os, name) for name in ("open", "close", "write", "pwrite", "fsync", "replace", "unlink")}

    def opened(path: Any, flags: int, *args: Any, **more: Any) -> int:
        existed = os.path.lexists(path)
        handle: int = real["open"](path, flags, *args, **more)
        if str(path).startswith(recording.folder):
            paths[handle] = str(path)
            if not existed:
                recording.add(Create(str(path)))
            elif flags & os.O_TRUNC:
                recording.add(Truncate(str(path), 0))
        return handle

    def closed(handle: int) -> None:
        paths.pop(handle, None)
        real["close"](handle)

    def written(handle: int, data: Any) -> int:
        offset = os.lseek(handle, 0, os.SEEK_CUR) if handle in paths else 0
        count: int = real["write"](handle, data)
        if handle in paths:
            recording.add(Write(paths[handle], offset, bytes(data[:count])))
        return count

    def written_at(handle: int, data: Any, offset: int) -> int:
        count: int = real["pwrite"](handle, data, offset)
        if handle in paths:
            recording.add(Write(paths[handle], offset, bytes(data[:count])))
        return count

    def synced(handle: int) -> None:
        """Recorded only, after it: the folder of the test is not what has to survive."""
        if handle in paths:
            recording.add(Sync(paths[handle]))

    def replaced(path: Any, target: Any) -> None:
        real["replace"](path, target)
        if str(path).startswith(recording.folder):
            recording.add(Rename(str(path), str(target)))

    def unlinked(path: Any, *args: Any, **more: Any) -> None:
        real["unlink"](path, *args, **more)
        if str(path).startswith(recording.folder):
            recording.add(Delete(str(path)))

    new: dict[str, Any] = {"open": opened, "close": closed, "write": written, "pwrite": written_at, "fsync": synced}
    new |= {"fdatasync": synced, "replace": replaced, "unlink": unlinked}
    with mock.patch.multiple(os, **new):
        yield


# SQLite's files


class _Methods(c.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_: ClassVar = [
        ("iVersion", c.c_int),
        *((name, c.c_void_p) for name in ("xClose", "xRead", "xWrite", "xTruncate", "xSync", "xFileSize")),
        *((f"other_{i}", c.c_void_p) for i in range(12)),
    ]


class _OpenFile(c.Structure):
    """sqlite3_file: the methods, then whatever the file system's layer keeps."""

    _fields_: ClassVar = [("methods", c.POINTER(_Methods))]


class _Vfs(c.Structure):
    """sqlite3_vfs up to the two methods that are replaced."""

    _fields_: ClassVar = [
        ("iVersion", c.c_int),
        ("szOsFile", c.c_int),
        ("mxPathname", c.c_int),
        ("pNext", c.c_void_p),
        ("zName", c.c_char_p),
        ("pAppData", c.c_void_p),
        ("xOpen", c.c_void_p),
        ("xDelete", c.c_void_p),
    ]


_FILE = c.POINTER(_OpenFile)
# The name by its address: SQLite keeps it as long as the file is open.
_OPEN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, _FILE, c.c_int, c.POINTER(c.c_int))
_DELETE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_int)
_WRITE = c.CFUNCTYPE(c.c_int, _FILE, c.c_void_p, c.c_int, c.c_int64)
_TRUNCATE = c.CFUNCTYPE(c.c_int, _FILE, c.c_int64)
_SYNC = c.CFUNCTYPE(c.c_int, _FILE, c.c_int)


class _SqliteFiles:
    """Replaces the methods with which the library that Python's sqlite3 uses opens, writes, syncs and deletes files.

    One instance for the life of the process: SQLite keeps pointers to the functions as long as a file is open.
    """

    _only: ClassVar[_SqliteFiles | None] = None

    def __init__(self) -> None:
        library = c.CDLL(getattr(_sqlite3, "__file__", None))  # without a file it is a part of Python itself
        if not hasattr(library, "sqlite3_vfs_find"):
            raise RuntimeError("this Python hides the functions of its SQLite; power cuts need one that shows them")
        library.sqlite3_vfs_find.restype = c.POINTER(_Vfs)
        library.sqlite3_vfs_find.argtypes = [c.c_char_p]
        vfs = library.sqlite3_vfs_find(None).contents
        self.recording: Recording | None = None
        self._paths: dict[int, str] = {}
        self._tables: dict[int, _Methods] = {}  # by the address of the original
        self._kept: list[Any] = []  # functions that C points to
        self._open = _OPEN(vfs.xOpen)
        self._delete = _DELETE(vfs.xDelete)
        vfs.xOpen = self._pointer(_OPEN, self._opened)
        vfs.xDelete = self._pointer(_DELETE, self._deleted)

    @classmethod
    @contextmanager
    def into(cls, recording: Recording) -> Iterator[None]:
        if cls._only is None:
            cls._only = cls()
        cls._only.recording = recording
        try:
            yield
        finally:
            cls._only.recording = None

    def _pointer(self, kind: Any, function: Callable[..., Any]) -> int:
        made = kind(function)
        self._kept.append(made)
        return c.cast(made, c.c_void_p).value or 0

    def _add(self, one: Callable[[str], Operation], file: Any) -> None:
        path = self._paths.get(c.addressof(file.contents))
        if self.recording is not None and path is not None and path.startswith(self.recording.folder):
            self.recording.add(one(path))

    def _opened(self, vfs: int, name: int | None, file: Any, flags: int, out: Any) -> Any:
        path = os.fsdecode(c.string_at(name)) if name else ""
        existed = os.path.lexists(path)
        result = self._open(vfs, name, file, flags, out)
        if result == 0 and path:
            self._paths[c.addressof(file.contents)] = path
            original = c.addressof(file.contents.methods.contents)
            if original not in self._tables:
                self._tables[original] = self._replaced(file.contents.methods.contents)
            file.contents.methods = c.pointer(self._tables[original])
            if not existed:
                self._add(Create, file)
        return result

    def _replaced(self, original: _Methods) -> _Methods:
        """The same table, with three functions of ours that call the ones they replace."""
        table = _Methods.from_buffer_copy(original)
        write, truncate, sync = _WRITE(original.xWrite), _TRUNCATE(original.xTruncate), _SYNC(original.xSync)

        def written(file: Any, data: int, count: int, offset: int) -> Any:
            self._add(lambda path: Write(path, offset, c.string_at(data, count)), file)
            return write(file, data, count, offset)

        def truncated(file: Any, size: int) -> Any:
            self._add(lambda path: Truncate(path, size), file)
            return truncate(file, size)

        def synced(file: Any, flags: int) -> Any:
            result = sync(file, flags)
            self._add(Sync, file)
            return result

        table.xWrite = self._pointer(_WRITE, written)
        table.xTruncate = self._pointer(_TRUNCATE, truncated)
        table.xSync = self._pointer(_SYNC, synced)
        return table

    def _deleted(self, vfs: int, name: bytes, sync_folder: int) -> Any:
        result = self._delete(vfs, name, sync_folder)
        path = name.decode()
        if result == 0 and self.recording is not None and path.startswith(self.recording.folder):
            self.recording.add(Delete(path))
            if sync_folder:
                self.recording.add(Sync(str(Path(path).parent)))
        return result
