"""Java's producer and consumer, from the oldest that still runs to the newest, on a broker by Ottla."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from ottla.record import Codec, Record
from ottla.testing import TestBroker
from tests.java import skip_without_maven

from . import confluent
from .java_client import NEWEST, VERSIONS, JavaClient, release
from .samples import NOW_MS, sample, whole_batches, without_timestamps

pytestmark = [pytest.mark.maven, skip_without_maven("Java's clients tried nothing on the broker")]

LARGE = 5_000_000
LIMIT = 6_000_000
FIRST_WITH_TIMESTAMPS = (0, 10)
FIRST_WITH_TIMES = (0, 10, 1)
"""Offsets are found by time, and a record that is larger than asked for is read, from then on."""
FIRST_WITH_BATCHES = (0, 11)
"""Idempotence and headers came with them."""
FIRST_WITH_ZSTD = (2, 1)
FIRST_IDEMPOTENT_BY_DEFAULT = (3,)

WITH_TIMES = [version for version in VERSIONS if release(version) >= FIRST_WITH_TIMES]
IDEMPOTENT = [version for version in VERSIONS if release(version) >= FIRST_WITH_BATCHES]
each_version = pytest.mark.parametrize("java", VERSIONS, indirect=True)
each_with_times = pytest.mark.parametrize("java", WITH_TIMES, indirect=True)
each_idempotent = pytest.mark.parametrize("java", IDEMPOTENT, indirect=True)
each_version_and_codec = pytest.mark.parametrize(
    ("java", "codec"),
    [
        pytest.param(version, codec, id=f"{version} {codec.name.lower()}")
        for version in VERSIONS
        for codec in Codec
        if codec is not Codec.ZSTD or release(version) >= FIRST_WITH_ZSTD
    ],
    indirect=["java"],
)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"message.max.bytes": str(LIMIT)}) as started:
        yield started


@pytest.fixture
def servers(broker: TestBroker) -> str:
    return broker.bootstrap_servers


def as_far_as_it_goes(java: JavaClient, originals: Iterable[Record]) -> list[Record]:
    """Records with what that client can write or read of them."""
    if java.release < FIRST_WITH_TIMESTAMPS:
        return without_timestamps(originals)
    headers = java.release >= FIRST_WITH_BATCHES
    return [Record(r.offset, r.timestamp, r.key, r.value, r.headers if headers else ()) for r in originals]


def stored_codecs(broker: TestBroker, topic: str) -> set[Codec]:
    """What the batches of a topic are compressed with, on the broker's disk."""
    segment = Path(broker.folder) / f"{topic}-0" / f"{0:020}.log"
    return {batch.codec for batch in whole_batches(segment.read_bytes())}


@each_version_and_codec
def test_confluent_kafka_reads_what_java_writes(
    java: JavaClient, broker: TestBroker, servers: str, topic: str, codec: Codec
) -> None:
    originals = as_far_as_it_goes(java, sample())
    assert java.produce(servers, topic, originals, compression_type=codec.name.lower()) == list(range(len(originals)))
    found = confluent.read((broker.host, broker.port), topic, len(originals), timestamp_type=TIMESTAMP_CREATE_TIME)
    assert as_far_as_it_goes(java, found) == originals
    assert stored_codecs(broker, topic) == {codec}


@each_version_and_codec
def test_java_reads_what_confluent_kafka_writes(
    java: JavaClient, broker: TestBroker, servers: str, topic: str, codec: Codec
) -> None:
    originals = sample()
    confluent.write((broker.host, broker.port), topic, originals, codec)
    # librdkafka leaves out compression that does not pay, and a codec that it thinks the broker too old for.
    assert codec in stored_codecs(broker, topic)
    consumed = java.consume(servers, topic, len(originals), start="beginning")
    assert consumed.position == 0
    assert consumed.records == as_far_as_it_goes(java, originals)


