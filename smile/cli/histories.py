"""Where the commands that use Spark find events, and how they start Spark.

Events come from --archive and --data, else from the local run that is alive here, else from the nearest smile.toml,
whose section [spark] also says which master to use: `master`, `conf`, `packages`, `archive`, handed on as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smile.cli.configs import optional_config
from smile.cli.exits import Exit
from smile.cli.files import fail

if TYPE_CHECKING:
    from smile.bulk.sources import Sources

ArchiveFolder = Annotated[
    Path | None, typer.Option("--archive", metavar="DIR", help="The archive; default: [spark] archive of smile.toml.")
]
DataFolders = Annotated[
    list[Path] | None,
    typer.Option("--data", metavar="DIR", help="A broker's data folder, or that of a run; may be repeated."),
]
Master = Annotated[str | None, typer.Option("--master", help="Spark's master, such as local[*] or spark://host:7077.")]

DEFAULT_ARCHIVE = Path("archive")


def find_sources(archive: Path | None, data: list[Path] | None) -> Sources:
    from smile.bulk.sources import Sources

    config = optional_config(None)
    if archive is None and config is not None and "archive" in config.spark:
        archive = config.path.parent / str(config.spark["archive"])
    if archive is None and DEFAULT_ARCHIVE.is_dir():
        archive = DEFAULT_ARCHIVE
    folders = _folders(data) if data else _known_folders(config)
    if not folders and archive is None:
        fail("no events are known here; name the data folder of a broker or of a run with --data, or an --archive")
    return Sources(archive, tuple(folders))


def _folders(data: list[Path]) -> list[Path]:
    """The folder of a run stands for those of its brokers."""
    from runtime.log.database import FILE_NAME

    found: list[Path] = []
    for folder in data:
        inside = sorted(path.parent for path in folder.rglob(FILE_NAME))
        if not inside:
            fail(f"{folder} holds no log ({FILE_NAME})")
        found += inside
    return found


def _known_folders(config: Any) -> list[Path]:
    from smile.deploy.run_record import find_run

    run = find_run(Path.cwd())
    if run is not None:
        return _folders([run.folder])
    if config is None:
        return []
    return [broker.data for broker in config.brokers.values() if broker.data.is_dir()]


def start_spark(master: str | None) -> Any:
    """The session, after a word about it: starting takes seconds."""
    from rich.console import Console

    config = optional_config(None)
    given = {} if config is None else dict(config.spark)
    wanted = master or str(given.get("master", "local[*]"))
    try:
        from runtime.bulk.session import NoSpark, SparkSettings, session
    except ImportError:
        fail("Spark is not installed; `pip install smile-mpl[spark]` brings it", Exit.UNREACHABLE)
    conf = {str(name): str(value) for name, value in dict(given.get("conf", {})).items()}
    settings = SparkSettings(wanted, conf, tuple(given.get("packages", ())))
    with Console(stderr=True).status(f"starting Spark ({wanted})"):
        try:
            return session(settings)
        except NoSpark as error:
            fail(str(error), Exit.UNREACHABLE)
