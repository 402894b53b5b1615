"""A host with several addresses, under asyncio, which tells of each of them."""

import asyncio
import errno
import os
import socket
from typing import Any

import pytest

from ottla.net import BrokerUnreachableError, Connection

from .loops import run


def test_a_host_that_refuses_at_all_its_addresses_is_said_to_refuse_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    async def addresses(*_: Any, **__: Any) -> list[Any]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, ("127.0.0.1", port)), (*kind, ("127.0.0.2", port))]

    async def story() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
        refused = os.strerror(errno.ECONNREFUSED)
        with pytest.raises(BrokerUnreachableError, match=f"cannot connect to broker:{port}: {refused}$"):
            await Connection.open("broker", port)

    run(asyncio.new_event_loop, story())
