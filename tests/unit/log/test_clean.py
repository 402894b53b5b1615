import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.clean import Compaction, Dirt, compact, find_dirt, is_due
from ottla.log.log import Log
from ottla.record.batch import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.compression import Codec
from ottla.record.kernels import Record

from .samples import NOW, Place, batch_of, enforce, fill, marker, read_all

DAY_MS = 86_400_000


def put(
    log: Log, *pairs: tuple[str, str | None], codec: Codec = Codec.NONE, timestamp: int = NOW, **fields: int
) -> None:
    written = [
        Record(number, timestamp, key.encode(), None if value is None else value.encode())
        for number, (key, value) in enumerate(pairs)
    ]
    log.append_as_leader(Batch(bytearray(build_batch(written, codec, **fields))), 0)  # type: ignore[arg-type]


def dirt_of(log: Log, now_ms: int = NOW) -> Dirt:
    return find_dirt(log, now_ms, high_watermark=log.end_offset, recovery_point=log.recovery_point)


def clean(place: Place, log: Log, now_ms: int = NOW, **how: int) -> Dirt:
    """Compact all that can be."""
    log.flush()
    dirt = dirt_of(log, now_ms)
    compact(place.disk, log, dirt, now_ms, **how)
    return dirt


def contents(log: Log) -> list[tuple[int, str, str | None]]:
    markers = {batch.base_offset for batch in stored(log) if batch.control}
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in read_all(log)
        if record.offset not in markers
    ]


def stored(log: Log) -> list[Batch]:
    found = []
    for segment in log.segments:
        found += [each for each in batches(segment.file().read_at(0, segment.size)) if isinstance(each, Batch)]
    return found


def compacted(root: Path, **configs: object) -> tuple[Place, Log]:
    place = Place(root, cleanup_policy="compact", **configs)
    return place, place.create()


def test_the_newest_record_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "1"), ("b", "1"), ("a", "2"))
    put(log, ("c", "1"), ("b", "2"))
    log.roll()
    put(log, ("a", "3"))
    clean(place, log)
    assert contents(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "a", "3")]
    assert log.cleaned_offset == 5
    for batch in stored(log):
        batch.validate(gaps=True)


def test_the_segment_that_is_written_to_is_left_alone(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    dirt = clean(place, log)
    assert (dirt.dirty_bytes, dirt.ratio) == (0, 0.0)
    assert len(contents(log)) == 2


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_codec_times_and_epoch(tmp_path: Path, codec: Codec) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "x" * 50), ("b", "x" * 50), codec=codec, timestamp=NOW - 7)
    put(log, ("a", "y"))
    log.roll()
    clean(place, log)
    first = stored(log)[0]
    assert (first.codec, first.base_offset, first.last_offset, first.count) == (codec, 0, 1, 1)
    assert (first.max_timestamp, first.leader_epoch) == (NOW - 7, 0)
    assert contents(log) == [(1, "b", "x" * 50), (2, "a", "y")]


def test_a_batch_of_which_all_stays_is_not_touched(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "1"), ("b", "1"))
    log.roll()
    before = (place.folder / f"{0:020d}.log").read_bytes()
    clean(place, log)
    assert (place.folder / f"{0:020d}.log").read_bytes() == before


