"""The processes that Spark runs Python in."""

import os
import platform
import subprocess
import sys

import pytest

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

TASKS = """
import resource
from ottla.spark.reading import BUFFER_BYTES
from ottla.spark.workers import keep_memory
keep_memory()
size = 4 * 2**20
def faults_of_task():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    buffers = [bytearray(size) for _ in range(BUFFER_BYTES * 3 // 2 // size)]
    del buffers
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults_of_task() > 10_000, faults_of_task() < 1_000)
"""


THREADS = """
import resource
from concurrent.futures import ThreadPoolExecutor
from ottla.spark.workers import KEPT_BYTES, keep_memory
keep_memory()
size = 4 * 2**20
count = KEPT_BYTES * 3 // 2 // size
def buffers_of_thread(count):
    return [bytearray(size) for _ in range(count)]
with ThreadPoolExecutor(1) as thread:
    held = thread.submit(buffers_of_thread, count).result()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        del held[count // 2 :]
        held += thread.submit(buffers_of_thread, count - count // 2).result()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1_000)
"""


def run(program: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_what_a_worker_of_spark_has_imported_is_not_searched_for_garbage() -> None:
    assert run(PROGRAM, {"SPARK_REUSE_WORKER": "1"}) == "True True True"


def test_other_programs_are_left_alone() -> None:
    assert run(PROGRAM, {}) == "False True False"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep what they like")
def test_a_task_has_the_memory_of_the_one_before_it() -> None:
    assert run(TASKS, {"SPARK_REUSE_WORKER": "1"}) == "True True"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep what they like")
def test_the_memory_of_another_thread_is_kept_as_well() -> None:
    assert run(THREADS, {"SPARK_REUSE_WORKER": "1"}) == "True"
