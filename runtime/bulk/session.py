"""One Spark session for everything that this process does in bulk, and clear words when there can be none.

Settings come from the user and are handed on as they are; only what our semantics need is added: ANSI arithmetic, so
that overflow is an error, UTC, and names as MPL has them. Starting takes seconds, so the session is made when first
wanted and then kept. What Spark is known to stumble over is looked at before, because its own words come late and do
not name the remedy.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from runtime.bulk.failures import words_of

JAVA_MIN = 17
PANDAS_TOO_NEW = 3
CONNECT_MODULES = ("grpc", "grpc_status", "google.rpc", "zstandard")
ANSWER_S = 60.0
"""So long `java -version` may take, on a machine that is very busy."""

NEEDED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # as names in MPL are
    "spark.sql.python.filterPushdown.enabled": "true",
    # Otherwise Spark writes times as 96-bit numbers that no other reader should have to know.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Otherwise every call on a column asks the JVM where it stands: half of the time that making a frame takes.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "2g",
}


class NoSpark(Exception):
    """Spark cannot run here; the message says why and what helps."""


@dataclass(frozen=True)
class SparkSettings:
    """`master` and `conf` as Spark knows them: local[*], spark://..., yarn, k8s://..., or sc://... for Connect."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


def session(settings: SparkSettings | None = None) -> SparkSession:
    """The session of this process, or NoSpark; later calls get the same one, whatever they ask for."""
    settings = settings or SparkSettings()
    is_connect = settings.master.startswith("sc://")
    check_spark(settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers must run the Python that the driver runs
    # A server has its own memory and jars: whoever is connected to it says only what computing needs.
    conf = {**({} if is_connect else DEFAULTS), **settings.conf, **NEEDED}
    if settings.packages:
        conf["spark.jars.packages"] = ",".join(settings.packages)
    try:
        builder = SparkSession.builder.appName("smile")
        builder = builder.remote(settings.master) if is_connect else builder.master(settings.master)
        for name, value in conf.items():
            builder = builder.config(name, value)
        made = builder.getOrCreate()
    except Exception as error:
        raise NoSpark(f"Spark at {settings.master} cannot be started: {words_of(error)}") from error
    for name, value in NEEDED.items():
        made.conf.set(name, value)
    if not is_connect:
        made.sparkContext.setLogLevel("ERROR")
    return made


def check_spark(settings: SparkSettings) -> None:
    """NoSpark if what Spark needs on this machine is not there. Starts nothing."""
    if SparkSession.getActiveSession() is not None:
        return
    _check_pandas()
    if settings.master.startswith("sc://"):
        _check_connect(settings.master)
    else:
        _check_java()
        _check_workers(settings)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = f"Install Java {JAVA_MIN} or newer (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME."
    if java is None or not Path(java).exists():
        raise NoSpark(f"Spark needs Java, and there is none{' at ' + home if home else ''}. {remedy}")
    said = _said([java, "-version"])
    if said is None:
        raise NoSpark(f"Spark needs Java, and {java} cannot be run. {remedy}")
    version = next((word.strip('"') for word in said.split() if word.startswith('"')), "")
    major = version.split(".")[1] if version.startswith("1.") else version.split(".")[0]
    if not major.isdigit() or int(major) < JAVA_MIN:
        raise NoSpark(f"Spark needs Java {JAVA_MIN} or newer; {java} is {version or 'of unknown version'}. {remedy}")


def _check_connect(master: str) -> None:
    missing = [name for name in CONNECT_MODULES if not _is_installed(name)]
    if missing:
        raise NoSpark(
            f"Spark Connect ({master}) needs Python packages that are not installed here ({', '.join(missing)})."
            " `pip install 'pyspark[connect]'` brings them."
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def _check_workers(settings: SparkSettings) -> None:
    """Workers on this machine run PYSPARK_PYTHON; what those of a cluster run, only the cluster knows."""
    python = settings.conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    if not python or not settings.master.startswith("local"):
        return
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(python)
    said = None if found is None else _said([found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    remedy = f"Unset PYSPARK_PYTHON, or set it to {sys.executable}."
    if said is None:
        raise NoSpark(f"Spark's workers would run {python} (PYSPARK_PYTHON), which cannot be run. {remedy}")
    if said.strip() != ours:
        raise NoSpark(
            f"Spark's workers would run {python} (PYSPARK_PYTHON), which is Python {said.strip()};"
            f" this is Python {ours}, and the two must agree. {remedy}"
        )


def _check_pandas() -> None:
    try:
        version = importlib.metadata.version("pandas")
    except importlib.metadata.PackageNotFoundError:
        return  # Spark says so where it needs it
    if int(version.partition(".")[0]) >= PANDAS_TOO_NEW:
        raise NoSpark(f"Spark does not work with pandas {version} yet. `pip install 'pandas<{PANDAS_TOO_NEW}'` helps.")


def _said(command: list[str]) -> str | None:
    """What a short command prints, on either stream; None if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr
