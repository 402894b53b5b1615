"""Offsets of the oldest clients, in both homes of the metadata store."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ottla.cluster.image import TopicImage
from ottla.meta.group_offsets import GroupOffsets, KeptOffset
from ottla.meta.local import LocalHome
from ottla.meta.memory import open_memory
from ottla.meta.sqlite import open_sqlite
from ottla.meta.store import MetaStore
from ottla.wire.errors import KafkaError

ORDERS = TopicImage("orders", bytes(15) + b"1", ())
BILLS = TopicImage("bills", bytes(15) + b"2", ())

Story = Callable[[GroupOffsets], Awaitable[None]]
Tell = Callable[[Story], None]


@pytest.fixture(params=["memory", "sqlite"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Tells a story in a store; one after the other on the same data where it lasts."""
    memory = open_memory()

    async def told(story: Story) -> None:
        home: LocalHome = memory if request.param == "memory" else await open_sqlite(str(tmp_path / "meta.sqlite"))
        store: MetaStore = home.connect()
        await story(GroupOffsets(store))
        await store.close()
        if home is not memory:
            await home.close()

    return lambda story: asyncio.run(told(story))


def test_what_is_committed_is_kept(tell: Tell) -> None:
    async def commit(offsets: GroupOffsets) -> None:
        await offsets.commit(
            "g", [(ORDERS, {0: KeptOffset(1, "a"), 3: KeptOffset(2, "ü")}), (BILLS, {0: KeptOffset(3, "")})]
        )
        await offsets.commit("g", [(ORDERS, {0: KeptOffset(9, "")})])

    async def fetch(offsets: GroupOffsets) -> None:
        assert await offsets.fetch("g", ORDERS) == {0: (9, ""), 3: (2, "ü")}
        assert await offsets.fetch("g", BILLS) == {0: (3, "")}
        assert await offsets.fetch("other", ORDERS) == {}

    tell(commit)
    tell(fetch)


@pytest.mark.parametrize("group_id", ["", ".", "..", "a/b", "%2F", "ü🎉", "x" * 1000, "\ud800", "=", "a b\0c"])
def test_a_group_may_be_called_anything(tell: Tell, group_id: str) -> None:
    async def story(offsets: GroupOffsets) -> None:
        await offsets.commit(group_id, [(ORDERS, {0: KeptOffset(7, "")})])
        await offsets.commit(group_id + "'", [(ORDERS, {0: KeptOffset(8, "")})])
        assert await offsets.fetch(group_id, ORDERS) == {0: (7, "")}

    tell(story)


def test_commits_at_the_same_time_all_count(tell: Tell) -> None:
    async def story(offsets: GroupOffsets) -> None:
        await asyncio.gather(*(offsets.commit("g", [(ORDERS, {index: KeptOffset(index, "")})]) for index in range(20)))
        assert await offsets.fetch("g", ORDERS) == {index: (index, "") for index in range(20)}

    tell(story)


def test_a_topic_made_anew_has_no_offsets_of_the_one_before(tell: Tell) -> None:
    async def story(offsets: GroupOffsets) -> None:
        await offsets.commit("g", [(ORDERS, {0: KeptOffset(7, ""), 1: KeptOffset(8, "")})])
        anew = TopicImage("orders", bytes(15) + b"9", ())
        assert await offsets.fetch("g", anew) == {}
        await offsets.commit("g", [(anew, {0: KeptOffset(1, "")})])
        assert await offsets.fetch("g", anew) == {0: (1, "")}
        assert await offsets.fetch("g", ORDERS) == {}

    tell(story)


def test_more_than_the_store_takes_is_refused_whole(tell: Tell) -> None:
    async def story(offsets: GroupOffsets) -> None:
        await offsets.commit("g", [(ORDERS, {0: KeptOffset(7, "")})])
        large = {index: KeptOffset(1, "x" * 4000) for index in range(300)}
        with pytest.raises(KafkaError, match="INVALID_COMMIT_OFFSET_SIZE"):
            await offsets.commit("g", [(BILLS, {0: KeptOffset(1, "")}), (ORDERS, large)])
        assert await offsets.fetch("g", ORDERS) == {0: (7, "")}
        assert await offsets.fetch("g", BILLS) == {}

    tell(story)
