"""How many files and connections a process may have open."""

import resource
from contextlib import suppress

_PLENTY = 2**20
_ENOUGH = 10_240
"""What macOS gives a process that asks."""


def most_descriptors() -> int:
    """How many this process may have.

    >>> most_descriptors() > 0
    True
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _PLENTY if soft == resource.RLIM_INFINITY else soft


def allow_more_descriptors() -> None:
    """Have as many as the system lets this process have: what it gives at first is often 1024, for old programs.

    >>> import subprocess, sys
    >>> program = "from ottla.ports.descriptors import *; allow_more_descriptors(); print(most_descriptors() > 100)"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    'True\\n'
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _PLENTY if hard == resource.RLIM_INFINITY else hard
    for most in (wanted, _ENOUGH):
        # Some systems say that there is no limit, and have one.
        with suppress(OSError, ValueError):
            if soft != resource.RLIM_INFINITY and soft < most <= wanted:
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return