def test_a_tombstone_goes_when_its_time_has_come(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, delete_retention_ms=DAY_MS)
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), ("c", "1"))
    log.roll()
    clean(place, log)
    assert contents(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    assert [batch.delete_horizon_ms for batch in stored(log)] == [None, NOW + DAY_MS]
    put(log, ("z", "1"))
    log.roll()
    clean(place, log, NOW + DAY_MS - 1)
    assert (2, "a", None) in contents(log)
    assert [record.timestamp for record in read_all(log)] == [NOW] * 4
    put(log, ("z", "2"))
    log.roll()
    clean(place, log, NOW + DAY_MS)
    assert [key for _, key, _ in contents(log)] == ["b", "c", "z"]


def test_young_segments_wait_for_the_compaction_lag(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, min_compaction_lag_ms=1_000)
    put(log, ("a", "1"), timestamp=NOW - 5_000)
    put(log, ("a", "2"), timestamp=NOW - 5_000)
    log.roll()
    put(log, ("a", "3"), timestamp=NOW - 500)
    log.roll()
    put(log, ("a", "4"), timestamp=NOW - 5_000)
    log.roll()
    dirt = clean(place, log)
    assert dirt.end == 2
    assert [value for _, _, value in contents(log)] == ["2", "3", "4"]


def test_a_log_is_due_when_enough_of_it_is_dirty_or_has_waited_too_long(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, min_cleanable_dirty_ratio=0.5, max_compaction_lag_ms=DAY_MS)
    fill(log, 1)
    assert not is_due(log, dirt_of(log))
    for number in range(10):
        put(log, (f"key {number}", "x" * 100))
    log.roll()
    log.flush()
    assert is_due(log, dirt_of(log))
    clean(place, log)
    assert not is_due(log, dirt_of(log))
    put(log, ("key 1", "y"))
    log.roll()
    log.flush()
    dirt = dirt_of(log)
    assert 0 < dirt.ratio < 0.5
    assert not is_due(log, dirt)
    assert is_due(log, dirt_of(log, NOW + DAY_MS + 1))
    log.config = Place(tmp_path / "x").config
    assert not is_due(log, dirt_of(log, NOW + DAY_MS + 1))


def test_what_is_not_synced_or_not_committed_is_not_compacted(tmp_path: Path) -> None:
    _, log = compacted(tmp_path)
    for number in range(3):
        put(log, ("a", str(number)))
        log.roll()
    assert dirt_of(log).end == 0
    log.flush()
    assert dirt_of(log).end == 3
    assert find_dirt(log, NOW, high_watermark=2, recovery_point=3).end == 2
    assert find_dirt(log, NOW, high_watermark=3, recovery_point=1).end == 1


def test_small_segments_become_one(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, index_interval_bytes=0)
    for number in range(6):
        put(log, ("same", str(number)), (f"own {number}", "x"))
        log.roll()
    clean(place, log)
    assert [segment.base_offset for segment in log.segments] == [0, 12]
    assert [key for _, key, _ in contents(log)] == [*(f"own {number}" for number in range(5)), "same", "own 5"]
    log.remove_retired(2**62)
    assert place.names(".log") == [f"{0:020d}.log", f"{12:020d}.log"]
    for offset in range(11):
        assert read_all(log, offset)[0].offset >= offset
    assert place.recover(12).end_offset == 12
    assert place.recover(0).end_offset == 12


def test_segments_become_no_larger_than_they_may_be(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, segment_bytes=1_048_576)
    for number in range(8):
        put(log, (f"key {number}", "x" * 400_000))
    clean(place, log)
    assert all(segment.size <= 1_048_576 for segment in log.segments)
    assert len(contents(log)) == 8


def test_the_last_batch_of_a_producer_stays_as_a_shell(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    for number in range(3):
        put(log, ("a", str(number)), producer_id=7, producer_epoch=1, base_sequence=number)
    put(log, ("a", "other"))
    log.roll()
    clean(place, log)
    assert [(each.base_offset, each.count, each.base_sequence) for each in stored(log)] == [(2, 0, 2), (3, 1, -1)]
    for name in place.names(".snapshot"):
        (place.folder / name).unlink()
    recovered = place.recover()
    state = recovered.producers.states[7]
    assert (state.epoch, state.last_sequence, state.last_offset) == (1, 2, 2)
    again = batch_of("x", producer=(7, 1, 2), key=b"a")
    assert recovered.append_as_leader(again, 0).duplicate


def test_a_producers_last_batch_stays_though_it_has_written_more_since_that_may_not_be_synced(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "1"), producer_id=7, producer_epoch=1, base_sequence=0)
    put(log, ("a", "2"), producer_id=7, producer_epoch=1, base_sequence=1)
    log.roll()
    put(log, ("a", "3"))
    log.roll()
    log.flush()
    recovery_point = log.recovery_point
    put(log, ("b", "1"), producer_id=7, producer_epoch=1, base_sequence=2)
    compact(place.disk, log, find_dirt(log, NOW, high_watermark=4, recovery_point=recovery_point), NOW)
    assert [(each.base_offset, each.count) for each in stored(log)] == [(1, 0), (2, 1), (3, 1)]
    for name in (f"{3:020d}.log", *place.names(".snapshot")):
        (place.folder / name).write_bytes(b"")
    state = place.recover(recovery_point).producers.states[7]
    assert (state.last_sequence, state.last_offset) == (1, 1)


def test_an_empty_shell_is_not_found_by_time(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "1"), timestamp=NOW - 5)
    put(log, ("b", "1"), timestamp=NOW - 2, producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, ("b", "2"), timestamp=NOW - 9)
    log.roll()
    clean(place, log)
    assert [batch.count for batch in stored(log)] == [1, 0, 1]
    assert log.max_timestamp() == (0, NOW - 5, 0)
    assert log.offset_for_time(NOW - 5) == (0, NOW - 5, 0)
    assert log.offset_for_time(NOW - 4) is None


