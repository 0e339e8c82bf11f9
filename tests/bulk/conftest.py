"""One Spark session for all tests that need one; they run in one process, since it starts slowly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from runtime.bulk.session import SparkSettings, session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    conf = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.memory": "1g",
        # Jobs in tests are small and each is another program: compiling them well costs more than it brings.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    made = session(SparkSettings(master="local[2]", conf=conf))
    yield made
    made.stop()
