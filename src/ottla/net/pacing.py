"""Between processes of one machine connections are not paced, as far as that can be had.

Some machines have their connections use BBR, which sends no faster than it believes the network to be, and winds up a
timer for what has to wait. On one machine there is no network to be gentle with, and the timers cost as much as the
sending: without them half the processor time moves twice the bytes. Whom a network lies between is sent to as the
machine is set.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any, Final

PACED: Final = b"bbr"
"""How the names of those begin that send by a timer."""

NOT_PACED: Final = b"reno"
"""What every Linux has, and lets everybody use."""

_CONGESTION: Final[int | None] = getattr(socket, "TCP_CONGESTION", None)
_NAME_BYTES: Final = 16


def is_on_this_machine(own: object, peer: object) -> bool:
    """Whether the two ends of a connection, as sockets name them, are of one machine.

    >>> is_on_this_machine(("192.168.0.1", 9092), ("192.168.0.1", 40_000))
    True
    >>> is_on_this_machine(("127.0.1.1", 9092), ("127.0.0.1", 40_000))
    True
    >>> is_on_this_machine(("192.168.0.1", 9092), ("192.168.0.7", 40_000))
    False
    """
    if not isinstance(own, tuple) or not isinstance(peer, tuple):
        return False
    return own[0] == peer[0] or (_is_loopback(own) and _is_loopback(peer))


def _is_loopback(address: Any) -> bool:
    host = str(address[0])
    return host.startswith("127.") or host == "::1"


def listen_without_pacing(listening: Any) -> None:
    """Have connections that come in begin without pacing, where only this machine's can: one that has begun with it
    keeps some of its timers."""
    if _is_loopback(listening.getsockname()):
        _stop_pacing(listening)


def stop_pacing_if_near(transport: asyncio.BaseTransport) -> None:
    """Have a connection send without pacing if its peer is on this machine."""
    connected = transport.get_extra_info("socket")
    if connected is None:
        return
    if is_on_this_machine(transport.get_extra_info("sockname"), transport.get_extra_info("peername")):
        _stop_pacing(connected)


def _stop_pacing(own: Any) -> None:
    if _CONGESTION is None:
        return
    # The peer may have gone meanwhile, or nobody but the machine's owner may choose.
    with suppress(OSError):
        if own.getsockopt(socket.IPPROTO_TCP, _CONGESTION, _NAME_BYTES).startswith(PACED):
            own.setsockopt(socket.IPPROTO_TCP, _CONGESTION, NOT_PACED)