def test_readers_in_threads_do_not_notice_that_segments_are_replaced(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, index_interval_bytes=200)
    stop = threading.Event()
    problems: list[BaseException] = []
    passes = 0

    def follow() -> None:
        nonlocal passes
        try:
            while not stop.is_set():
                end = log.end_offset
                offset = log.start_offset
                own = set()
                while (piece := log.read(offset, 2_000, end=end)) is not None:
                    for batch in batches(piece.read()):
                        assert isinstance(batch, Batch)
                        batch.check_crc()
                        own |= {record.key for record in records(batch)}
                        offset = batch.next_offset
                assert {b"own %d" % number for number in range(end // 2)} <= own
                passes += 1
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            problems.append(error)

    threads = [threading.Thread(target=follow) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(200):
        put(log, ("same", str(number)), (f"own {number}", "x"))
        if number % 5 == 4:
            log.roll()
        if number % 20 == 19:
            clean(place, log)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not problems
    assert passes > 2


def test_aborted_records_go_and_markers_stay_until_their_time(tmp_path: Path) -> None:
    place, log = compacted(tmp_path, delete_retention_ms=DAY_MS)
    put(log, ("a", "kept"))
    for producer_id, commit in ((1, False), (2, True)):
        put(
            log,
            ("a" if not commit else "b", "tried"),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        log.append_as_leader(marker(producer_id, 0, commit=commit), 0)
    log.expire_producers(NOW + 1)
    log.roll()
    clean(place, log)
    assert contents(log) == [(0, "a", "kept"), (3, "b", "tried")]
    assert [each.base_offset for each in stored(log) if each.control] == [2, 4]
    # The aborted transaction has left no batch: its marker gets a time, and then goes. The other's stays with its data.
    for step in (1, 2, 3):
        put(log, ("z", str(step)))
        log.roll()
        clean(place, log, NOW + step * DAY_MS)
        horizons = {each.base_offset: each.delete_horizon_ms for each in stored(log) if each.control}
        assert horizons == ({2: NOW + 2 * DAY_MS, 4: None} if step == 1 else {4: None})


def test_an_open_transaction_holds_compaction_up(tmp_path: Path) -> None:
    _, log = compacted(tmp_path)
    put(log, ("a", "1"))
    log.roll()
    put(log, ("a", "2"), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll()
    log.flush()
    assert dirt_of(log).end == 1


def test_a_small_map_means_several_rounds(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    for number in range(20):
        put(log, (f"key {number % 10}", str(number)))
    log.roll()
    clean(place, log, map_bytes=1_000)
    assert 0 < log.cleaned_offset < 20
    while log.cleaned_offset < 20:
        clean(place, log, map_bytes=1_000)
    assert [value for _, _, value in contents(log)] == [str(number) for number in range(10, 20)]


def test_retention_may_be_faster(tmp_path: Path) -> None:
    place, log = compacted(tmp_path)
    put(log, ("a", "1"))
    log.roll()
    put(log, ("a", "2"))
    log.roll()
    log.flush()
    compaction = Compaction(place.disk, log, dirt_of(log), NOW)
    compaction.build_map()
    (group,) = compaction.groups()
    state = compaction.rewrite(group)
    log.delete_before(1)
    enforce(log, NOW)
    assert not log.replace_segments(group, state)
    assert place.names(".swap") == []
    assert contents(log) == [(1, "a", "2")]


def test_a_crash_at_any_step_of_the_replacement_keeps_old_or_new(tmp_path: Path) -> None:
    place, log = compacted(tmp_path / "a", index_interval_bytes=0)
    for number in range(9):
        put(log, ("same", str(number)), (f"own {number}", "x"))
        if number % 3 == 2:
            log.roll()
    put(log, ("last", "x"))
    log.flush()
    before = contents(log)
    copies: list[Place] = []
    rename, remove = place.disk.rename, place.disk.remove

    def recorded_rename(old: str, new: str) -> None:
        copies.append(place.crash(tmp_path / f"copy {len(copies)}"))
        rename(old, new)

    def recorded_remove(name: str) -> None:
        copies.append(place.crash(tmp_path / f"copy {len(copies)}"))
        remove(name)

    place.disk.rename, place.disk.remove = recorded_rename, recorded_remove  # type: ignore[method-assign]
    compact(place.disk, log, dirt_of(log), NOW)
    after = contents(log)
    assert len(copies) > 10
    outcomes = []
    for copy in copies:
        recovered = copy.recover(log.recovery_point)
        found = contents(recovered)
        assert found in (before, after)
        outcomes.append(found == after)
        assert recovered.recovery is not None
        assert recovered.recovery.cuts == []
        put(recovered, ("more", "x"))
        assert contents(recovered)[-1] == (19, "more", "x")
    assert outcomes == sorted(outcomes)
    assert not outcomes[0]
    assert outcomes[-1]


def test_a_merged_segment_that_comes_back_after_a_power_cut_is_dropped(tmp_path: Path) -> None:
    place, log = compacted(tmp_path / "a")
    for number in range(3):
        put(log, ("same", str(number)), (f"own {number}", "x"))
        log.roll()
    log.flush()
    ghost = (place.folder / f"{2:020d}.log").read_bytes()
    clean(place, log)
    (place.folder / f"{2:020d}.log").write_bytes(ghost)
    recovered = place.recover(6)
    assert contents(recovered) == contents(log)
    assert [segment.base_offset for segment in recovered.segments] == [0, 6]


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.lists(
                st.tuples(st.sampled_from("abcdef"), st.none() | st.text("xyz", max_size=3)), min_size=1, max_size=4
            ),
            st.sampled_from(["roll", "clean", "restart", "crash"]),
        ),
        max_size=30,
    )
)
def test_whatever_happens_the_newest_value_of_each_key_is_there(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[list[tuple[str, str | None]] | str],
) -> None:
    place, log = compacted(tmp_path_factory.mktemp("log"), delete_retention_ms=0, index_interval_bytes=100)
    newest: dict[str, tuple[int, str | None]] = {}
    now_ms = NOW
    for step in steps:
        if step == "roll":
            log.roll()
        elif step == "clean":
            now_ms += 10
            clean(place, log, now_ms)
        elif step == "restart":
            log = place.reopen(log)
        elif step == "crash":
            log = place.recover(log.recovery_point)
        elif isinstance(step, list):
            for number, (key, value) in enumerate(step):
                newest[key] = (log.end_offset + number, value)
            put(log, *step)
    offsets = [offset for offset, _, _ in contents(log)]
    assert offsets == sorted(set(offsets))
    found = {key: (offset, value) for offset, key, value in contents(log)}
    for key, (offset, value) in newest.items():
        if value is not None:
            assert found[key] == (offset, value)
        else:
            assert found.get(key) in (None, (offset, None))
