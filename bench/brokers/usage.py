"""What a broker's processes use, from the system's own books."""

from pathlib import Path

from bench.process import PAGE_BYTES, TICKS_PER_SECOND, cpu_seconds_of_children


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of all that come from it, those that have ended and were waited for too."""
    user, system, children_user, children_system = map(int, _stat(pid)[11:15])
    own = (user + system + children_user + children_system) / TICKS_PER_SECOND
    return own + sum(cpu_seconds_of_children(pid).values())


def resident_bytes(pid: int) -> int:
    """The memory that a process and all that come from it have now."""
    return sum(_resident(each) for each in (pid, *cpu_seconds_of_children(pid)))


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        # It has just ended.
        return 0
