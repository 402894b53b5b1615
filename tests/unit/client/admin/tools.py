"""What the tests of the admin client share."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from ottla.client.admin import Admin
from ottla.net import connection, negotiate
from ottla.wire.errors import ErrorCode
from ottla.wire.schema import Versions

ABSENT = -1


def ask(bootstrap_servers: str, story: Callable[[Admin], Awaitable[Any]], **options: Any) -> Any:
    """Run a story with an admin client."""

    async def run() -> Any:
        async with Admin(bootstrap_servers, **options) as admin:
            return await asyncio.wait_for(story(admin), 30)

    return asyncio.run(run())


def make_older(monkeypatch: pytest.MonkeyPatch, newest: Mapping[int, int]) -> None:
    """Have brokers offer no more than these versions, by API key; those that are ABSENT not at all."""

    def decode_offer(frame: bytes, version: int) -> tuple[ErrorCode, negotiate.Offer]:
        code, offer = negotiate.decode_offer(frame, version)
        return code, {
            key: Versions(versions.first, min(versions.last, newest.get(key, versions.last)))
            for key, versions in offer.items()
            if newest.get(key) != ABSENT
        }

    monkeypatch.setattr(connection, "decode_offer", decode_offer)
