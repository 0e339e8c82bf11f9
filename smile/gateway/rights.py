"""Who may do what over HTTP: a file of bearer tokens, each with a name and rights.

    [[token]]
    name = "dashboard"
    token = "..."                  # at least 16 characters; `openssl rand -hex 32` makes one
    publish = []
    subscribe = ["Available", "Sold*"]

Patterns are those of the brokers' allow-list, the derivation rule included: whoever may read all streams below a view
may read the view. Without a file everybody is trusted; then the gateway stays on the loopback address, and
has no keys. The file is read again when it changes. HTTP itself hides
nothing: between machines put a proxy with TLS before it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.security.errors import SecurityError
from runtime.security.rights import Patterns, Rights
from smile.errors import NotAllowed, SmileError

log = logging.getLogger("smile.gateway")

TOKEN_LENGTH_MIN = 16
TOKENS_MAX = 10_000
FILE_BYTES_MAX = 16 * 1024 * 1024
_FIELDS = {"name", "token", "publish", "subscribe"}


class BadTokens(SmileError):
    """The file of tokens cannot be used: where, why, and what to do."""


class NoToken(NotAllowed):
    """The request has no token, or one that is not in the file."""


@dataclass(frozen=True)
class HttpUser:
    name: str
    rights: Rights

    def check_publish(self, stream: str) -> None:
        if not self.rights.publish.contain(stream):
            raise NotAllowed(f"`{self.name}` has no right to publish to `{stream}`")

    def may_read(self, relation: str, streams: Collection[str]) -> bool:
        return not self.rights.lacking_to_read(relation, streams)

    def check_read(self, relation: str, streams: Collection[str]) -> None:
        if not self.may_read(relation, streams):
            raise NotAllowed(f"`{self.name}` has no right to read `{relation}`")


EVERYBODY = HttpUser("everybody", Rights(Patterns(("*",)), Patterns(("*",))))


class HttpUsers:
    """By the digest of their token, so that comparing takes equally long whatever was sent."""

    def __init__(self, path: Path | None) -> None:
        """Raises BadTokens. Without a file nobody needs a token."""
        self._path = path
        self._seen = self._state()
        self._users = None if path is None else _read(path)

    @property
    def needs_token(self) -> bool:
        return self._users is not None

    def _state(self) -> tuple[int, int, int, int] | None:
        """What a change of the file changes; of its mode, too, because that may be what was wrong."""
        try:
            found = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)

    def reload_if_changed(self) -> bool:
        """Has anything changed? A file that cannot be used leaves the tokens before in force."""
        seen = self._state()
        if self._path is None or seen == self._seen:
            return False
        self._seen = seen
        try:
            newer = _read(self._path)
        except BadTokens as wrong:
            log.error("the tokens were not read again, those before stay in force: %s", wrong)
            return False
        is_changed, self._users = newer != self._users, newer
        if is_changed:
            log.info("the tokens were read again")
        return is_changed

    def user(self, authorization: str | None, token: str | None = None) -> HttpUser:
        """Of an Authorization header, or of a token given otherwise (browsers cannot set headers on event streams)."""
        if self._users is None:
            return EVERYBODY
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and given:
            token = given.strip()
        found = self._users.get(_digest(token or ""))
        if found is None:
            raise NoToken("send `Authorization: Bearer TOKEN` with a token that this gateway knows")
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _read(path: Path) -> Mapping[bytes, HttpUser]:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise BadTokens(f"others can read {path}: chmod go= {path}")
            document = tomllib.loads(file.read(FILE_BYTES_MAX).decode("utf-8"))
    except OSError as missing:
        raise BadTokens(f"cannot read {path}: {missing.strerror}; write a [[token]] entry for each user") from missing
    except (ValueError, RecursionError) as broken:  # of TOML or of UTF-8; a number with thousands of digits, too
        raise BadTokens(f"{path} is not TOML: {broken}") from broken
    entries = document.get("token", [])
    if document.keys() - {"token"} or not isinstance(entries, list) or not 0 < len(entries) <= TOKENS_MAX:
        raise BadTokens(f"{path} must consist of 1 to {TOKENS_MAX} [[token]] entries")
    users: dict[bytes, HttpUser] = {}
    for number, entry in enumerate(entries, 1):
        digest, user = _user(f"{path}, entry {number}", entry)
        if digest in users:
            raise BadTokens(f"{path}: `{users[digest].name}` and `{user.name}` share a token; give each its own")
        users[digest] = user
    return users


def _user(place: str, entry: Any) -> tuple[bytes, HttpUser]:
    if not isinstance(entry, dict) or entry.keys() - _FIELDS:
        raise BadTokens(f"{place}: a token has {', '.join(sorted(_FIELDS))}, nothing else")
    name, token = entry.get("name"), entry.get("token")
    if not isinstance(name, str) or not name:
        raise BadTokens(f"{place} has no name")
    if not isinstance(token, str) or len(token) < TOKEN_LENGTH_MIN:
        raise BadTokens(f"{place}: the token of `{name}` has fewer than {TOKEN_LENGTH_MIN} characters")
    lists = [entry.get("publish", []), entry.get("subscribe", [])]
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists):
        raise BadTokens(f"{place}: publish and subscribe are lists of names")
    try:
        publish, subscribe = (Patterns(tuple(one)) for one in lists)
    except SecurityError as wrong:
        raise BadTokens(f"{place}: {wrong}") from wrong
    return _digest(token), HttpUser(name, Rights(publish, subscribe))
