"""Logs that nobody has used since the start. They stay closed, but for those in which something is to be done."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.folders import folder_of
from ottla.config.topic import TopicConfig
from ottla.log.state import LogState

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

IsDue = Callable[[LogState, TopicConfig, int], bool]
"""Whether something is to be done in a closed log at a time."""


async def open_idle(broker: "Broker", is_due: IsDue) -> int:
    """Open the closed logs in which something is due, of which only what was written down is looked at; how many."""
    closed = broker.logs.closed()
    if not closed:
        return 0
    opened = 0
    for name, index in await asyncio.get_running_loop().run_in_executor(None, _find, broker, closed, is_due):
        topic = broker.image.topics.get(name)
        # The topic may have gone meanwhile, and another may have come in its place.
        if topic is not None and broker.logs.is_closed(name, index):
            broker.logs.open(topic, index)
            opened += 1
            await asyncio.sleep(0)
    return opened


def _find(broker: "Broker", closed: dict[str, LogState], is_due: IsDue) -> list[tuple[str, int]]:
    now_ms, found = broker.clock.now_ms(), []
    for topic in broker.image.topics.values():
        config = TopicConfig.of(topic.configs, broker.config)
        for partition in topic.partitions:
            state = closed.get(folder_of(topic.name, partition.index))
            if state is not None and is_due(state, config, now_ms):
                found.append((topic.name, partition.index))
    return found
