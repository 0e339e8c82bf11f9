"""The allow-list: a file that maps public keys to names and says what each name may do.

TOML, edited by hand or by the `keys allow` command:

    [[allow]]
    name = "till-7"
    key = "smile1-..."
    roles = []                  # "broker", "operator"
    publish = ["Sales"]
    subscribe = ["Tickets", "Avail*"]
    deploy = []

A broker reads it at its start and again when it changes. A list that has become unreadable changes nothing: the last
good one goes on, and the reason is logged. Whoever can write this file decides everything, so others must not be able
to.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from runtime.security.errors import BadAllowList, BadKey
from runtime.security.keys import PublicKey, check_name
from runtime.security.rights import Patterns, Rights

ENTRIES_MAX = 10_000
FILE_BYTES_MAX = 16 * 1024 * 1024

BROKER = "broker"
OPERATOR = "operator"
ROLES = (BROKER, OPERATOR)
_FIELDS = {"name", "key", "roles", "publish", "subscribe", "deploy"}

log = logging.getLogger("smile.security")


@dataclass(frozen=True)
class Entry:
    name: str
    key: PublicKey
    rights: Rights


@dataclass(frozen=True)
class AllowList:
    """One name per key and one key per name; `entries` in the order of the file."""

    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        if len(self.entries) > ENTRIES_MAX:
            raise BadAllowList(f"{len(self.entries)} names", f"an allow-list has at most {ENTRIES_MAX}")
        names: set[str] = set()
        halves: dict[bytes, str] = {}
        for entry in self.entries:
            if entry.name in names:
                raise BadAllowList(f"`{entry.name}` is listed twice", "give each name one entry")
            names.add(entry.name)
            for half in (entry.key.curve, entry.key.signing):
                if half in halves:
                    raise BadAllowList(
                        f"`{halves[half]}` and `{entry.name}` share a key",
                        "make a pair for each with `smile keys new NAME`",
                    )
                halves[half] = entry.name

    @cached_property
    def by_name(self) -> Mapping[str, Entry]:
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def name_of_curve(self) -> Mapping[bytes, str]:
        return {entry.key.curve: entry.name for entry in self.entries}

    def changed_names(self, newer: AllowList) -> frozenset[str]:
        """Names whose key or rights differ, those that vanished and those that are new."""
        names = self.by_name.keys() | newer.by_name.keys()
        return frozenset(name for name in names if self.by_name.get(name) != newer.by_name.get(name))


def read_allow_list(path: Path) -> AllowList:
    return _parse(path, _read(path))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if stat.S_IMODE(state.st_mode) & 0o022:
                raise BadAllowList(f"others can change {path}", f"chmod go-w {path}")
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as missing:
        raise BadAllowList(
            f"cannot read {path}: {missing.strerror}", "write one with `smile keys allow LIST NAME KEY`"
        ) from missing
    if len(data) > FILE_BYTES_MAX:
        raise BadAllowList(f"{path} has more than {FILE_BYTES_MAX} bytes")
    return data


def _parse(path: Path, data: bytes) -> AllowList:
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise BadAllowList(f"{path} is not TOML: {broken}") from broken
    unknown = document.keys() - {"allow"}
    if unknown:
        raise BadAllowList(f"{path}: unknown `{min(unknown)}`", "an allow-list consists of [[allow]] entries")
    entries = document.get("allow", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadAllowList(f"{path}: `allow` is no list of entries", "write [[allow]] before each entry")
    try:
        return AllowList(tuple(_entry(number, entry) for number, entry in enumerate(entries, 1)))
    except (BadAllowList, BadKey) as wrong:
        raise BadAllowList(f"{path}: {wrong.reason}", wrong.remedy) from wrong


def _entry(number: int, fields: Mapping[str, Any]) -> Entry:
    place = f"entry {number}"
    unknown = fields.keys() - _FIELDS
    if unknown:
        raise BadAllowList(f"{place}: unknown `{min(unknown)}`", f"an entry has {', '.join(sorted(_FIELDS))}")
    for needed in ("name", "key"):
        if not isinstance(fields.get(needed), str):
            raise BadAllowList(f"{place} has no {needed}")
    try:
        name, key = check_name(fields["name"]), PublicKey.parse(fields["key"])
        roles = _texts(fields, "roles")
        for role in roles:
            if role not in ROLES:
                raise BadAllowList(f"unknown role {role[:80]!r}", f"roles are {', '.join(ROLES)}")
        publish, subscribe, deploy = (Patterns(_texts(fields, right)) for right in ("publish", "subscribe", "deploy"))
    except (BadAllowList, BadKey) as wrong:
        raise BadAllowList(f"{place}: {wrong.reason}", wrong.remedy) from wrong
    return Entry(
        name, key, Rights(publish, subscribe, deploy, is_broker=BROKER in roles, may_operate=OPERATOR in roles)
    )


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = fields.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadAllowList(f"`{name}` is no list of texts")
    return tuple(values)


def entry_for(
    name: str,
    key: PublicKey,
    *,
    roles: Iterable[str] = (),
    publish: Sequence[str] = (),
    subscribe: Sequence[str] = (),
    deploy: Sequence[str] = (),
) -> Entry:
    """An entry from the words of a command line; BadAllowList or BadKey if one of them is wrong."""
    lists = {"roles": list(roles), "publish": list(publish), "subscribe": list(subscribe), "deploy": list(deploy)}
    return _entry(1, {"name": name, "key": key.text, **lists})


def add_entry(path: Path, entry: Entry) -> AllowList:
    """Writes the list with this entry in it, in the place of an older one of that name; makes the file if need be."""
    before = read_allow_list(path) if path.exists() else AllowList()
    others = [other for other in before.entries if other.name != entry.name]
    after = AllowList((*others, entry))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(show_allow_list(after))
        os.fchmod(file.fileno(), 0o644)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)  # whole or not at all: a broker may be reading
    return after


def show_allow_list(allowed: AllowList) -> str:
    """As in the file; `read_allow_list` gives it back."""
    blocks = ["# Who may do what. Keys are printed by `smile keys show`; names are what logs and rights speak of.\n"]
    for entry in allowed.entries:
        rights = entry.rights
        roles = [role for role, has in ((BROKER, rights.is_broker), (OPERATOR, rights.may_operate)) if has]
        lists = {"roles": roles} | {
            name: list(getattr(rights, name).texts) for name in ("publish", "subscribe", "deploy")
        }
        # Patterns and names hold no control characters, so that a JSON text is a TOML text.
        shown = "\n".join(f"{name} = {json.dumps(texts, ensure_ascii=False)}" for name, texts in lists.items())
        blocks.append(f'[[allow]]\nname = "{entry.name}"\nkey = "{entry.key.text}"\n{shown}\n')
    return "\n".join(blocks)


class WatchedAllowList:
    """The list that a running broker goes by; follows the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._state()
        self.current = read_allow_list(path)

    def _state(self) -> tuple[int, int, int, int] | None:
        """What a change of the file changes; of its mode, too, because that may be what was wrong."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def reload_if_changed(self) -> frozenset[str]:
        """Cheap enough for every second; the names whose rights changed."""
        return self.reload() if self._state() != self._seen else frozenset()

    def reload(self) -> frozenset[str]:
        """At once, as after a signal. A list that cannot be read leaves the one before in force."""
        self._seen = self._state()
        try:
            newer = read_allow_list(self.path)
        except BadAllowList as wrong:
            log.error("the allow-list was not read again, the one before stays in force: %s", wrong)
            return frozenset()
        changed = self.current.changed_names(newer)
        self.current = newer
        if changed:
            log.info("the allow-list was read again: %d names changed", len(changed))
        return changed
