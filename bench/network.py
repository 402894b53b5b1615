"""A loopback that is not paced.

Where a machine has its connections use BBR, each of them sends no faster than it believes the network to be, on
loopback too, and winds up timers for what has to wait: here plain sockets then move half as much. Few machines that
people develop on are set like that, so benchmarks beside peers leave it: they go into a network namespace of their own,
which has a loopback and nothing else. Whatever has to be fetched is fetched before.
"""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

PACED = "bbr"
NOT_PACED = "reno"
"""What Linux lets everybody use; CUBIC, which most machines have, sends no slower or faster where nothing is lost."""

_SETTING = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_UP_AND_RUNNING = 0x1 | 0x8 | 0x40


def leave_pacing(*, wanted: bool = True) -> str:
    """Have this thread, and all that it starts from now on, use a loopback that is not paced, unless that is not wanted
    or cannot be; say which it is.

    >>> leave_pacing(wanted=False).startswith("loopback")
    True
    """
    setting = _setting()
    if not setting.startswith(PACED):
        return f"loopback, {setting}"
    if wanted and _enter_own_network():
        return f"a loopback of its own, {_setting()}, since the machine's is paced ({setting})"
    return f"loopback, paced ({setting})"


def _setting() -> str:
    try:
        return _SETTING.read_text().strip()
    except OSError:
        return "as the system has it"


def _enter_own_network() -> bool:
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    library = ctypes.CDLL(None, use_errno=True)
    try:
        if library.unshare(_CLONE_NEWNET):
            # Only those may who manage the machine.
            return False
        try:
            with socket.socket() as any_socket:
                fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
            _SETTING.write_text(NOT_PACED)
        except OSError as error:
            if library.setns(before, _CLONE_NEWNET):
                raise OSError("neither into a network of its own nor back") from error
            return False
        return True
    finally:
        os.close(before)
