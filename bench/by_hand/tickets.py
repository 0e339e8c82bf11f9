"""The tickets view in plain PySpark, as a person who knows Spark would write it over the archive's files.

Called by `bench/spark.py`, which compares it with what the compiler generates. It uses nothing of ours and may assume
what is true here and nothing else: all files count, and no column is null.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows


def available(spark: SparkSession, sellers: Sequence[str], buyers: Sequence[str]) -> DataFrame:
    """Paths of Parquet files. Both streams of buys have the same columns, so that one scan reads them; naming the
    columns saves Spark a job that looks for them."""
    bought = spark.read.schema("item_id bigint, qty bigint").parquet(*buyers)
    sold = bought.groupBy("item_id").agg(F.sum("qty").alias("total"))
    offers = spark.read.schema("item_id bigint, price decimal(10,2), qty bigint").parquet(*sellers)
    left = F.col("qty") - F.coalesce(F.col("total"), F.lit(0))
    return offers.join(sold, "item_id", "left").select("item_id", "price", left.alias("avail")).where("avail > 0")
