"""The deployment record: a program, where each of its components runs, and the addresses of the brokers.

Every broker of a deployment has the same record and keeps it in its data folder, so that it can start again without
asking anybody. It is data; `smile/deploy/bundles.py` makes one from a program and decides whether to trust one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.plan.build import TICK_MODULUS
from runtime.files import make_folder, write_durably

FORMAT = 1
FILE_NAME = "deployment.json"
PROGRAM_FILE = "program.mpl"
TABLES_FOLDER = "tables/"

FILES_MAX = 4_096
BYTES_MAX = 64 * 2**20
NAMES_MAX = 65_536
NAME_LENGTH_MAX = 512

_PATH = re.compile(r"(manifest\.json|plan\.json|program\.mpl|modules/m\d{4,6}\.(py|json)|tables/[^/\\\0]{1,200}\.csv)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class DeploymentError(Exception):
    """A record that is damaged, too large, or contradicts itself. Says what and what to do."""


@dataclass(frozen=True)
class Deployment:
    """`name` is what it is called, `program` the file name that messages and generated code use.

    `identity` is drawn at random for the first deployment and kept by later ones: data with another identity is other
    data, whatever its name. `residues` gives every stream and table its share of the ticks; names that are no longer
    declared keep theirs, since their ticks are in logs and views. `files` is the bundle, and tables/<name>.csv for
    every table. `signature` is empty when nobody signed. `withheld`: files that the reader may not have, and their
    digests; whatever is deployed and stored has all of them.
    """

    name: str
    program: str
    identity: str
    placement: Mapping[str, str]
    brokers: Mapping[str, str]
    residues: Mapping[str, int]
    files: Mapping[str, bytes]
    signer: str = ""
    signature: bytes = b""
    withheld: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    @property
    def text(self) -> str:
        return self.files[PROGRAM_FILE].decode()

    @property
    def digest(self) -> str:
        """Over everything but the signature, which is about it."""
        described = {
            "format": FORMAT,
            "name": self.name,
            "program": self.program,
            "identity": self.identity,
            "placement": dict(self.placement),
            "brokers": dict(self.brokers),
            "residues": dict(self.residues),
            "files": {path: self.file_digest(path) for path in (*self.files, *self.withheld)},
        }
        text = json.dumps(described, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def file_digest(self, path: str) -> str | None:
        """None if there is no such file."""
        if path in self.withheld:
            return self.withheld[path]
        return hashlib.sha256(self.files[path]).hexdigest() if path in self.files else None

    def table_files(self) -> dict[str, tuple[str, str]]:
        """By table: where its rows are, and their digest."""
        paths = (path for path in self.files if path.startswith(TABLES_FOLDER))
        return {
            path.removeprefix(TABLES_FOLDER).removesuffix(".csv"): (path, str(self.file_digest(path))) for path in paths
        }

    def components_on(self, broker: str) -> list[str]:
        return [component for component, home in self.placement.items() if home == broker]

    # As plain data

    def to_wire(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "program": self.program,
            "identity": self.identity,
            "placement": dict(self.placement),
            "brokers": dict(self.brokers),
            "residues": dict(self.residues),
            "files": dict(self.files),
            "signer": self.signer,
            "signature": self.signature,
        }

    @staticmethod
    def from_wire(data: object) -> Deployment:
        """Checked field by field: it may come from anywhere."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
            raise DeploymentError(f"a deployment of format {found!r}; this version of smile knows format {FORMAT}")
        return Deployment(
            _of(data, "name", str),
            _of(data, "program", str),
            _of(data, "identity", str),
            _names(data, "placement", str),
            _names(data, "brokers", str),
            _names(data, "residues", int),
            _names(data, "files", bytes),
            _of(data, "signer", str),
            _of(data, "signature", bytes),
            _names({"withheld": data.get("withheld", {})}, "withheld", str),
        )

    # As a file

    def write(self, folder: Path) -> None:
        """Into the data folder of a broker, durably: after a crash there is the old record or the new one."""
        data = self.to_wire()
        data["files"] = {path: content.decode() for path, content in self.files.items()}
        data["signature"] = self.signature.hex()
        try:
            make_folder(folder)
            write_durably(folder / FILE_NAME, [json.dumps(data, indent=1, sort_keys=True).encode()])
        except OSError as error:
            raise DeploymentError(f"cannot write {folder / FILE_NAME}: {error.strerror or error}") from error

    @staticmethod
    def read(folder: Path) -> Deployment | None:
        """What `write` left there; None if nothing was ever deployed."""
        path = folder / FILE_NAME
        try:
            with path.open("rb") as file:
                content = file.read(4 * BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DeploymentError(f"cannot read {path}: {error.strerror or error}") from error
        try:
            if len(content) > 4 * BYTES_MAX:
                raise DeploymentError("too large")
            data = json.loads(content)
            if isinstance(data, dict):
                data["files"] = {name: text.encode() for name, text in data["files"].items()}
                data["signature"] = bytes.fromhex(data["signature"])
            return Deployment.from_wire(data)
        except (DeploymentError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            remedy = "put back a copy: every broker of the deployment has the same file"
            raise DeploymentError(f"{path} is damaged ({error}); {remedy}") from error


def table_log(table: str, digest: str) -> str:
    """The name of the log of a table's rows. Other rows are another log: ticks mean the same for ever."""
    return f"table {table} {digest[:16]}"


def _of(data: Mapping[str, Any], key: str, kind: type) -> Any:
    found = data.get(key)
    if not isinstance(found, kind):
        raise DeploymentError(f"the deployment's {key} is {type(found).__name__}, not {kind.__name__}")
    return found


def _names(data: Mapping[str, Any], key: str, kind: type) -> dict[str, Any]:
    found: dict[Any, Any] = _of(data, key, dict)
    if len(found) > NAMES_MAX:
        raise DeploymentError(f"the deployment's {key} has {len(found)} entries; at most {NAMES_MAX} are possible")
    for name, value in found.items():
        if not isinstance(name, str) or len(name) > NAME_LENGTH_MAX or not isinstance(value, kind):
            raise DeploymentError(f"the deployment's {key} has an entry that is no {kind.__name__} by name")
        if isinstance(value, bool):
            raise DeploymentError(f"the deployment's {key}: {name} is no number")
    return found


def _check(deployment: Deployment) -> None:
    """What must hold of any record, whoever made it."""
    if len(deployment.files) > FILES_MAX:
        raise DeploymentError(f"the deployment has {len(deployment.files)} files; at most {FILES_MAX} are possible")
    size = sum(len(content) for content in deployment.files.values())
    if size > BYTES_MAX:
        raise DeploymentError(
            f"the deployment has {size} bytes; at most {BYTES_MAX} are possible: tables may be too large"
        )
    for path, content in deployment.files.items():
        if not _PATH.fullmatch(path):
            raise DeploymentError(f"the deployment has a file called {path[:80]!r}, which no bundle has")
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise DeploymentError(f"{path} of the deployment is not UTF-8 text (byte {error.start})") from None
    for path, digest in deployment.withheld.items():
        if not path.startswith(TABLES_FOLDER) or path in deployment.files or not _DIGEST.fullmatch(digest):
            raise DeploymentError(f"the deployment withholds {path[:80]!r}, which cannot be")
    if PROGRAM_FILE not in deployment.files:
        raise DeploymentError(f"the deployment has no {PROGRAM_FILE}")
    for component, broker in deployment.placement.items():
        if broker not in deployment.brokers:
            raise DeploymentError(f"`{component}` is placed on `{broker}`, which is no broker of the deployment")
    shares = list(deployment.residues.values())
    if len(set(shares)) != len(shares) or any(not 0 <= share < TICK_MODULUS for share in shares):
        raise DeploymentError("two streams of the deployment share their ticks")
    if deployment.signature and not deployment.signer:
        raise DeploymentError("the deployment is signed by nobody")
