"""Key pairs and the files that hold them.

A name has two pairs: one for CURVE, by which connections are encrypted and their ends known, and one for Ed25519, by
which deployments are signed. The public halves travel together as one token, `smile1-...`. Called by the `keys`
command, by brokers and clients at their start. Nothing here opens a socket, and nothing prints or logs a secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from zmq.utils import z85

from runtime.security.errors import BadKey, ExposedSecret

PREFIX = "smile1-"
SECRET_SUFFIX = ".secret"
PUBLIC_SUFFIX = ".public"
KEY_BYTES = 32
FILE_BYTES_MAX = 4096

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_SECRET_LINE = "smile-secret-1"
_HEADER = "# Secret keys of SMILE. Whoever can read this file can act in the name of its owner."


def check_name(name: str) -> str:
    """Names stand in logs, addresses and producer ids, so they are short and of plain letters."""
    if not _NAME.fullmatch(name):
        raise BadKey(
            f"{name[:80]!r} is no name for a key",
            "use 1 to 64 of A-Z a-z 0-9 _ . @ -, beginning with a letter or digit",
        )
    return name


@dataclass(frozen=True)
class PublicKey:
    """What others may know: the CURVE half and the signing half, 32 bytes each."""

    curve: bytes
    signing: bytes

    def __post_init__(self) -> None:
        if len(self.curve) != KEY_BYTES or len(self.signing) != KEY_BYTES:
            raise BadKey("a public key has two halves of 32 bytes")

    @property
    def text(self) -> str:
        return PREFIX + base64.urlsafe_b64encode(self.curve + self.signing).decode().rstrip("=")

    @property
    def fingerprint(self) -> str:
        """Short enough to compare by eye; made from both halves."""
        digest = hashlib.sha256(self.curve + self.signing).hexdigest()[:32]
        return ":".join(digest[start : start + 4] for start in range(0, 32, 4))

    @staticmethod
    def parse(text: str) -> PublicKey:
        remedy = f"a public key begins with {PREFIX} and is printed by `smile keys show`"
        text = text.strip()
        body = text.removeprefix(PREFIX)
        if body == text or len(body) != 86:
            raise BadKey(f"{text[:24]!r} is no public key", remedy)
        try:
            data = base64.b64decode(body + "==", altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as broken:
            raise BadKey(f"{text[:24]!r} is no public key", remedy) from broken
        return PublicKey(data[:KEY_BYTES], data[KEY_BYTES:])


@dataclass(frozen=True)
class Keys:
    """Both pairs of one name. The secret halves do not show in `repr`, so not in logs and tracebacks either."""

    name: str
    public: PublicKey
    curve_secret: bytes = field(repr=False)
    signing_secret: bytes = field(repr=False)


def new_keys(name: str) -> Keys:
    check_name(name)
    curve_public, curve_secret = (z85.decode(half) for half in zmq.curve_keypair())
    signing = Ed25519PrivateKey.generate()
    signing_secret = signing.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    signing_public = signing.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Keys(name, PublicKey(curve_public, signing_public), curve_secret, signing_secret)


def write_keys(folder: Path, keys: Keys) -> tuple[Path, Path]:
    """`NAME.secret`, for its owner alone, and `NAME.public`, for everybody; refuses to replace either."""
    folder.mkdir(parents=True, exist_ok=True)
    secret, public = folder / (keys.name + SECRET_SUFFIX), folder / (keys.name + PUBLIC_SUFFIX)
    for path in (secret, public):
        if path.exists():
            raise BadKey(f"{path} exists", "move it away, or choose another name: a lost secret cannot be had again")
    halves = f"{keys.curve_secret.hex()} {keys.signing_secret.hex()}"
    _write_new(secret, f"{_HEADER}\n{_SECRET_LINE} {keys.name} {halves}\n", 0o600)
    _write_new(public, f"{keys.name} {keys.public.text}\n", 0o644)
    return secret, public


def _write_new(path: Path, text: str, mode: int) -> None:
    # Created with its final mode and never replaced: there is no moment in which others can read it.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        os.fchmod(handle, mode)
        file.write(text)
        file.flush()
        os.fsync(handle)


def read_keys(path: str | os.PathLike[str]) -> Keys:
    """The secret file of a name; refuses one that others than its owner can read or change."""
    path = Path(path)
    text = _read(path, is_secret=True)
    words = [line for line in text.splitlines() if not line.startswith("#")]
    parts = words[0].split(" ") if len(words) == 1 else []
    if len(parts) != 4 or parts[0] != _SECRET_LINE:
        raise BadKey(f"{path} holds no secret keys", "make a pair with `smile keys new NAME`")
    try:
        curve_secret, signing_secret = bytes.fromhex(parts[2]), bytes.fromhex(parts[3])
        signing = Ed25519PrivateKey.from_private_bytes(signing_secret)
        curve_public = z85.decode(zmq.curve_public(z85.encode(curve_secret)))
    except (ValueError, zmq.ZMQError) as broken:
        raise BadKey(f"{path} is damaged", "restore it, or make a new pair with `smile keys new NAME`") from broken
    signing_public = signing.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Keys(check_name(parts[1]), PublicKey(curve_public, signing_public), curve_secret, signing_secret)


def read_public(path: str | os.PathLike[str]) -> tuple[str, PublicKey]:
    """Name and key from a `.public` file."""
    parts = _read(Path(path), is_secret=False).split()
    if len(parts) != 2:
        raise BadKey(f"{path} holds no public key", "`smile keys show` prints one")
    return check_name(parts[0]), PublicKey.parse(parts[1])


def _read(path: Path, *, is_secret: bool) -> str:
    try:
        with path.open("rb") as file:
            # Asked of the open file, so that what is checked is what is read.
            state = os.fstat(file.fileno())
            if is_secret and (stat.S_IMODE(state.st_mode) & 0o077 or state.st_uid not in (os.geteuid(), 0)):
                raise ExposedSecret(f"others can read or change {path}", f"chmod 600 {path}, owned by whoever uses it")
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as missing:
        raise BadKey(f"cannot read {path}: {missing.strerror}", "make a pair with `smile keys new NAME`") from missing
    if len(data) > FILE_BYTES_MAX or not data.isascii():
        raise BadKey(f"{path} is no key file", "make a pair with `smile keys new NAME`")
    return data.decode("ascii")
