"""How many tasks of Spark are done, asked of its status tracker: for whoever tells people about progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException


def tasks_of(spark: Any) -> Callable[[], tuple[int, int]] | None:
    """A function that says how many tasks of the jobs from now on are done, and how many are known."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkException:  # Connect has no context
        return None
    earlier, seen = set(tracker.getActiveJobsIds()), set[int]()

    def tasks() -> tuple[int, int]:
        done = known = 0
        try:
            seen.update(set(tracker.getActiveJobsIds()) - earlier)
            for job in sorted(seen):
                found = tracker.getJobInfo(job)
                for number in () if found is None else found.stageIds:
                    stage = tracker.getStageInfo(number)
                    if stage is not None:
                        done, known = done + stage.numCompletedTasks, known + stage.numTasks
        except Exception:  # noqa: BLE001  the session is being stopped: whatever the gateway says, there is no news
            return 0, 0
        return done, known

    return tasks
