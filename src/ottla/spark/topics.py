"""Which topics are read: by name, by pattern, or certain partitions."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ottla.client.cluster import Cluster
from ottla.client.errors import ErrorCode, KafkaError, UnknownTopicOrPartitionError, error_of
from ottla.client.types import TopicPartition

Places = list[TopicPartition]


@dataclass(frozen=True, slots=True)
class ByName:
    """The option `subscribe`."""

    names: tuple[str, ...]

    async def find(self, cluster: Cluster, *, may_be_gone: Collection[str] = ()) -> Places:
        """The partitions that there are now. All topics must exist, but for those that may be gone."""
        return await cluster.retrying(lambda: _describe(cluster, self.names, may_be_gone))


@dataclass(frozen=True, slots=True)
class ByPattern:
    """The option `subscribePattern`: a regular expression that matches whole names."""

    pattern: "re.Pattern[str]"
    names: tuple[str, ...] = ()
    """No topic must exist."""

    async def find(self, cluster: Cluster, *, may_be_gone: Collection[str] = ()) -> Places:
        """The partitions that there are now, which may be none: topics may come later. Internal topics do not match."""
        return await cluster.retrying(lambda: self._describe(cluster))

    async def _describe(self, cluster: Cluster) -> Places:
        response = await cluster.metadata(None)
        return sorted(
            TopicPartition(topic.name, one.partition_index)
            for topic in response.topics
            if topic.name is not None and not topic.is_internal and self.pattern.fullmatch(topic.name)
            for one in topic.partitions
        )


@dataclass(frozen=True, slots=True)
class Assigned:
    """The option `assign`."""

    places: tuple[TopicPartition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The topics."""
        return tuple(sorted({place.topic for place in self.places}))

    async def find(self, cluster: Cluster, *, may_be_gone: Collection[str] = ()) -> Places:
        """The partitions. All must exist, but for those of topics that may be gone."""
        there = set(await cluster.retrying(lambda: _describe(cluster, self.names, may_be_gone)))
        if missing := [place for place in self.places if place not in there and place.topic not in may_be_gone]:
            raise UnknownTopicOrPartitionError(f"option assign names partitions that do not exist: {listed(missing)}")
        return [place for place in self.places if place in there]


TopicChoice = ByName | ByPattern | Assigned

_CHOICES = ("subscribe", "subscribePattern", "assign")


def parse_topics(options: Mapping[str, str]) -> TopicChoice:
    """What the options say; exactly one of the three must be given.

    >>> parse_topics({"subscribe": "orders, payments"})
    ByName(names=('orders', 'payments'))
    >>> parse_topics({"subscribe": "orders", "assign": '{"orders": [0]}'})
    Traceback (most recent call last):
    ValueError: options subscribe and assign are both set; set only one of subscribe, subscribePattern and assign
    """
    given = [name for name in _CHOICES if name in options]
    if not given:
        raise ValueError("no topic is chosen; set one of the options subscribe, subscribePattern and assign")
    if len(given) > 1:
        what = " and ".join(given[:2])
        raise ValueError(f"options {what} are both set; set only one of subscribe, subscribePattern and assign")
    (name,) = given
    text = options[name].strip()
    if not text:
        raise ValueError(f"option {name} is empty; say which topics to read")
    if name == "subscribe":
        return ByName(_names(text))
    if name == "subscribePattern":
        return ByPattern(_pattern(text))
    return Assigned(_assigned(text))


def _names(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"option subscribe is {text!r}; write names of topics with commas between")
    return tuple(sorted(set(names)))


def _pattern(text: str) -> "re.Pattern[str]":
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"option subscribePattern is {text!r}, which is no regular expression: {error}") from None


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    wrong = f'option assign is {text!r}; write it as JSON, as {{"orders": [0, 1]}}'
    try:
        topics = json.loads(text)
        places = {TopicPartition(topic, one) for topic, partitions in topics.items() for one in partitions}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(wrong) from None
    if not places or any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for _, one in places):
        raise ValueError(wrong)
    return tuple(sorted(places))


async def _describe(cluster: Cluster, names: Iterable[str], may_be_gone: Collection[str]) -> Places:
    places: Places = []
    for topic in (await cluster.metadata(names)).topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name in may_be_gone:
            continue
        if topic.error_code:
            raise _error_of_topic(topic.error_code, topic.name or "")
        places += [TopicPartition(topic.name or "", one.partition_index) for one in topic.partitions]
    return sorted(places)


def _error_of_topic(code: int, name: str) -> KafkaError:
    unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return error_of(code, f"there is no topic {name!r}" if unknown else f"topic {name!r}")


def listed(places: Iterable[TopicPartition], limit: int = 10) -> str:
    """Partitions in a message.

    >>> listed([TopicPartition("orders", 1), TopicPartition("orders", 0)])
    'orders-0, orders-1'
    """
    names = [f"{topic}-{partition}" for topic, partition in sorted(places)]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
