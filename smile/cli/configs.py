"""Which `smile.toml` a command means: the one it was given, or the nearest one above the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smile.cli.files import fail

if TYPE_CHECKING:
    from smile.deploy.config import Config


def optional_config(given: Path | None) -> Config | None:
    """None if none was given and there is none; leaves with exit code 2 if it cannot be used."""
    from smile.deploy.config import ConfigError, find_config, read_config

    path = given if given is not None else find_config(Path.cwd())
    if path is None:
        return None
    try:
        return read_config(path)
    except ConfigError as error:
        fail(str(error))


def required_config(given: Path | None) -> Config:
    found = optional_config(given)
    if found is None:
        fail("there is no smile.toml here or above; `smile init` makes a project, or give --config FILE")
    return found
