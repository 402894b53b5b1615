"""The processes that Spark runs Python in. All this holds for a whole process, so other programs are left alone."""

import gc
import os
import sys
from functools import cache

from ottla.ports.heap import keep_freed_memory

KEPT_BYTES = 64 * 2**20
"""How much free memory a process keeps from task to task: twice what a task fetches ahead of Spark, since all of it is
free when a task ends, and what was given back by then is mapped and cleared again for the next one."""


def is_worker() -> bool:
    """Whether Spark started this process, to do many tasks one after another."""
    return "SPARK_REUSE_WORKER" in os.environ


@cache
def keep_memory() -> None:
    """Have the buffers of fetches and columns come from memory that was used before, once in a process.

    It comes before the thread of the event loop, which makes most of them, and would have heaps of its own otherwise.

    >>> keep_memory()
    """
    if is_worker():
        keep_freed_memory(KEPT_BYTES, in_one_heap=True)


_seen = {"modules": 0}


def spare_garbage_collector() -> None:
    """Keep what was imported by now out of Spark's way, whenever there is more of it.

    Between two tasks Spark searches all objects of a process for garbage. What was imported never is any, and to look
    at it, Spark and pandas above all, takes 60 ms of a core, ten times as long as a small task. A process that reads
    first and writes later imports in two goes.

    >>> before = gc.get_freeze_count()
    >>> spare_garbage_collector()  # which is no worker of Spark
    >>> gc.get_freeze_count() == before
    True
    """
    if is_worker() and len(sys.modules) > _seen["modules"]:
        _seen["modules"] = len(sys.modules)
        gc.collect()
        gc.freeze()
