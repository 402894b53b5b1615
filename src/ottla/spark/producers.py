"""The producers of a worker process. They are kept from task to task, so that a task finds its connections open."""

import asyncio
from contextlib import suppress

from ottla.client.errors import BrokerUnreachableError
from ottla.client.producer import Producer
from ottla.client.producer.options import ProducerOptions
from ottla.sync.loop import Background, background
from ottla.wire.errors import KafkaError

PATIENCE_SECONDS = 10.0
"""How long a task waits where no broker can be reached: one may be starting again, or the address may be wrong."""

PAUSE_SECONDS = 0.5

GOODBYE_SECONDS = 1.0
"""How long a producer whose task has failed may take to send what it still has."""


class ProducerPool:
    """Producers by their options. A worker process does one task at a time, so each has one user."""

    def __init__(self) -> None:
        self._producers: dict[ProducerOptions, Producer] = {}
        self._home: Background | None = None
        """The event loop that they live on. In a child that was forked it stands still, and the producers with it."""

    def get(self, options: ProducerOptions) -> Producer:
        """The producer with these options, started. Its methods are for `background().call`."""
        here = background()
        if self._home is not here:
            self._producers, self._home = {}, here
        producer = self._producers.get(options)
        if producer is None:
            producer = self._producers[options] = here.call(_start, options)
            here.remember(producer, producer.stop)
        return producer

    def discard(self, options: ProducerOptions) -> None:
        """Let go of a producer whose task has failed: the next task is not to wait for what this one left."""
        here = background()
        producer = self._producers.pop(options, None)
        if producer is not None and self._home is here:
            here.forget(producer)
            here.call(_leave, producer)


async def _start(options: ProducerOptions) -> Producer:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    while True:
        try:
            return await Producer(**options.arguments()).start()
        except BrokerUnreachableError:
            if loop.time() + PAUSE_SECONDS > deadline:
                raise
        await asyncio.sleep(PAUSE_SECONDS)


async def _leave(producer: Producer) -> None:
    # Why it failed is known already.
    with suppress(KafkaError, TimeoutError):
        async with asyncio.timeout(GOODBYE_SECONDS):
            await producer.stop()


producers = ProducerPool()
"""Those of this process."""