@each_version
def test_java_reads_what_java_writes_from_any_offset(java: JavaClient, servers: str, topic: str) -> None:
    originals = as_far_as_it_goes(java, sample(count=50))
    java.produce(servers, topic, originals, compression_type="gzip")
    for start in (0, 1, 30, len(originals) - 1):
        assert java.consume(servers, topic, len(originals) - start, start=start).records == originals[start:]
    assert java.consume(servers, topic, 0, start="end").position == len(originals)


@each_with_times
def test_java_finds_offsets_by_time_and_where_a_partition_begins_and_ends(
    java: JavaClient, servers: str, topic: str
) -> None:
    originals = [Record(n, NOW_MS + 1000 * n, None, b"tick %d" % n) for n in range(10)]
    for record in originals:
        java.produce(servers, topic, [record])
    times = [NOW_MS - 1, NOW_MS + 4000, NOW_MS + 4001, NOW_MS + 9001]
    beginning, end, found = java.offsets(servers, topic, times)
    assert (beginning, end) == (0, 10)
    assert found == [(0, NOW_MS), (4, NOW_MS + 4000), (5, NOW_MS + 5000), None]


@each_idempotent
def test_java_writes_idempotently_and_reads_what_is_committed(java: JavaClient, servers: str, topic: str) -> None:
    originals = as_far_as_it_goes(java, sample())
    settings: dict[str, Any] = (
        {} if java.release >= FIRST_IDEMPOTENT_BY_DEFAULT else {"enable_idempotence": "true", "acks": "all"}
    )
    outcomes = java.produce(servers, topic, originals, batch_size=100, **settings)
    assert outcomes == list(range(len(originals)))
    found = java.consume(servers, topic, len(originals), start="beginning", isolation_level="read_committed")
    assert found.records == originals


@each_version
@pytest.mark.parametrize("acks", ["0", "1"])
def test_java_writes_with_fewer_acknowledgements(java: JavaClient, servers: str, topic: str, acks: str) -> None:
    originals = as_far_as_it_goes(java, sample(count=20))
    outcomes = java.produce(servers, topic, originals, acks=acks)
    assert outcomes == ([-1] * len(originals) if acks == "0" else list(range(len(originals))))
    assert java.consume(servers, topic, len(originals)).records == originals


@pytest.mark.parametrize("java", [NEWEST, "2.8.2", "0.10.2.2"], indirect=True)
def test_java_writes_and_reads_a_large_record_and_a_larger_one_is_refused(
    java: JavaClient, servers: str, topic: str
) -> None:
    large = Record(0, NOW_MS, b"large", b"\xa7" * LARGE)
    larger = Record(1, NOW_MS, b"larger", b"\xa7" * (LIMIT + 1))
    kept, refused = java.produce(servers, topic, [large, larger], max_request_size=2 * LIMIT, batch_size=0)
    assert kept == 0
    assert str(refused).startswith("org.apache.kafka.common.errors.RecordTooLargeException")
    assert java.consume(servers, topic, 1, max_partition_fetch_bytes=LIMIT).records == [large]


@each_with_times
def test_java_reads_a_record_that_is_larger_than_it_asked_for(java: JavaClient, servers: str, topic: str) -> None:
    originals = [Record(offset, NOW_MS, None, b"\xa7" * 100_000) for offset in range(2)]
    java.produce(servers, topic, originals, batch_size=0)
    assert java.consume(servers, topic, 2, max_partition_fetch_bytes=1000).records == originals


@pytest.mark.parametrize("java", [NEWEST], indirect=True)
def test_java_writes_to_the_partition_that_it_names(java: JavaClient, topic: str) -> None:
    with TestBroker({"num.partitions": "3"}) as broker:
        record = Record(0, NOW_MS, b"key", b"value")
        assert java.produce(broker.bootstrap_servers, topic, [record], partition=2) == [0]
        assert java.offsets(broker.bootstrap_servers, topic, [], partition=1).end == 0
        assert java.consume(broker.bootstrap_servers, topic, 1, partition=2).records == [record]
