"""One Spark session for everything that this process does in bulk, and clear words when there can be none.

Settings come from the user and are handed on as they are; only what our semantics need is added: ANSI arithmetic, so
that overflow is an error, and UTC. Starting takes seconds, so the session is made when first wanted and then kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

JAVA_MIN = 17

NEEDED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Otherwise Spark writes times as 96-bit numbers that no other reader should have to know.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
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
    """The session of this process; later calls get the same one, whatever they ask for."""
    settings = settings or SparkSettings()
    is_connect = settings.master.startswith("sc://")
    if not is_connect and SparkSession.getActiveSession() is None:
        _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers must run the Python that the driver runs
    builder = SparkSession.builder.appName("smile")
    builder = builder.remote(settings.master) if is_connect else builder.master(settings.master)
    conf = {**DEFAULTS, **settings.conf, **NEEDED}
    if settings.packages:
        conf["spark.jars.packages"] = ",".join(settings.packages)
    for name, value in conf.items():
        builder = builder.config(name, value)
    try:
        made = builder.getOrCreate()
    except Exception as error:
        raise NoSpark(f"Spark at {settings.master} cannot be started: {error}") from error
    for name, value in NEEDED.items():
        made.conf.set(name, value)
    if not is_connect:
        made.sparkContext.setLogLevel("ERROR")
    return made


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = f"Install Java {JAVA_MIN} or newer (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME."
    if java is None or not Path(java).exists():
        raise NoSpark(f"Spark needs Java, and there is none{' at ' + home if home else ''}. {remedy}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = next((word.strip('"') for word in said.split() if word.startswith('"')), "")
    major = version.split(".")[1] if version.startswith("1.") else version.split(".")[0]
    if not major.isdigit() or int(major) < JAVA_MIN:
        raise NoSpark(f"Spark needs Java {JAVA_MIN} or newer; {java} is {version or 'of unknown version'}. {remedy}")
