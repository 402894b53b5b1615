"""What the broker does by itself: compaction, retention, syncing."""

import pytest

from ottla.record import Batch, Record, batches, build_batch, records
from ottla.testing import TestBroker
from tests.interop.raw_client import RawClient
from tests.waiting import until

from .test_error_codes import NOW_MS, create, list_offsets, produce


@pytest.fixture
def settings() -> dict[str, str]:
    return {"log.cleaner.backoff.ms": "50", "log.retention.check.interval.ms": "50"}


def read(client: RawClient, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    found = []
    for batch in batches(client.read_log(topic)):
        assert isinstance(batch, Batch)
        found += [(record.offset, record.key, record.value) for record in records(batch)]
    return found


def test_a_compacted_topic_keeps_the_newest_record_of_each_key(broker: TestBroker, client: RawClient) -> None:
    create(
        client,
        "t",
        cleanup_policy="compact",
        segment_bytes="2000",
        min_cleanable_dirty_ratio="0.01",
    )
    for number in range(60):
        batch = build_batch([Record(0, NOW_MS, b"key-%d" % (number % 3), b"%050d" % number)])
        assert produce(client, "t", batch).error_code == 0
    before = client.offset("t", -1)

    def compacted() -> bool:
        kept = read(client, "t")
        return len(kept) < 40 and {key for _, key, _ in kept} == {b"key-0", b"key-1", b"key-2"}

    until(compacted, "the log is compacted")
    assert client.offset("t", -1) == before, "offsets stay"
    newest = {key: value for _, key, value in read(client, "t")}
    assert newest == {b"key-%d" % (number % 3): b"%050d" % number for number in range(57, 60)}
    broker.stop()
    broker.start()
    with RawClient((broker.host, broker.port)) as again:
        assert {key: value for _, key, value in read(again, "t")} == newest


def test_old_segments_go_by_size_and_the_log_starts_later(client: RawClient) -> None:
    create(client, "t", segment_bytes="1000", retention_bytes="3000", file_delete_delay_ms="0")
    for _ in range(50):
        produce(client, "t", build_batch([Record(0, NOW_MS, None, b"x" * 300)]))
    until(lambda: list_offsets(client, "t", -2).offset > 30, "old segments are gone")
    assert client.offset("t", -1) == 50


def test_records_that_are_too_old_go(client: RawClient) -> None:
    create(client, "t", segment_bytes="1000", retention_ms="1000", message_timestamp_type="CreateTime")
    for _ in range(5):
        produce(client, "t", build_batch([Record(0, 1_000_000_000_000, None, b"x" * 300)]))
    until(lambda: list_offsets(client, "t", -2).offset == 5, "five records are gone")
