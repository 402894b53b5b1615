"""How many files and connections a process may have open."""

import resource
from contextlib import suppress

_PLENTY = 2**20


def most_descriptors() -> int:
    """How many this process may have.

    >>> most_descriptors() > 0
    True
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _PLENTY if soft == resource.RLIM_INFINITY else soft


def allow_more_descriptors() -> None:
    """Have as many as the system lets this process have: what it gives at first is often 1024, for old programs.

    >>> allow_more_descriptors()
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _PLENTY if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems have a limit beyond this one.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
