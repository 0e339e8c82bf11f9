"""`smile.toml`: which program, which brokers, what runs where, how logs and checkpoints are kept.

    program = "tickets.mpl"

    [brokers.west]
    address = "tcp://127.0.0.1:7070"
    http = "127.0.0.1:8070"          # a gateway; left out = none
    data = "data/west"               # default: data/<name>
    listen = "tcp://0.0.0.0:7070"    # if that is not the address which others use

    [pins]                           # beyond what the program places itself
    Sold = "west"

    [log]
    sync = "always"                  # or "interval", "never"
    keep = "all"                     # or "checkpoint": trim what every checkpoint includes; or "archive": and only
                                     # what the archive, which [spark] names, holds as well

    [checkpoint]
    every = "10 s"

    [security]                       # needed as soon as a broker listens beyond this machine
    secret = "keys/{broker}.secret"
    allowed = "keys/allowed.toml"
    client = "keys/me.secret"        # whose keys commands use that talk to brokers

Read by `smile run`, `smile broker`, `smile deploy` and the clients' commands. Paths are relative to the file. It starts
nothing and opens nothing but the file itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from mpl.diagnostic import did_you_mean
from runtime.security.endpoints import is_local

CONFIG_NAME = "smile.toml"
CONFIG_BYTES_MAX = 2**20
BROKERS_MAX = 256
CHECKPOINT_EVERY_US = 10_000_000

Sync = Literal["always", "interval", "never"]
Keep = Literal["all", "checkpoint", "archive"]
LogFormat = Literal["pretty", "json"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_ADDRESS = re.compile(
    r"(?:tcp://(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})|ipc://[^?]+)(?:\?key=smile1-[A-Za-z0-9_-]+)?"
)
_HTTP = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)")
_DURATION_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}


class ConfigError(Exception):
    """What is wrong with a file, at which key, why, and what to do about it."""

    def __init__(self, path: Path, key: str, reason: str, remedy: str) -> None:
        self.path = path
        self.key = key
        self.reason = reason
        self.remedy = remedy
        place = f"{path}: {key}" if key else str(path)
        super().__init__(f"{place}: {reason}; {remedy}")


@dataclass(frozen=True)
class SecuritySettings:
    """Files of keys. `secret` is the broker's own, `allowed` says whose keys are let in and what they may do."""

    secret: Path
    allowed: Path


@dataclass(frozen=True)
class BrokerSettings:
    """Everything that one broker process is told. `data` is its folder; `http` is host:port of the gateway or None.

    `address` is where it listens for requests; others may be told another one by the deployment. `data_listen` is
    where it listens for those who want knowledge, any free port of the same host if None, and `data_announced` what
    these are told if it is something else. `http_tokens` is a file of who may use the gateway. `archive` is needed if
    logs are kept until they are archived.
    """

    name: str
    address: str
    data: Path
    http: str | None = None
    sync: Sync = "always"
    keep: Keep = "all"
    checkpoint_every_us: int = CHECKPOINT_EVERY_US
    allow_faults: bool = False
    security: SecuritySettings | None = None
    http_tokens: Path | None = None
    data_listen: str | None = None
    data_announced: str | None = None
    archive: Path | None = None
    log_format: LogFormat = "pretty"


@dataclass(frozen=True)
class CommonSettings:
    """What all brokers of a file share. In the paths of `security`, `{broker}` stands for the name."""

    sync: Sync
    keep: Keep
    checkpoint_every_us: int
    security: SecuritySettings | None
    archive: Path | None

    def settings(self, folder: Path, name: str, address: str) -> BrokerSettings:
        security = None
        if self.security is not None:
            files = (self.security.secret, self.security.allowed)
            security = SecuritySettings(*(folder / str(file).replace("{broker}", name) for file in files))
        return BrokerSettings(
            name,
            address,
            folder / "data" / name,
            sync=self.sync,
            keep=self.keep,
            checkpoint_every_us=self.checkpoint_every_us,
            security=security,
            archive=self.archive,
        )


