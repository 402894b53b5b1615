"""The processes that Spark runs Python in."""

import subprocess
import sys

PROGRAM = """
import gc
from ottla.spark.workers import spare_garbage_collector
spare_garbage_collector()
found = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
spare_garbage_collector()
print(found > 1000, gc.get_freeze_count() == found)
"""


def frozen(environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def test_a_worker_of_spark_is_not_searched_for_garbage_from_the_beginning() -> None:
    assert frozen({"SPARK_REUSE_WORKER": "1"}) == "True True"


def test_other_programs_are_left_alone() -> None:
    assert frozen({}) == "False True"
