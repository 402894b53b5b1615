"""The processes that Spark runs Python in."""

import os
import subprocess
import sys

PROGRAM = """
import gc
from ottla.spark.workers import spare_garbage_collector
spare_garbage_collector()
found = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
spare_garbage_collector()
same = gc.get_freeze_count()
import ottla.client.producer
spare_garbage_collector()
print(found > 1000, same == found, gc.get_freeze_count() > found + 1000)
"""


def frozen(environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_what_a_worker_of_spark_has_imported_is_not_searched_for_garbage() -> None:
    assert frozen({"SPARK_REUSE_WORKER": "1"}) == "True True True"


def test_other_programs_are_left_alone() -> None:
    assert frozen({}) == "False True False"
