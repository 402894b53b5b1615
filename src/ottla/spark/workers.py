"""The processes that Spark runs Python in."""

import gc
import os
from functools import cache


@cache
def spare_garbage_collector() -> None:
    """Keep the objects that are there by now out of Spark's way, once in a process, when all is imported.

    Between two tasks Spark searches all objects of a process for garbage. What was imported never is any, and to look
    at it, Spark and pandas above all, takes 60 ms of a core, ten times as long as a small task. Other programs are left
    alone.

    >>> spare_garbage_collector()
    >>> gc.get_freeze_count()
    0
    """
    if "SPARK_REUSE_WORKER" in os.environ:
        gc.collect()
        gc.freeze()
