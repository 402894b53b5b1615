"""Consumers of Fetch v0 to v3 on logs with batches that have no place in the formats they read."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.log.checkpoint import CLEAN_FILE
from ottla.record import Batch, Record, batches, build_batch, records
from ottla.record.control import build_end_marker
from ottla.record.legacy import read_messages
from ottla.testing import TestBroker
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.interop.raw_client import RawClient, check

from .test_error_codes import NOW_MS, create, produce

MARKERS = 1000
"""In a row, which is far more than one read brings with the limit below."""
MAX_BYTES = 500

each_old_version = pytest.mark.parametrize("version", [0, 1, 2, 3])


def ask(client: RawClient, topic: str, offset: int, version: int, max_wait_ms: int = 0) -> Any:
    wanted = [FetchTopic(topic=topic, partitions=[FetchPartition(fetch_offset=offset, partition_max_bytes=MAX_BYTES)])]
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, topics=wanted)
    answer = client.call(request, version).responses[0].partitions[0]
    check(answer.error_code)
    return answer


def found(answer: Any) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in read_messages(bytes(answer.records or b""), 1 << 20)]


def put_markers(broker: TestBroker, topic: str, first_offset: int, count: int) -> None:
    """Append control batches, as transactions leave them, to the log of a broker that is stopped meanwhile."""
    broker.stop()
    folder = Path(broker.folder)
    with (folder / f"{topic}-0" / f"{0:020}.log").open("ab") as segment:
        for offset in range(first_offset, first_offset + count):
            marker = build_end_marker(
                commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW_MS
            )
            batch = Batch(bytearray(marker))
            batch.assign(offset, 0)
            segment.write(batch.data)
    (folder / CLEAN_FILE).unlink()
    broker.start()


@each_old_version
def test_batches_without_records_are_passed_over(broker: TestBroker, version: int) -> None:
    with RawClient((broker.host, broker.port)) as client:
        client.topic("t")
        client.produce("t", build_batch([Record(0, NOW_MS, None, b"before")]))
    put_markers(broker, "t", 1, MARKERS)
    with RawClient((broker.host, broker.port)) as client:
        assert client.offset("t", -1) == MARKERS + 1
        client.produce("t", build_batch([Record(0, NOW_MS, None, b"after")]))
        assert found(ask(client, "t", 0, version)) == [(0, b"before")]
        for offset in (1, 2, MARKERS // 2, MARKERS):
            assert found(ask(client, "t", offset, version)) == [(MARKERS + 1, b"after")]


@each_old_version
def test_nothing_but_such_batches_is_waited_on_like_an_empty_log(broker: TestBroker, version: int) -> None:
    with RawClient((broker.host, broker.port)) as client:
        client.topic("t")
    put_markers(broker, "t", 0, MARKERS)
    with RawClient((broker.host, broker.port)) as client, RawClient((broker.host, broker.port)) as writer:
        began = time.monotonic()
        answer = ask(client, "t", 0, version, max_wait_ms=300)
        assert found(answer) == []
        assert answer.high_watermark == MARKERS
        assert time.monotonic() - began >= 0.3, "it did not wait"
        late = threading.Timer(0.2, writer.produce, ("t", build_batch([Record(0, NOW_MS, None, b"late")])))
        late.start()
        began = time.monotonic()
        assert found(ask(client, "t", 0, version, max_wait_ms=8000)) == [(MARKERS, b"late")]
        assert time.monotonic() - began < 5, "it was not woken"
        late.join()


@pytest.mark.parametrize("settings", [{"log.cleaner.backoff.ms": "50"}])
@each_old_version
def test_a_batch_that_compaction_has_emptied_does_not_stop_an_old_consumer(broker: TestBroker, version: int) -> None:
    with RawClient((broker.host, broker.port)) as client:
        create(client, "t", cleanup_policy="compact", segment_bytes="1000", min_cleanable_dirty_ratio="0.01")
        # The last batch of a producer stays, without records, so that its sequence is remembered.
        first = build_batch([Record(0, NOW_MS, b"key", b"old")], producer_id=7, producer_epoch=0, base_sequence=0)
        assert produce(client, "t", first).error_code == 0
        for number in range(30):
            produce(client, "t", build_batch([Record(0, NOW_MS, b"key", b"%0100d" % number)]))
        deadline = time.monotonic() + 15
        while True:
            (batch, *_) = batches(client.fetch("t", 0))
            assert isinstance(batch, Batch)
            if not records(batch):
                break
            assert time.monotonic() < deadline, "the first batch was not emptied"
            time.sleep(0.05)
        assert batch.base_offset == 0
        offset, values = 0, []
        while offset < 31:
            answer = found(ask(client, "t", offset, version))
            assert answer, f"nothing from offset {offset} on"
            values += answer
            offset = answer[-1][0] + 1
        assert values[-1] == (30, b"%0100d" % 29)


@each_old_version
def test_messages_before_the_offset_that_was_asked_for_are_left_out(client: RawClient, version: int) -> None:
    client.topic("t")
    client.produce("t", build_batch([Record(number, NOW_MS, None, b"%d" % number) for number in range(5)]))
    assert found(ask(client, "t", 3, version)) == [(3, b"3"), (4, b"4")]
