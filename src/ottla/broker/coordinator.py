"""The coordinator of groups: which shard a group belongs to, and that each is loaded before it is asked.

Groups are spread over the partitions of the offsets topic by a hash of their id, as in Kafka. Whoever leads such a
partition coordinates its groups. The topic is made when somebody first asks for a group, a partition's files when there
is first something to write.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.assign import assignors
from ottla.broker.acl.authorizer import Somebody
from ottla.broker.coordinator_load import Loader
from ottla.broker.coordinator_shard import Method, Shard, gone
from ottla.broker.request import Answer, Caller, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.image import BrokerImage, TopicImage
from ottla.cluster.names import OFFSETS_TOPIC
from ottla.config.broker import BrokerConfig
from ottla.coordinator.outcome import Call
from ottla.coordinator.timers import Turns
from ottla.record.compression import Codec
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.coordinator.group.shard import GroupShard

RELOAD_S = 1.0
"""How long a shard that has failed stays away: what it failed of may be over by then."""

TELL_PAUSE_S = 0.005
"""How long after one shard the next one hears that topics have changed."""

Refuse = Callable[[KafkaError], Any]
"""Makes the response that says an error in the terms of one API."""

log = logging.getLogger("ottla.groups")


class GroupCoordinator:
    """The shards that this broker leads."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._shards: dict[int, Shard] = {}
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._turns = Turns()
        self._untold: dict[int, None] = {}
        """Shards that have yet to hear that the picture of the cluster has changed."""
        self._telling: asyncio.Handle | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to load every shard that has something to load; INVALID_CONFIG for assignors that are not there."""
        try:
            assignors.load(self._broker.config.group_consumer_assignors)
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        for index in self._with_records():
            self._begin_to_load(index)

    async def stop(self) -> None:
        """Answer everyone who waits for something of a group, and coordinate no more."""
        self._stopping = True
        for shard in self._shards.values():
            shard.stop()
        self._shards.clear()
        self._untold.clear()
        if self._telling is not None:
            self._telling.cancel()
        loading = list(self._loading.values())
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    # What handlers call.

    def ask(
        self,
        request: Request,
        group_id: str,
        method: Method,
        body: Any,
        refuse: Refuse,
        *,
        if_too_large: ErrorCode | None = None,
    ) -> Answer:
        """What a group answers: a response, or a coroutine where it has to be waited for.

        `if_too_large` as in `Shard.execute`.
        """
        if OFFSETS_TOPIC not in self._broker.image.topics:
            return self._ask_later(request, group_id, method, body, refuse, if_too_large)
        client_host = "/" + request.caller.peer.rpartition(":")[0]
        call = Call(request.version, request.client_id or "", client_host, body, self._may_see(request.caller))
        index = self._index_of(group_id)
        # Whoever has just created a topic may well commit an offset for it next.
        self._tell(index)
        return self._answer(index, method, call, request.caller, refuse, if_too_large)

    def _may_see(self, caller: Caller) -> Callable[[str], bool] | None:
        authorizer = self._broker.authorizer
        if authorizer is None:
            return None
        # Members are not heard of when topics come; by then, the connection may belong to somebody else.
        return partial(
            authorizer.allows, Somebody(caller.host, caller.principal), ACLOperation.DESCRIBE, ResourceType.TOPIC
        )

    async def _ask_later(
        self,
        request: Request,
        group_id: str,
        method: Method,
        body: Any,
        refuse: Refuse,
        if_too_large: ErrorCode | None,
    ) -> Any:
        try:
            await self._create_topic()
        except KafkaError as error:
            return refuse(error)
        answer = self.ask(request, group_id, method, body, refuse, if_too_large=if_too_large)
        return await answer if asyncio.iscoroutine(answer) else answer

    def ask_all(self, request: Request, method: Method, body: Any, refuse: Refuse) -> list[Answer]:
        """What all shards here answer, each as in `ask`; one that is not loaded yet is refused."""
        call = Call(request.version, request.client_id or "", "", body)
        # Beside those that are loaded, those that nobody has asked for yet, or that have failed.
        return [
            self._answer(index, method, call, request.caller, refuse)
            for index in {*self._shards, *self._with_records()}
        ]

    def _answer(
        self,
        index: int,
        method: Method,
        call: Call,
        caller: Caller,
        refuse: Refuse,
        if_too_large: ErrorCode | None = None,
    ) -> Answer:
        try:
            answer = self._shard(index).execute(method, call, caller, if_too_large=if_too_large)
        except KafkaError as error:
            return refuse(error)
        return _or_refuse(answer, refuse) if asyncio.iscoroutine(answer) else answer

    async def find(self, group_id: str) -> BrokerImage:
        """The broker that coordinates a group."""
        broker = self._broker
        if OFFSETS_TOPIC not in broker.image.topics:
            await self._create_topic()
        partition = broker.image.partition(OFFSETS_TOPIC, self._index_of(group_id))
        found = None if partition is None else broker.image.brokers.get(partition.leader)
        if found is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the partition of this group has no leader now")
        return found

    def shards(self) -> "list[GroupShard]":
        """The shards that are loaded, to look at."""
        return [shard.groups for shard in self._shards.values()]

    # What happens elsewhere.

    def image_changed(self) -> None:
        """Topics have come, grown or gone. Each shard hears of it before it is asked next, and soon if it is not."""
        self._untold.update(dict.fromkeys(self._shards))
        if self._untold and self._telling is None:
            self._telling = asyncio.get_running_loop().call_soon(self._tell_one)

    def _tell_one(self) -> None:
        # One after the other, so that requests are served in between.
        self._telling = None
        if self._untold:
            self._tell(next(iter(self._untold)))
        if self._untold:
            self._telling = asyncio.get_running_loop().call_later(TELL_PAUSE_S, self._tell_one)

    def _tell(self, index: int) -> None:
        if index in self._untold:
            del self._untold[index]
            # It may have failed since.
            if (shard := self._shards.get(index)) is not None:
                self._show_image(shard)

    def _show_image(self, shard: Shard) -> None:
        image = self._broker.image
        shard.run(lambda groups, now_ms: groups.image_changed(now_ms, image))

    def config_changed(self, config: BrokerConfig) -> None:
        """Settings have changed."""
        for shard in self._shards.values():
            shard.configure(lambda groups: groups.config_changed(config))

    # Shards.

    async def _create_topic(self) -> None:
        if self._stopping:
            raise gone()
        try:
            await self._broker.topics.create(OFFSETS_TOPIC)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                log.error("%s could not be created: %s", OFFSETS_TOPIC, error)
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    def _topic(self) -> TopicImage:
        return self._broker.image.topics[OFFSETS_TOPIC]

    def _index_of(self, group_id: str) -> int:
        return shard_index(group_id, len(self._topic().partitions))

    def _with_records(self) -> Iterable[int]:
        topic = self._broker.image.topics.get(OFFSETS_TOPIC)
        for partition in () if topic is None else topic.partitions:
            if partition.leader == self._broker.node_id and self._broker.logs.size_of(OFFSETS_TOPIC, partition.index):
                yield partition.index

    def _shard(self, index: int) -> Shard:
        """A shard that can be asked, or the KafkaError to answer instead."""
        shard = self._shards.get(index)
        if shard is not None:
            return shard
        if self._stopping:
            raise gone()
        if self._topic().partitions[index].leader != self._broker.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker leads {OFFSETS_TOPIC}-{index}")
        if index in self._loading or self._broker.logs.size_of(OFFSETS_TOPIC, index):
            self._begin_to_load(index)
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the group is being loaded; ask again")
        return self._serve(index, self._new_groups())

    def _new_groups(self) -> "GroupShard":
        # Here, for brokers that have groups: they are a tenth of what a broker loads.
        from ottla.coordinator.group.shard import GroupShard

        broker = self._broker
        return GroupShard(broker.config, broker.image, broker.chance, self._turns)

    def _serve(self, index: int, groups: "GroupShard") -> Shard:
        """Answer for these groups from now on."""
        broker = self._broker
        shard = self._shards[index] = Shard(
            f"{OFFSETS_TOPIC}-{index}",
            groups,
            partial(broker.leader, OFFSETS_TOPIC, index),
            partial(self._failed, index),
            broker.clock,
            Codec(broker.config.offsets_topic_compression_codec),
        )
        shard.configure(lambda groups: groups.config_changed(broker.config))
        shard.run(lambda groups, now_ms: groups.loaded(now_ms))
        # Topics may have gone while the broker was away, or while the groups were loaded.
        self._show_image(shard)
        if index not in self._shards:
            raise gone()
        return shard

    def _failed(self, index: int) -> None:
        self._shards.pop(index, None)
        if not self._stopping:
            self._begin_to_load(index, RELOAD_S)

    def _begin_to_load(self, index: int, delay_s: float = 0) -> None:
        if index not in self._loading:
            self._loading[index] = asyncio.get_running_loop().create_task(self._load(index, delay_s))

    async def _load(self, index: int, delay_s: float) -> None:
        while True:
            await asyncio.sleep(delay_s)
            try:
                async with self._one_at_a_time:
                    groups = await self._loaded(index)
                break
            except Exception as error:
                expected = isinstance(error, KafkaError | OSError | ProtocolError)
                log.error(
                    "%s-%d could not be loaded, and is tried again: %s",
                    *(OFFSETS_TOPIC, index, error),
                    exc_info=None if expected else error,
                )
                delay_s = RELOAD_S
        del self._loading[index]
        with suppress(KafkaError):
            self._serve(index, groups)

    async def _loaded(self, index: int) -> "GroupShard":
        broker = self._broker
        groups = self._new_groups()
        begun = broker.clock.monotonic()
        loader = Loader(broker.leader(OFFSETS_TOPIC, index), groups, broker.config.offsets_load_buffer_size)
        await loader.run()
        took_ms = (broker.clock.monotonic() - begun) * 1000
        log.debug("%s-%d: %d records loaded in %.0f ms", OFFSETS_TOPIC, index, loader.record_count, took_ms)
        return groups


async def _or_refuse(answer: Coroutine[Any, Any, Any], refuse: Refuse) -> Any:
    try:
        return await answer
    except KafkaError as error:
        return refuse(error)


def together(answers: list[Any], merge: Callable[[list[Any]], Any]) -> Answer:
    """One answer made of several; a coroutine if one of those is.

    >>> together([1, 2], sum)
    3
    """
    if any(asyncio.iscoroutine(answer) for answer in answers):
        return _together(answers, merge)
    return merge(answers)


async def _together(answers: list[Any], merge: Callable[[list[Any]], Any]) -> Any:
    return merge([await answer if asyncio.iscoroutine(answer) else answer for answer in answers])


def shard_index(group_id: str, count: int) -> int:
    """Which of so many partitions a group is kept in: its hash as Java has it, so that Kafka finds it there too.

    >>> shard_index("orders", 50), shard_index("zahlung-ü-🎉", 50)
    (31, 2)
    """
    code = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    if code >= 1 << 31:
        # The smallest number has no positive counterpart, and stands for 0.
        code = (1 << 32) - code & 0x7FFFFFFF
    return code % count