@dataclass(frozen=True)
class Config:
    """A whole `smile.toml`. `brokers` is in the order of the file; `addresses` are those that others use. `spark` is
    handed on as it stands."""

    path: Path
    program: Path | None
    addresses: Mapping[str, str]
    brokers: Mapping[str, BrokerSettings]
    common: CommonSettings
    pins: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, Any] = field(default_factory=dict)
    client_keys: Path | None = None

    def broker(self, name: str) -> BrokerSettings:
        if name not in self.brokers:
            hint = did_you_mean(name, self.brokers) or f"it has {', '.join(self.brokers) or 'none'}"
            raise ConfigError(self.path, f"brokers.{name}", "there is no such broker", hint)
        return self.brokers[name]

    def broker_at(self, name: str, address: str) -> BrokerSettings:
        """A broker that the file does not name, with what all its brokers share."""
        return self.common.settings(self.path.parent, name, address)

    def required_program(self) -> Path:
        if self.program is None:
            raise ConfigError(self.path, "program", "is missing", 'add a line such as program = "tickets.mpl"')
        return self.program


def find_config(start: Path) -> Path | None:
    """The `smile.toml` of this folder or the nearest one above it."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / CONFIG_NAME).is_file():
            return folder / CONFIG_NAME
    return None


def read_config(path: Path) -> Config:
    """Read and check a file. Raises ConfigError for the first thing that is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(CONFIG_BYTES_MAX + 1)
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
        raise ConfigError(path, "", reason, "`smile init` makes a project with one") from error
    if len(data) > CONFIG_BYTES_MAX:
        raise ConfigError(path, "", f"is larger than {CONFIG_BYTES_MAX} bytes", "is it the right file?")
    try:
        return parse_config(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start})"
        raise ConfigError(path, "", reason, "save it as UTF-8") from error


def parse_config(path: Path, text: str) -> Config:
    try:
        return _Reader(path).config(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, "", f"is not TOML: {error}", "text values need quotes") from error


def parse_duration_us(text: str) -> int | None:
    """Microseconds of "10 s", "500 ms", ...; None if the text is no duration."""
    found = _DURATION.fullmatch(text.strip())
    return round(float(found.group(1)) * _DURATION_US[found.group(2)]) if found else None


def is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and (found.group(1) is None or 0 < int(found.group(1)) < 65_536)


def is_http(text: str) -> bool:
    found = _HTTP.fullmatch(text)
    return found is not None and int(found.group(2)) < 65_536


