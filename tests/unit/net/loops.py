"""Every test of this folder runs on both event loops."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

each_loop = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)

TIMEOUT_S = 60


def run(loop_factory: LoopFactory, story: Coroutine[Any, Any, Any]) -> None:
    """Run a test's story; one that hangs fails."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(story, TIMEOUT_S))
