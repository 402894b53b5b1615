"""What Ottla keeps in the metadata store."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.cluster.image import PartitionImage, TopicImage
from ottla.meta.catalog import MOST_TOPICS_PER_COMMIT, PRODUCER_ID_BLOCK, Catalog, topic_path
from ottla.meta.local import LocalHome
from ottla.meta.memory import open_memory
from ottla.meta.sqlite import open_sqlite
from ottla.meta.store import LARGEST_COMMIT, Change, Create, Set, StoreError
from ottla.ports import SystemChance
from ottla.wire.errors import ErrorCode, KafkaError

chance = SystemChance()


def partitions(count: int, first: int = 0) -> tuple[PartitionImage, ...]:
    return tuple(PartitionImage(index, 1, 0, (1, 2), (1,), 3) for index in range(first, first + count))


def topic(name: str, count: int = 2, **configs: str) -> TopicImage:
    dotted = {config.replace("_", "."): text for config, text in configs.items()}
    return TopicImage(name, chance.uuid(), partitions(count), dotted)


def with_catalog(story: Callable[[Catalog], Awaitable[None]]) -> None:
    async def told() -> None:
        await story(await Catalog.open(open_memory().connect(), chance))

    asyncio.run(told())


async def code_of(call: Awaitable[object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await call
    return caught.value.code


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    file = str(tmp_path / "meta.sqlite")
    orders = topic("orders", 3, retention_ms="5000")

    async def first() -> str:
        home = await open_sqlite(file)
        catalog = await Catalog.open(home.connect(), chance)
        await catalog.create_topic(orders)
        await catalog.create_topic(topic("gone"))
        await catalog.delete_topic("gone", (await catalog.load()).topics["gone"].topic_id)
        await catalog.alter_broker_configs(None, lambda configs: {"log.retention.ms": "1"})
        await catalog.allocate_producer_ids()
        await home.close()
        return catalog.cluster_id

    async def second() -> None:
        home = await open_sqlite(file)
        catalog = await Catalog.open(home.connect(), chance)
        image = await catalog.load()
        assert image.cluster_id == cluster_id
        assert image.topics == {"orders": orders}
        assert image.topic_by_id(orders.topic_id) == orders
        assert await catalog.load_broker_configs(None) == {"log.retention.ms": "1"}
        assert await catalog.allocate_producer_ids() == range(PRODUCER_ID_BLOCK, 2 * PRODUCER_ID_BLOCK)
        await home.close()

    cluster_id = asyncio.run(first())
    asyncio.run(second())


def test_the_cluster_id_is_made_once_however_many_begin_at_once(tmp_path: Path) -> None:
    async def begin(home: LocalHome) -> None:
        catalogs = await asyncio.gather(*(Catalog.open(home.connect(), chance) for _ in range(10)))
        (cluster_id,) = {catalog.cluster_id for catalog in catalogs}
        assert re.fullmatch(r"[A-Za-z0-9_-]{22}", cluster_id)
        await home.close()

    async def main() -> None:
        await begin(open_memory())
        await begin(await open_sqlite(str(tmp_path / "meta.sqlite")))

    asyncio.run(main())


def test_a_topic_is_created_once() -> None:
    async def story(catalog: Catalog) -> None:
        outcomes = await asyncio.gather(
            *(catalog.create_topic(topic("orders")) for _ in range(5)), return_exceptions=True
        )
        (created,) = [outcome for outcome in outcomes if isinstance(outcome, TopicImage)]
        codes = [outcome.code for outcome in outcomes if isinstance(outcome, KafkaError)]
        assert codes == [ErrorCode.TOPIC_ALREADY_EXISTS] * 4
        assert (await catalog.load()).topics["orders"].topic_id == created.topic_id

    with_catalog(story)


@pytest.mark.parametrize("count", [1, 99, 100, 101, 250])
def test_many_topics_are_created_with_few_commits(count: int) -> None:
    async def story(catalog: Catalog) -> None:
        commits: list[int] = []
        commit = catalog.store.commit

        async def counted(*changes: Change) -> None:
            commits.append(len(changes))
            await commit(*changes)

        catalog.store.commit = counted  # type: ignore[method-assign]
        wanted = [topic(f"t{number}") for number in range(count)]
        assert await catalog.create_topics(wanted) == [None] * count
        assert sum(commits) == count
        assert len(commits) == -(-count // MOST_TOPICS_PER_COMMIT)
        assert dict((await catalog.load()).topics) == {one.name: one for one in wanted}

    with_catalog(story)


def test_of_many_topics_each_fails_for_itself() -> None:
    async def story(catalog: Catalog) -> None:
        await catalog.create_topic(topic("there"))
        huge = topic("huge", 1, comment="x" * LARGEST_COMMIT)
        wanted = [topic("first"), topic("there"), topic("a.b"), topic("a_b"), huge, topic("last")]
        outcomes = await catalog.create_topics(wanted)
        assert [outcome and outcome.code for outcome in outcomes] == [
            None,
            ErrorCode.TOPIC_ALREADY_EXISTS,
            None,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_REQUEST,
            None,
        ]
        assert sorted((await catalog.load()).topics) == ["a.b", "first", "last", "there"]

    with_catalog(story)


def test_topics_that_together_are_too_large_for_a_commit_are_created_with_several() -> None:
    async def story(catalog: Catalog) -> None:
        wanted = [topic(f"t{number}", 1, comment="x" * (LARGEST_COMMIT // 3)) for number in range(7)]
        assert await catalog.create_topics(wanted) == [None] * 7
        assert len((await catalog.load()).topics) == 7

    with_catalog(story)


def test_names_that_metrics_cannot_tell_apart_collide() -> None:
    async def story(catalog: Catalog) -> None:
        await catalog.create_topic(topic("orders.eu"))
        with pytest.raises(KafkaError, match=r"'orders_eu' collides with 'orders\.eu'") as caught:
            await catalog.create_topic(topic("orders_eu"))
        assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        missing = catalog.delete_topic("orders_eu", bytes(16))
        assert await code_of(missing) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert list((await catalog.load()).topics) == ["orders.eu"]

    with_catalog(story)


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 250])
def test_no_topic_has_an_impossible_name(name: str) -> None:
    async def story(catalog: Catalog) -> None:
        assert await code_of(catalog.create_topic(topic(name))) is ErrorCode.INVALID_TOPIC_EXCEPTION

    with_catalog(story)


def test_a_topic_made_again_is_another_topic() -> None:
    async def story(catalog: Catalog) -> None:
        former, later = topic("orders"), topic("orders")
        await catalog.create_topic(former)
        await catalog.delete_topic("orders", former.topic_id)
        await catalog.create_topic(later)
        for call in (
            catalog.delete_topic("orders", former.topic_id),
            catalog.add_partitions("orders", former.topic_id, partitions(1, 2)),
            catalog.alter_topic_configs("orders", former.topic_id, lambda configs: {"retention.ms": "1"}),
        ):
            assert await code_of(call) is ErrorCode.UNKNOWN_TOPIC_ID
        assert (await catalog.load()).topics["orders"] == later

    with_catalog(story)


def test_partitions_are_added_once_when_two_add_them() -> None:
    async def story(catalog: Catalog) -> None:
        orders = await catalog.create_topic(topic("orders", 2))
        add = [catalog.add_partitions("orders", orders.topic_id, partitions(3, 2)) for _ in range(2)]
        outcomes = await asyncio.gather(*add, return_exceptions=True)
        assert sum(isinstance(outcome, KafkaError) for outcome in outcomes) == 1
        assert (await catalog.load()).topics["orders"].partitions == partitions(5)

    with_catalog(story)


def test_no_change_is_lost_when_many_change_a_topic(tmp_path: Path) -> None:
    async def main() -> None:
        home = await open_sqlite(str(tmp_path / "meta.sqlite"))
        catalogs = [await Catalog.open(home.connect(), chance) for _ in range(2)]
        orders = await catalogs[0].create_topic(topic("orders"))

        async def add(catalog: Catalog, number: int) -> None:
            await catalog.alter_topic_configs("orders", orders.topic_id, lambda set: {**set, f"config.{number}": "x"})

        await asyncio.gather(*(add(catalogs[number % 2], number) for number in range(20)))
        loaded = (await catalogs[0].load()).topics["orders"]
        assert set(loaded.configs) == {f"config.{number}" for number in range(20)}
        await home.close()

    asyncio.run(main())


def test_a_change_that_fails_its_own_check_changes_nothing() -> None:
    async def story(catalog: Catalog) -> None:
        orders = await catalog.create_topic(topic("orders"))

        def refuse(current: TopicImage) -> TopicImage:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "no")

        assert await code_of(catalog.change_topic("orders", orders.topic_id, refuse)) is ErrorCode.INVALID_CONFIG
        assert (await catalog.load()).topics["orders"] == orders

    with_catalog(story)


def test_a_change_to_the_same_writes_nothing() -> None:
    async def story(catalog: Catalog) -> None:
        orders = await catalog.create_topic(topic("orders"))
        await catalog.change_topic("orders", orders.topic_id, lambda current: replace(current))
        entry = await catalog.store.get(topic_path("orders"))
        assert entry is not None
        assert entry.version == 0

    with_catalog(story)


def test_no_producer_id_is_handed_out_twice(tmp_path: Path) -> None:
    async def main() -> None:
        home = await open_sqlite(str(tmp_path / "meta.sqlite"))
        catalogs = [await Catalog.open(home.connect(), chance) for _ in range(2)]
        blocks = await asyncio.gather(*(catalogs[n % 2].allocate_producer_ids() for n in range(20)))
        handed_out = [producer_id for block in blocks for producer_id in block]
        assert len(set(handed_out)) == len(handed_out) == 20 * PRODUCER_ID_BLOCK
        await home.close()

    asyncio.run(main())


def test_broker_configs_are_kept_per_broker_and_for_all() -> None:
    async def story(catalog: Catalog) -> None:
        await catalog.alter_broker_configs(None, lambda configs: {"message.max.bytes": "1"})
        await catalog.alter_broker_configs(7, lambda configs: {**configs, "message.max.bytes": "2"})
        await catalog.alter_broker_configs(7, lambda configs: {**configs, "log.retention.ms": "3"})
        assert await catalog.load_broker_configs(None) == {"message.max.bytes": "1"}
        assert await catalog.load_broker_configs(7) == {"message.max.bytes": "2", "log.retention.ms": "3"}
        assert await catalog.load_broker_configs(8) == {}
        assert await catalog.list_broker_configs() == [7, None]
        assert await catalog.alter_broker_configs(7, lambda configs: {}) == {}
        await catalog.alter_broker_configs(8, lambda configs: {})
        assert await catalog.list_broker_configs() == [None]

    with_catalog(story)


def test_a_topic_that_is_too_large_for_the_store_is_refused() -> None:
    async def story(catalog: Catalog) -> None:
        wide = tuple(PartitionImage(index, 1, 0, tuple(range(30)), tuple(range(30))) for index in range(10_000))
        with pytest.raises(KafkaError, match="ask for fewer partitions") as caught:
            await catalog.create_topic(TopicImage("wide", chance.uuid(), wide))
        assert caught.value.code is ErrorCode.INVALID_REQUEST
        largest = TopicImage("largest", chance.uuid(), partitions(10_000))
        await catalog.create_topic(largest)
        assert (await catalog.load()).topics == {"largest": largest}

    with_catalog(story)


def test_what_this_version_does_not_read_is_refused_by_path() -> None:
    async def story(catalog: Catalog) -> None:
        orders = await catalog.create_topic(topic("orders"))
        entry = await catalog.store.get(topic_path("orders"))
        assert entry is not None
        later = json.dumps({**json.loads(entry.value), "format": 2}).encode()
        await catalog.store.commit(Set(topic_path("orders"), later, 0))
        with pytest.raises(StoreError, match="/topics/orders is in format 2"):
            await catalog.load()
        await catalog.store.commit(Set(topic_path("orders"), b"garbage", 1))
        with pytest.raises(StoreError, match="/topics/orders holds b'garbage'"):
            await catalog.delete_topic("orders", orders.topic_id)
        await catalog.store.commit(Create("/topics/half", b'{"format":1,"name":"half"}'))
        with pytest.raises(StoreError, match=r"/topics/half holds .* no topic"):
            await catalog.change_topic("half", bytes(16), lambda current: current)

    with_catalog(story)