class _Reader:
    """Takes the tables of one file apart; every method names the key it is about."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.parent

    def error(self, key: str, reason: str, remedy: str) -> ConfigError:
        return ConfigError(self.path, key, reason, remedy)

    def config(self, data: dict[str, Any]) -> Config:
        self.known(data, "", ("program", "brokers", "pins", "log", "checkpoint", "security", "spark"))
        program = self.text(data, "program")
        log = self.table(data, "log", ("sync", "keep"))
        checkpoint = self.table(data, "checkpoint", ("every",))
        common = CommonSettings(
            self.choice(log, "log.sync", Sync, "always"),
            self.choice(log, "log.keep", Keep, "all"),
            self.duration(checkpoint, "checkpoint.every", CHECKPOINT_EVERY_US),
            self.security(data),
            self.archive(data, log),
        )
        brokers = {name: self.broker(name, section, common) for name, section in self.brokers(data).items()}
        self.distinct(brokers)
        return Config(
            self.path,
            self.folder / program if program is not None else None,
            {name: section["address"] for name, section in self.brokers(data).items()},
            brokers,
            common,
            self.pins(data, brokers),
            self.table(data, "spark", None),
            self.folder / client if (client := self.text(data.get("security", {}), "security.client")) else None,
        )

    def archive(self, data: dict[str, Any], log: dict[str, Any]) -> Path | None:
        found = self.text(self.table(data, "spark", None), "spark.archive")
        if found is None and log.get("keep") == "archive":
            remedy = 'add archive = "archive" to the section [spark]'
            raise self.error("log.keep", "logs are kept until they are archived, but no archive is named", remedy)
        return None if found is None else self.folder / found

    def brokers(self, data: dict[str, Any]) -> dict[str, Any]:
        found = self.table(data, "brokers", None)
        if len(found) > BROKERS_MAX:
            raise self.error("brokers", f"there are {len(found)}", f"at most {BROKERS_MAX} are possible")
        return found

    def broker(self, name: str, section: object, common: CommonSettings) -> BrokerSettings:
        key = f"brokers.{name}"
        if not _NAME.fullmatch(name):
            raise self.error(key, "is no name for a broker", "use a letter, then letters, digits, _ or - (63 at most)")
        values = self.table({name: section}, key, ("address", "listen", "http", "http_tokens", "data"))
        address = self.text(values, f"{key}.address")
        if not address:
            raise self.error(f"{key}.address", "is missing", 'add address = "tcp://127.0.0.1:7070"')
        if not is_address(address):
            raise self.error(f"{key}.address", f"{address!r} is no address", 'write it like "tcp://127.0.0.1:7070"')
        http = self.text(values, f"{key}.http")
        if http is not None and not is_http(http):
            raise self.error(f"{key}.http", f"{http!r} is not host:port", 'write it like "127.0.0.1:8080"')
        listen = self.text(values, f"{key}.listen") or address
        if not is_address(listen):
            raise self.error(f"{key}.listen", f"{listen!r} is no address", 'write it like "tcp://0.0.0.0:7070"')
        made = common.settings(self.folder, name, listen)
        if made.security is None and not (is_local(address) and is_local(listen)):
            remedy = "listen on 127.0.0.1, or make keys with `smile keys` and add a [security] section"
            raise self.error(f"{key}.address", f"{address} can be reached from other machines without keys", remedy)
        if made.security is not None and "?key=" not in address:
            remedy = f"append ?key=smile1-..., as `smile keys show {made.security.secret}` prints it"
            raise self.error(f"{key}.address", "does not say which key to expect there", remedy)
        data, tokens = self.text(values, f"{key}.data"), self.text(values, f"{key}.http_tokens")
        return replace(
            made,
            data=self.folder / data if data else made.data,
            http=http,
            http_tokens=self.folder / tokens if tokens else None,
        )

    def security(self, data: dict[str, Any]) -> SecuritySettings | None:
        """As in the file: `{broker}` still stands for the name."""
        if "security" not in data:
            return None
        section = self.table(data, "security", ("secret", "allowed", "client"))
        files = []
        for key in ("secret", "allowed"):
            given = self.text(section, f"security.{key}")
            if given is None:
                raise self.error(
                    f"security.{key}", "is missing", "`smile keys new` and `smile keys allow` make the files"
                )
            files.append(Path(given))
        return SecuritySettings(*files)

    def distinct(self, brokers: Mapping[str, BrokerSettings]) -> None:
        """Two brokers cannot share an address, a gateway or a folder."""
        seen: dict[tuple[str, object], str] = {}
        for name, broker in brokers.items():
            for what, value in (("address", broker.address), ("http", broker.http), ("data", broker.data)):
                other = seen.setdefault((what, value), name)
                if value is not None and other != name:
                    raise self.error(f"brokers.{name}.{what}", f"{value} is also that of {other}", "give each its own")

    def pins(self, data: dict[str, Any], brokers: Mapping[str, BrokerSettings]) -> dict[str, str]:
        pins = self.table(data, "pins", None)
        for relation, broker in pins.items():
            if broker not in brokers:
                hint = did_you_mean(str(broker), brokers) or f"brokers are {', '.join(brokers) or 'not declared'}"
                raise self.error(f"pins.{relation}", f"{broker!r} is no broker of this file", hint)
        return pins

    # Values

    def table(self, data: Mapping[str, Any], key: str, known: tuple[str, ...] | None) -> dict[str, Any]:
        found = data.get(key.rpartition(".")[2], {})
        if not isinstance(found, dict):
            raise self.error(key, f"is {_said(found)}, not a section", f"write [{key}] on a line of its own")
        if known is not None:
            self.known(found, f"{key}.", known)
        return found

    def known(self, data: Mapping[str, Any], prefix: str, known: tuple[str, ...]) -> None:
        for key in data:
            if key not in known:
                hint = did_you_mean(key, known) or f"known here: {', '.join(known)}"
                raise self.error(f"{prefix}{key}", "is not a setting", hint)

    def text(self, data: Mapping[str, Any], key: str) -> str | None:
        found = data.get(key.rpartition(".")[2])
        if found is not None and not isinstance(found, str):
            raise self.error(key, f"is {_said(found)}", "give text in quotes")
        return found

    def choice(self, data: Mapping[str, Any], key: str, choices: Any, default: str) -> Any:
        found = data.get(key.rpartition(".")[2], default)
        allowed = get_args(choices)
        if found not in allowed:
            hint = did_you_mean(str(found), allowed) or f"one of {', '.join(allowed)}"
            raise self.error(key, f"{found!r} is not possible", hint)
        return found

    def duration(self, data: Mapping[str, Any], key: str, default: int) -> int:
        text = self.text(data, key)
        if text is None:
            return default
        found = parse_duration_us(text)
        if not found:
            raise self.error(key, f"{text!r} is no duration", 'write it like "10 s", "500 ms" or "2 min"')
        return found


def _said(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"
