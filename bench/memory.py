"""Memory that is there when it is needed.

A virtual machine gives pages that have been free for some seconds back to its host, and to get them again takes longer
than most of what is done with them: a second or more for a gigabyte. Whom that strikes is chance. So memory is found
and held before the clock starts, and let go when it does.
"""

import mmap
import os
from pathlib import Path


class Reserve:
    """Memory that is held for whoever needs it later.

    >>> reserve = Reserve()
    >>> reserve.fill(10 * mmap.PAGESIZE)
    >>> reserve.release()
    """

    def __init__(self) -> None:
        self._held: mmap.mmap | None = None

    def fill(self, total_bytes: int) -> None:
        """Have the system find so much, but no more than a third of what is free."""
        self.release()
        total_bytes = max(mmap.PAGESIZE, min(total_bytes, _available_bytes() // 3))
        self._held = room = mmap.mmap(-1, total_bytes)
        room[:: mmap.PAGESIZE] = bytes(len(range(0, total_bytes, mmap.PAGESIZE)))

    def release(self) -> None:
        """Leave it free."""
        if self._held is not None:
            self._held.close()
            self._held = None


def _available_bytes() -> int:
    """What could be had without taking it from anybody."""
    try:
        told = Path("/proc/meminfo").read_text()
    except OSError:
        return os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE // 2
    return int(told.partition("MemAvailable:")[2].split()[0]) * 1024
