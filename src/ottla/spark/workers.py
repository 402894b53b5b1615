"""The processes that Spark runs Python in. All this holds for a whole process, so other programs are left alone."""

import gc
import os
from functools import cache

from ottla.ports.heap import keep_freed_memory


def _is_worker() -> bool:
    return "SPARK_REUSE_WORKER" in os.environ


@cache
def keep_memory() -> None:
    """Have the buffers of fetches and columns come from memory that was used before, once in a process.

    >>> keep_memory()
    """
    if _is_worker():
        keep_freed_memory()


@cache
def spare_garbage_collector() -> None:
    """Keep the objects that are there by now out of Spark's way, once in a process, when all is imported.

    Between two tasks Spark searches all objects of a process for garbage. What was imported never is any, and to look
    at it, Spark and pandas above all, takes 60 ms of a core, ten times as long as a small task.

    >>> before = gc.get_freeze_count()
    >>> spare_garbage_collector()  # which is no worker of Spark
    >>> gc.get_freeze_count() == before
    True
    """
    if _is_worker():
        gc.collect()
        gc.freeze()
