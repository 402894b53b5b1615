"""How the C library deals with memory that was freed."""

import ctypes
import gc
from contextlib import suppress

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

LARGEST_BYTES = 32 * 1024 * 1024
"""Up to which size buffers come from memory that was used before, the most that glibc allows."""

KEPT_BYTES = 128 * 1024 * 1024
"""How much of it a process keeps at the end of its heap, unless it says how much: what a consumer of columns has in its
hands, and has read ahead. With a quarter of that it is a tenth slower."""


def keep_freed_memory(kept_bytes: int = KEPT_BYTES, *, in_one_heap: bool = False) -> bool:
    """Have buffers of some megabytes come from memory that was used before; whether the C library is one that can.

    Otherwise glibc gives each of them back to the kernel, and the next one is mapped and cleared page by page, which
    costs a broker more than all that it does with the bytes, and a reader of Arrow tables about a third. Free memory
    stays with the process, up to `kept_bytes`. It holds for the whole process, so it is for programs to call and not
    for libraries: `ottla serve` and the processes that Spark starts for Ottla do.

    That is so in the heap of the first thread. Others have heaps of 64 MB each, and all but the first of those are
    given back as soon as they are free. With `in_one_heap` threads that start from now on use that of the first thread:
    it is for those who have few threads, and much in one of them.

    >>> import subprocess, sys
    >>> program = "import ottla; ottla.keep_freed_memory(); print(len(bytes(2**20)))"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '1048576\\n'
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        if in_one_heap:
            mallopt(_M_ARENA_MAX, 1)
        return bool(mallopt(_M_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_M_TRIM_THRESHOLD, kept_bytes))
    return False


COLLECTED_FROM = 10_000
"""So many more objects than there were, and Python looks for those that only refer to each other. Its own 700 are what
a fetch from a hundred partitions makes, and nearly all of them go by themselves when it is answered."""


def collect_seldom() -> None:
    """Have Python look for garbage less often, and never among what is there now, such as modules.

    It is for a program that has started, to call once.

    >>> import subprocess, sys
    >>> program = "import gc; from ottla.ports.heap import *; collect_seldom(); print(gc.get_threshold()[0])"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '10000\\n'
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_FROM, 50, 100)
