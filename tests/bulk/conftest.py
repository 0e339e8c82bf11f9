"""One Spark session for all tests that need one; they run in one process (`xdist_group`), since it starts slowly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from runtime.bulk.session import SparkSettings, session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    conf = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false", "spark.driver.memory": "1g"}
    made = session(SparkSettings(master="local[2]", conf=conf))
    yield made
    made.stop()
