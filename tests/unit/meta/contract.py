"""What every home of the metadata store must do; a home's tests inherit from `StoreContract` and say how to open it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from ottla.meta.store import (
    LARGEST_COMMIT,
    LONGEST_BACKLOG,
    Change,
    Changes,
    Check,
    Conflict,
    Create,
    Delete,
    Entry,
    MetaStore,
    SessionLostError,
    Set,
    TooLargeError,
    Watch,
)

PATIENCE_S = 10.0


class Home(Protocol):
    """Sessions over the same entries."""

    async def connect(self) -> MetaStore: ...

    async def expire(self, session: MetaStore) -> None:
        """Make the store drop a session that is still in use."""
        ...

    async def close(self) -> None: ...


Story = Callable[[Home], Awaitable[None]]

CONFLICTS: dict[str, tuple[Change, ...]] = {
    "creating what is there": (Create("/a", b"new"),),
    "creating without an entry above": (Create("/b/c", b""),),
    "setting what is not there": (Set("/b", b"", 0),),
    "setting an older version": (Set("/a", b"new", 0),),
    "setting a version yet to come": (Set("/a", b"new", 2),),
    "deleting what is not there": (Delete("/b", 0),),
    "deleting an older version": (Delete("/a/child", 7),),
    "deleting with entries below": (Delete("/a", 1),),
    "checking what is not there": (Check("/b", 0),),
    "checking another version": (Check("/a", 0),),
    "setting twice with the same version": (Set("/a", b"1", 1), Set("/a", b"2", 1)),
}


async def next_of(watch: Watch) -> Changes:
    return await asyncio.wait_for(anext(watch), PATIENCE_S)


async def changed(watch: Watch, *paths: str) -> None:
    """Wait until the watch has told of these paths and no others, in one go or in several."""
    seen: set[str] = set()
    while seen != set(paths):
        changes = await next_of(watch)
        assert not changes.everything
        seen |= changes.paths
        assert seen <= set(paths)


async def caught_up(session: MetaStore, path: str) -> Watch:
    """A watch that has asked for everything to be read, as each does first."""
    watch = session.watch(path)
    assert await next_of(watch) == Changes(frozenset(), everything=True)
    return watch


class StoreContract(ABC):
    """The contract as tests."""

    @abstractmethod
    async def open(self, folder: Path) -> Home:
        """An empty store."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def run(self, story: Story) -> None:
        async def told() -> None:
            home = await self.open(self.folder)
            try:
                await story(home)
            finally:
                await home.close()

        asyncio.run(told())

    def test_an_entry_starts_at_version_0_and_each_change_adds_one(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b"first"))
            assert await store.get("/a") == Entry(b"first", 0)
            await store.commit(Set("/a", b"second", 0))
            await store.commit(Set("/a", b"", 1))
            assert await store.get("/a") == Entry(b"", 2)

        self.run(story)

    def test_what_is_not_there_is_none_and_has_nothing_below(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            assert await store.get("/a") is None
            assert await store.children("/a") == []
            assert await store.entries("/a") == {}

        self.run(story)

    def test_children_are_the_sorted_names_right_below(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b""), Create("/ab", b""), Create("/a/2", b"two"), Create("/a/10", b"ten"))
            await store.commit(Create("/a/10/deep", b""))
            assert await store.children("/a") == ["10", "2"]
            assert await store.entries("/a") == {"10": Entry(b"ten", 0), "2": Entry(b"two", 0)}
            assert {"a", "ab"} <= set(await store.children("/"))

        self.run(story)

    def test_one_commit_sees_its_own_changes(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(
                Create("/a", b"1"), Create("/a/b", b""), Set("/a", b"2", 0), Check("/a", 1), Delete("/a/b", 0)
            )
            assert await store.get("/a") == Entry(b"2", 1)
            assert await store.children("/a") == []

        self.run(story)

    @pytest.mark.parametrize("changes", CONFLICTS.values(), ids=CONFLICTS.keys())
    def test_a_conflict_names_the_path_and_undoes_the_whole_commit(self, changes: tuple[Change, ...]) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b"old"), Create("/a/child", b"old"))
            await store.commit(Set("/a", b"old", 0))
            watch = await caught_up(store, "/")
            with pytest.raises(Conflict) as caught:
                await store.commit(Create("/other", b""), Set("/a/child", b"new", 0), *changes)
            assert caught.value.path == changes[-1].path
            assert caught.value.path in str(caught.value)
            assert await store.get("/a") == Entry(b"old", 1)
            assert await store.entries("/a") == {"child": Entry(b"old", 0)}
            assert await store.get("/other") is None
            await store.commit(Create("/next", b""))
            await changed(watch, "/next")

        self.run(story)

    def test_an_entry_made_again_starts_over(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b"1"))
            await store.commit(Set("/a", b"2", 0))
            await store.commit(Delete("/a", 1))
            assert await store.get("/a") is None
            await store.commit(Create("/a", b"3"))
            assert await store.get("/a") == Entry(b"3", 0)

        self.run(story)

    def test_of_changes_that_expect_the_same_version_one_wins(self) -> None:
        async def story(home: Home) -> None:
            one, other = await home.connect(), await home.connect()
            await one.commit(Create("/a", b""))
            attempts = [store.commit(Set("/a", b"%d" % n, 0)) for n, store in enumerate([one, other] * 5)]
            outcomes = await asyncio.gather(*attempts, return_exceptions=True)
            assert outcomes.count(None) == 1
            assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 9
            assert await one.get("/a") == Entry(b"%d" % outcomes.index(None), 1)

        self.run(story)

    def test_a_counter_loses_no_step_when_many_count(self) -> None:
        async def count(store: MetaStore) -> None:
            while True:
                entry = await store.get("/n")
                assert entry is not None
                try:
                    return await store.commit(Set("/n", b"%d" % (int(entry.value) + 1), entry.version))
                except Conflict:
                    continue

        async def story(home: Home) -> None:
            one, other = await home.connect(), await home.connect()
            await one.commit(Create("/n", b"0"))
            await asyncio.gather(*(count(store) for store in [one, other] * 10))
            assert await other.get("/n") == Entry(b"20", 20)

        self.run(story)

    def test_values_of_nearly_1_mb_are_kept_and_larger_commits_refused(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            largest = bytes(range(250)) * (LARGEST_COMMIT // 250)
            await store.commit(Create("/a", largest))
            assert await store.get("/a") == Entry(largest, 0)
            with pytest.raises(TooLargeError, match="1000001 bytes"):
                await store.commit(Set("/a", largest, 0), Create("/b", b"x"))
            assert await store.get("/b") is None

        self.run(story)

    @pytest.mark.parametrize("path", ["", "/", "a", "/a/", "//a", "/a/../b", "/./a"])
    def test_a_malformed_path_is_refused(self, path: str) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            with pytest.raises(ValueError, match="is no path"):
                await store.commit(Create(path, b""))
            with pytest.raises(ValueError, match="is no path"):
                await store.get(path)

        self.run(story)

    def test_a_watch_tells_of_every_kind_of_change_below_its_path_and_of_no_other(self) -> None:
        async def story(home: Home) -> None:
            reader, writer = await home.connect(), await home.connect()
            await writer.commit(Create("/a", b""), Create("/ab", b""), Create("/a/old", b""))
            watch = await caught_up(reader, "/a")
            await writer.commit(Create("/a/new", b""), Create("/ab/c", b""))
            await changed(watch, "/a/new")
            await writer.commit(Set("/a/old", b"x", 0), Set("/ab", b"x", 0))
            await changed(watch, "/a/old")
            await writer.commit(Delete("/a/old", 1), Set("/a", b"x", 0))
            await changed(watch, "/a/old", "/a")

        self.run(story)

    def test_whoever_is_told_of_a_change_reads_it(self) -> None:
        async def story(home: Home) -> None:
            reader, writer = await home.connect(), await home.connect()
            await writer.commit(Create("/a", b"0"))
            watch = await caught_up(reader, "/a")
            for step in range(5):
                await writer.commit(Set("/a", b"%d" % (step + 1), step))
                await changed(watch, "/a")
                assert await reader.get("/a") == Entry(b"%d" % (step + 1), step + 1)

        self.run(story)

    def test_a_slow_reader_is_asked_to_read_everything_again(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b""))
            watch = await caught_up(store, "/a")
            for start in range(0, LONGEST_BACKLOG + 100, 100):
                await store.commit(*(Create(f"/a/{start + n}", b"") for n in range(100)))
            while not (await next_of(watch)).everything:
                pass
            assert len(await store.children("/a")) == LONGEST_BACKLOG + 100
            await store.commit(Set("/a/0", b"x", 0))
            while "/a/0" not in (await next_of(watch)).paths:
                pass

        self.run(story)

    def test_a_closed_watch_ends(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            watch = await caught_up(store, "/")
            watch.close()
            assert [changes async for changes in watch] == []

        self.run(story)

    @pytest.mark.parametrize("how", ["closed", "lost"])
    def test_ephemeral_entries_go_with_their_session(self, how: str) -> None:
        async def story(home: Home) -> None:
            short, other = await home.connect(), await home.connect()
            await other.commit(Create("/brokers", b""))
            await short.commit(Create("/brokers/1", b"", ephemeral=True), Create("/brokers/stays", b""))
            await other.commit(Create("/brokers/2", b"", ephemeral=True))
            await short.commit(Set("/brokers/1", b"changed", 0))
            watch = await caught_up(other, "/brokers")
            await (short.close() if how == "closed" else home.expire(short))
            await changed(watch, "/brokers/1")
            assert await other.children("/brokers") == ["2", "stays"]

        self.run(story)

    def test_ephemeral_entries_go_although_others_change_them_meanwhile(self) -> None:
        async def story(home: Home) -> None:
            short, other = await home.connect(), await home.connect()
            await short.commit(Create("/1", b"", ephemeral=True), Create("/2", b"", ephemeral=True))
            await asyncio.gather(
                home.expire(short),
                other.commit(Set("/1", b"x", 0)),
                other.commit(Delete("/2", 0)),
                return_exceptions=True,
            )
            assert await other.get("/1") is None
            assert await other.get("/2") is None

        self.run(story)

    def test_an_ephemeral_entry_has_none_below_it(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b"", ephemeral=True))
            with pytest.raises(Conflict) as caught:
                await store.commit(Create("/a/b", b""))
            assert caught.value.path == "/a/b"

        self.run(story)

    def test_a_lost_session_says_so_everywhere(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.commit(Create("/a", b""))
            watch = await caught_up(store, "/")
            assert not store.lost.is_set()
            await home.expire(store)
            await asyncio.wait_for(store.lost.wait(), PATIENCE_S)
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: store.get("/a"),
                lambda: store.children("/"),
                lambda: store.entries("/"),
                lambda: store.commit(Set("/a", b"x", 0)),
                lambda: next_of(watch),
            ]
            for call in calls:
                with pytest.raises(SessionLostError):
                    await call()
            with pytest.raises(SessionLostError):
                store.watch("/")
            assert await (await home.connect()).get("/a") == Entry(b"", 0)

        self.run(story)

    def test_a_session_can_be_closed_twice(self) -> None:
        async def story(home: Home) -> None:
            store = await home.connect()
            await store.close()
            await store.close()
            assert store.lost.is_set()

        self.run(story)
