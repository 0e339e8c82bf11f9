"""What the commands that look back share: where events are, which program is meant, and how Spark is started.

Events come from --archive and --data, else from the local run that is alive here, else from the nearest smile.toml,
whose section [spark] also says which master to use: `master`, `conf`, `packages`, `archive`, handed on as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smile.cli.configs import optional_config
from smile.cli.exits import Exit
from smile.cli.files import fail, read_source
from smile.cli.ticks import require_past

if TYPE_CHECKING:
    from runtime.bulk.session import SparkSettings
    from smile.bulk.sources import Sources
    from smile.deploy.config import Config
    from smile.program import Program
    from smile.remote.system import RemoteSystem

ArchiveFolder = Annotated[
    Path | None, typer.Option("--archive", metavar="DIR", help="The archive; default: [spark] archive of smile.toml.")
]
DataFolders = Annotated[
    list[Path] | None,
    typer.Option("--data", metavar="DIR", help="A broker's data folder, or that of a run; may be repeated."),
]
Master = Annotated[str | None, typer.Option("--master", help="Spark's master, such as local[*] or spark://host:7077.")]

ProgramFile = Annotated[
    Path | None, typer.Option("--program", metavar="FILE", help="The MPL program, if no brokers run it now.")
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="A tick, or a time (UTC, or with a zone) such as '2026-01-31 12:00'.")
]
AcceptLoss = Annotated[bool, typer.Option("--accept-loss", help="Compute without events that were lost in a repair.")]

DEFAULT_ARCHIVE = Path("archive")
KNOWN_POLL_S = 0.05


def find_sources(archive: Path | None, data: list[Path] | None, *, quiet: bool = False) -> Sources:
    """With absolute paths: Spark's processes have other folders of their own. `quiet`: no word about brokers whose logs
    cannot be seen here."""
    from smile.bulk.sources import Sources

    config = optional_config(None)
    if archive is None and config is not None and "archive" in config.spark:
        archive = config.path.parent / str(config.spark["archive"])
    if archive is None and DEFAULT_ARCHIVE.is_dir():
        archive = DEFAULT_ARCHIVE
    folders = _folders(data) if data else _known_folders(config, quiet=quiet)
    if not folders and archive is None:
        fail("no events are known here; name the data folder of a broker or of a run with --data, or an --archive")
    return Sources(None if archive is None else archive.absolute(), tuple(folder.absolute() for folder in folders))


def _folders(data: list[Path]) -> list[Path]:
    """The folder of a run stands for those of its brokers."""
    found: list[Path] = []
    for folder in data:
        inside = logs_in(folder)
        if not inside:
            fail(f"{folder} holds no log (events.sqlite)")
        found += inside
    return found


def logs_in(folder: Path) -> list[Path]:
    """Where in it logs are; what a repair has put aside is none."""
    from runtime.log.database import FILE_NAME
    from runtime.log.repair import DAMAGED

    return sorted(path.parent for path in folder.rglob(FILE_NAME) if not path.parent.name.startswith(DAMAGED))


def _known_folders(config: Config | None, *, quiet: bool) -> list[Path]:
    from smile.deploy.run_record import find_run

    run = find_run(Path.cwd())
    if run is not None:
        return _folders([run.folder])
    found: list[Path] = []
    for name, broker in () if config is None else config.brokers.items():
        inside = logs_in(broker.data)
        if not inside and not quiet:
            typer.echo(
                f"smile: no log of broker {name} can be seen in {broker.data}: its streams are left out", err=True
            )
        found += inside
    return found


def spark_settings(master: str | None) -> SparkSettings:
    """Of smile.toml, and this master. Leaves with an exit code if Spark is not installed."""
    config = optional_config(None)
    given = {} if config is None else dict(config.spark)
    try:
        from runtime.bulk.session import SparkSettings
    except ImportError as error:
        fail(f"Spark is not installed ({error}); `pip install smile-mpl[spark]` brings it", Exit.UNREACHABLE)
    conf = {str(name): str(value) for name, value in dict(given.get("conf", {})).items()}
    return SparkSettings(master or str(given.get("master", "local[*]")), conf, tuple(given.get("packages", ())))


def start_spark(master: str | None) -> Any:
    """The session, after a word about it: starting takes seconds."""
    from rich.console import Console

    settings = spark_settings(master)
    from runtime.bulk.session import NoSpark, session

    with Console(stderr=True).status(f"starting Spark ({settings.master})"):
        try:
            return session(settings)
        except NoSpark as error:
            fail(str(error), Exit.UNREACHABLE)


@contextmanager
def spark_session(master: str | None) -> Iterator[Any]:
    """Spark for one command. Ctrl-C ends its jobs and the session, and with it Spark's own temporary files.

    What goes wrong in the block is said in one line. The session stays for the next command of the same process.
    """
    from smile.errors import SmileError

    spark = start_spark(master)
    try:
        yield spark
    except KeyboardInterrupt:
        typer.echo("smile: interrupted; ending Spark", err=True)
        spark.stop()
        raise
    except SmileError as error:
        from smile.cli.connecting import exit_code_of

        fail(str(error), exit_code_of(error))


# Programs


@dataclass(frozen=True)
class Past:
    """A program whose past is asked about, the rows of its tables, and the deployment that runs it, if one does."""

    program: Program
    tables: Mapping[str, object] | None
    system: RemoteSystem | None

    def wait_for(self, relation: str, tick: int, sources: Sources, timeout: float) -> None:
        """Until no event with a tick up to this one can come any more. Leaves with an exit code if that is not soon,
        or if the sources do not reach so far."""
        from smile.bulk.as_of import require_reach

        require_past(tick)
        require_reach(sources, tick)
        self._wait_until_known(relation, tick, timeout)

    def newest(self, relation: str, bases: Collection[str], sources: Sources, timeout: float) -> int:
        """The tick of the newest event of these streams that is logged or archived by now, when no event up to it can
        come any more: what is computed of all events is as of this tick."""
        from runtime.protocol.coverage import NO_TICK

        streams = [name for name in bases if name in self.program.checked.program.streams]
        tick = max(sources.latest(streams).values(), default=NO_TICK)
        self._wait_until_known(relation, tick, timeout)
        return tick

    def _wait_until_known(self, relation: str, tick: int, timeout: float) -> None:
        from smile.bulk.as_of import said
        from smile.errors import TimedOut

        if self.system is None:  # nothing runs: what is logged is all there is
            return
        end = monotonic() + timeout
        while (known := self.system.known_up_to(relation)) < tick:
            if monotonic() >= end:
                raise TimedOut(f"the streams of `{relation}` are known up to {said(known)} only, not to {said(tick)}")
            sleep(KNOWN_POLL_S)


@contextmanager
def past(program: Path | None, address: str | None, keys: Path | None, timeout: float) -> Iterator[Past]:
    """The program in a file, with nothing running; otherwise the one that runs. Errors are said in one line."""
    from smile.cli.connecting import connected, exit_code_of
    from smile.errors import SmileError

    if program is not None:
        from mpl.diagnostic import MplError
        from smile.cli.output import show
        from smile.program import compile_source

        try:
            compiled = compile_source(read_source(str(program)), program.parent)
        except MplError as error:
            show(error.diagnostics)
            raise typer.Exit(Exit.FAILED) from None
        try:
            yield Past(compiled, None, None)
        except SmileError as error:
            fail(str(error), exit_code_of(error))
        return
    with ExitStack() as stack:
        try:
            system = stack.enter_context(connected(address, keys, timeout))
        except typer.Exit as left:
            if left.exit_code == Exit.UNREACHABLE:
                typer.echo("       or name the program with --program FILE: then none is needed", err=True)
            raise
        yield Past(system.program, deployed_tables(system), system)


def deployed_tables(system: RemoteSystem) -> Mapping[str, object]:
    """The rows of tables travel with the deployment."""
    from smile.deploy.bundles import table_rows_of

    return table_rows_of(system.deployment, system.program)
