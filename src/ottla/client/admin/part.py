"""What the parts of the admin client share: whom to ask, and how to ask for many things at once."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeVar, cast

from ottla.client.admin.failures import raise_failures
from ottla.client.checks import check_number, place_of, shown
from ottla.client.cluster import Cluster
from ottla.client.coordinators import Coordinators
from ottla.client.errors import error_of
from ottla.client.types import TopicPartition
from ottla.net import BrokerUnreachableError, Connection
from ottla.wire.errors import ErrorCode, KafkaError

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

Answers = Mapping[K, R | KafkaError]
"""What each thing that was asked for came to: a result, or why there is none."""

AskBroker = Callable[[Connection, list[K]], Awaitable[Answers[K, R]]]
"""Asks one broker for some things."""

_LOST = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND)
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class AdminPart:
    """A part of the admin client: the methods that concern one thing."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._coordinators = Coordinators(cluster)

    async def _each(
        self,
        keys: Iterable[K],
        ask: Callable[[list[K]], Awaitable[Answers[K, R]]],
        *,
        final: Collection[ErrorCode] = (),
        done: ErrorCode | None = None,
        timeout_ms: int | None = None,
    ) -> dict[K, R]:
        """Ask for each of these until it is answered. Those that may yet succeed are asked for again, they alone.

        `final` are errors that waiting does not mend here, though it does elsewhere. `done` is what a broker says to a
        change that was made before: where the answer to an earlier attempt was lost, it has most likely been made by
        that one, and counts as success.
        """
        wanted = list(dict.fromkeys(keys))
        left = list(wanted)
        found: dict[K, R] = {}
        failures: dict[K, KafkaError] = {}
        unanswered: set[K] = set()

        async def attempt() -> None:
            asked = list(left)
            try:
                answers: Answers[K, R] = await ask(asked) if asked else {}
            except KafkaError as error:
                answers = dict.fromkeys(asked, error)
            left.clear()
            for key in asked:
                answer = answers.get(key, error_of(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker leaves out {key!r}"))
                if isinstance(answer, KafkaError) and not (key in unanswered and answer.code is done):
                    failures[key] = answer
                    if answer.code in _LOST and not isinstance(answer, BrokerUnreachableError):
                        unanswered.add(key)
                    if answer.retriable and answer.code not in final:
                        left.append(key)
                else:
                    failures.pop(key, None)
                    found[key] = cast(R, None) if isinstance(answer, KafkaError) else answer
            if left:
                # A topic that is not known gets less patience than the rest, which is not to suffer for it.
                raise min((failures[key] for key in left), key=_is_unknown_topic)

        try:
            await self._cluster.retrying(attempt, timeout_ms=timeout_ms)
        except KafkaError:
            assert failures
        raise_failures({key: failures[key] for key in wanted if key in failures})
        return {key: found[key] for key in wanted}

    def _patience_ms(self, timeout_ms: int | None) -> int:
        """How long a broker may take to make a change."""
        if timeout_ms is None:
            return self._cluster.request_timeout_ms
        check_number("timeout_ms", timeout_ms, 0)
        return timeout_ms

    async def _change(self, connection: Connection, request: object, timeout_ms: int) -> Any:
        """Send a change that the broker may take that long for."""
        return await connection.request(request, timeout_ms=max(timeout_ms, self._cluster.request_timeout_ms))

    async def _ask_brokers(self, by_node: Mapping[int, list[K]], ask: AskBroker[K, R]) -> dict[K, R | KafkaError]:
        """Ask several brokers at the same time, each for what concerns it."""

        async def ask_one(node_id: int, keys: list[K]) -> Answers[K, R]:
            try:
                return await ask(await self._cluster.broker(node_id), keys)
            except KafkaError as error:
                return dict.fromkeys(keys, error)

        return _joined(await asyncio.gather(*[ask_one(node_id, keys) for node_id, keys in by_node.items()]))

    async def _each_broker(
        self, broker_ids: Iterable[int] | None, ask: Callable[[Connection], Awaitable[R]]
    ) -> dict[int, R]:
        """Ask certain brokers, or all, the same."""

        async def ask_one(connection: Connection, node_ids: list[int]) -> Answers[int, R]:
            return {node_id: await ask(connection) for node_id in node_ids}

        async def ask_all(left: list[int]) -> Answers[int, R]:
            return await self._ask_brokers({node_id: [node_id] for node_id in left}, ask_one)

        if broker_ids is None:
            brokers = (await self._cluster.retrying(lambda: self._cluster.metadata([]))).brokers
            broker_ids = [broker.node_id for broker in brokers]
        return await self._each(broker_ids, ask_all)

    async def _ask_leaders(
        self, partitions: list[TopicPartition], ask: AskBroker[TopicPartition, R]
    ) -> dict[TopicPartition, R | KafkaError]:
        """Ask the leaders of these partitions."""
        by_node, missing = await self._cluster.find_leaders(partitions)
        answers = {**missing, **await self._ask_brokers(by_node, ask)}
        for partition, answer in answers.items():
            if isinstance(answer, KafkaError):
                self._cluster.forget_leader(partition)
        return answers

    async def _ask_coordinators(self, group_ids: list[str], ask: AskBroker[str, R]) -> dict[str, R | KafkaError]:
        """Ask the coordinators of these groups."""

        async def find(group_id: str) -> Connection | KafkaError:
            try:
                return await self._coordinators.connection(group_id)
            except KafkaError as error:
                return error

        async def ask_one(connection: Connection, keys: list[str]) -> Answers[str, R]:
            try:
                return await ask(connection, keys)
            except KafkaError as error:
                return dict.fromkeys(keys, error)

        answers: dict[str, R | KafkaError] = {}
        by_connection: dict[Connection, list[str]] = {}
        for group_id, connection in zip(group_ids, await asyncio.gather(*map(find, group_ids)), strict=True):
            if isinstance(connection, KafkaError):
                answers[group_id] = connection
            else:
                by_connection.setdefault(connection, []).append(group_id)
        answers |= _joined(await asyncio.gather(*[ask_one(*one) for one in by_connection.items()]))
        for group_id, answer in answers.items():
            if isinstance(answer, KafkaError) and answer.code in (*_MOVED, *_LOST):
                self._coordinators.forget(group_id)
        return answers

    async def _ask_coordinator(
        self, group_id: str, ask: Callable[[Connection], Awaitable[Answers[K, R]]]
    ) -> Answers[K, R]:
        """Ask the coordinator of one group for several things."""
        answers = await self._coordinators.ask(group_id, ask)
        if any(isinstance(answer, KafkaError) and answer.code in _MOVED for answer in answers.values()):
            self._coordinators.forget(group_id)
        return answers


def _joined(answers: Iterable[Answers[K, R]]) -> dict[K, R | KafkaError]:
    return {key: answer for several in answers for key, answer in several.items()}


def _is_unknown_topic(error: KafkaError) -> bool:
    return error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def outcome(code: int, message: str | None, what: str, name: str) -> KafkaError | None:
    """What a change came to: None if it was made, or an error that names what it concerns.

    >>> print(outcome(0, None, "topic", "orders"))
    None
    >>> print(outcome(44, "too many partitions", "topic", "orders"))  # doctest: +ELLIPSIS
    POLICY_VIOLATION: topic 'orders': too many partitions; ...
    >>> print(outcome(69, None, "group", "readers"))  # doctest: +ELLIPSIS
    GROUP_ID_NOT_FOUND: there is no group 'readers'; ...
    """
    if not code:
        return None
    if code in _MISSING:
        return error_of(code, f"there is no {what} {name!r}")
    if message and name in message:
        return error_of(code, message)
    return error_of(code, f"{what} {name!r}: {message}" if message else f"{what} {name!r}")


def list_of(values: Iterable[R], argument: str) -> list[R]:
    """The values as a list. A single string is refused, which would be taken for the list of its letters.

    >>> list_of("orders", "topics")
    Traceback (most recent call last):
    TypeError: topics is the string 'orders'; give a list, as in topics=['orders']
    """
    if isinstance(values, str):
        raise TypeError(f"{argument} is the string {values!r}; give a list, as in {argument}=[{values!r}]")
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} is {shown(values)}; give a list")
    return list(values)


def names_of(values: Iterable[str], argument: str) -> list[str]:
    """The values, all of which must be names, as a list.

    >>> names_of([b"orders"], "topics")
    Traceback (most recent call last):
    TypeError: topics has b'orders', a bytes; give names, each a str
    """
    names = list_of(values, argument)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument} has {shown(name)}; give names, each a str")
    return names


def places_of(partitions: Iterable[TopicPartition], argument: str = "partitions") -> list[TopicPartition]:
    """Partitions that the user has named, perhaps as plain tuples."""
    return [place_of(one, argument) for one in list_of(partitions, argument)]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions by their topic.

    >>> by_topic([TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("a", 1)])
    {'a': [0, 1], 'b': [0]}
    """
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def lacks(broker: str, what: str) -> KafkaError:
    """The error for a broker that is too old for what was asked of it."""
    return error_of(ErrorCode.UNSUPPORTED_VERSION, f"{broker} is too old for {what}")
