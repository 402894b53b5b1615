"""What clients by other people can do on a broker by Ottla: each ability with each client that has it.

What a client writes is compared with what the broker stored; what it reads was stored without its help.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.record import Batch, Codec, Record, batches, build_batch
from ottla.record import records as records_of
from ottla.testing import TestBroker

from .abilities import LARGE, LIMIT, Ability, Administrator, Client
from .abilities_aiokafka import Aiokafka, AiokafkaAdministrator
from .abilities_kafka_python import KafkaPython, KafkaPythonAdministrator
from .abilities_librdkafka import Confluent, ConfluentAdministrator, Kcat
from .raw_client import EARLIEST, LATEST, RawClient

NOW_MS = 1_790_000_000_000
STEP_MS = 1000
COUNT = 60
RECORDS = [
    Record(index, NOW_MS + index * STEP_MS, b"key-%d" % (index % 7), b"value-%d" % index * 20) for index in range(COUNT)
]
MIDDLE = 37
CLIENTS: tuple[type[Client], ...] = (Confluent, Kcat, Aiokafka, KafkaPython)
ADMINISTRATORS: tuple[type[Administrator], ...] = (
    ConfluentAdministrator,
    AiokafkaAdministrator,
    KafkaPythonAdministrator,
)


def parameter(kind: type[Client]) -> Any:
    absent = kind is Kcat and shutil.which("kcat") is None
    return pytest.param(kind, id=kind.name, marks=pytest.mark.skipif(absent, reason="kcat is not installed"))


def each_that_can(*abilities: Ability) -> pytest.MarkDecorator:
    """Runs a test with every client that has these abilities; for those that lack one, no test is made."""
    kinds = [kind for kind in CLIENTS if not kind.lacks.keys() & set(abilities)]
    return pytest.mark.parametrize("kind", [parameter(kind) for kind in kinds])


each_client = each_that_can()
each_administrator = pytest.mark.parametrize("administrator_kind", ADMINISTRATORS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"message.max.bytes": str(LIMIT)}) as started:
        yield started


@pytest.fixture
def raw(broker: TestBroker) -> Iterator[RawClient]:
    with RawClient((broker.host, broker.port)) as connected:
        yield connected


@pytest.fixture
def client(broker: TestBroker, kind: type[Client]) -> Client:
    return kind(broker.bootstrap_servers)


@pytest.fixture
def administrator(broker: TestBroker, administrator_kind: type[Administrator]) -> Administrator:
    return administrator_kind(broker.bootstrap_servers)


def stored(raw: RawClient, topic: str) -> list[Batch]:
    """What the broker keeps of a topic."""
    return [batch for batch in batches(raw.read_log(topic)) if isinstance(batch, Batch)]


def store(raw: RawClient, topic: str, records: list[Record], codec: Codec = Codec.NONE) -> None:
    """Write without the client that is tried."""
    raw.topic(topic)
    raw.produce(topic, build_batch(records, codec))


def without_times(records: list[Record]) -> list[Record]:
    return [Record(one.offset, -1, one.key, one.value, one.headers) for one in records]


def written(
    client: Client, raw: RawClient, topic: str, records: list[Record], codec: Codec = Codec.NONE
) -> list[Batch]:
    """Have the client write records, and see that the broker has just these."""
    raw.topic(topic)
    client.write(topic, records, codec)
    found = stored(raw, topic)
    kept = [record for batch in found for record in records_of(batch)]
    if Ability.TIMESTAMPS in client.lacks:
        records, kept = without_times(records), without_times(kept)
    assert kept == records
    return found


# Codecs.


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
@each_client
def test_a_client_writes_with_a_codec_and_the_broker_keeps_it(
    client: Client, raw: RawClient, topic: str, codec: Codec
) -> None:
    assert {batch.codec for batch in written(client, raw, topic, RECORDS, codec)} == {codec}


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
@each_client
def test_a_client_reads_a_codec(client: Client, raw: RawClient, topic: str, codec: Codec) -> None:
    store(raw, topic, RECORDS, codec)
    assert client.read(topic, 0, COUNT) == RECORDS


# What a record holds.

HEADERS = (("trace", b"a1"), ("other", b"x"), ("trace", b"a2"))
WITH_HEADERS = [Record(0, NOW_MS, b"k", b"v", HEADERS), Record(1, NOW_MS, b"k", b"w")]
NULL_HEADERS = [Record(0, NOW_MS, b"k", b"v", (("null", None), ("empty", b""), ("null", None)))]
NULLS = [
    Record(0, NOW_MS, None, b"v"),
    Record(1, NOW_MS, b"k", None),
    Record(2, NOW_MS, b"", b""),
    Record(3, NOW_MS, b"k", b"v"),
]
NEITHER = [Record(0, NOW_MS, None, None)]


@pytest.mark.parametrize("records", [WITH_HEADERS, NULLS], ids=["headers", "nulls"])
@each_client
def test_a_client_writes_headers_and_nulls(client: Client, raw: RawClient, topic: str, records: list[Record]) -> None:
    written(client, raw, topic, records)


@each_that_can(Ability.NULL_HEADERS)
def test_a_client_writes_headers_without_a_value(client: Client, raw: RawClient, topic: str) -> None:
    written(client, raw, topic, NULL_HEADERS)


@each_that_can(Ability.NEITHER)
def test_a_client_writes_neither_key_nor_value(client: Client, raw: RawClient, topic: str) -> None:
    written(client, raw, topic, NEITHER)


@pytest.mark.parametrize(
    "records", [WITH_HEADERS, NULL_HEADERS, NULLS, NEITHER], ids=["headers", "null headers", "nulls", "neither"]
)
@each_client
def test_a_client_reads_headers_and_nulls(client: Client, raw: RawClient, topic: str, records: list[Record]) -> None:
    store(raw, topic, records)
    assert client.read(topic, 0, len(records)) == records


@each_client
def test_a_client_writes_and_reads_a_large_message(client: Client, raw: RawClient, topic: str) -> None:
    large = [Record(0, NOW_MS, b"k", b"0123456789" * (LARGE // 10)), Record(1, NOW_MS, b"k", b"small")]
    written(client, raw, topic, large)
    assert [(record.key, record.value) for record in client.read(topic, 0, 2)] == [(b"k", one.value) for one in large]


# Positions.


@each_client
def test_a_client_reads_from_an_offset_in_the_middle_of_a_batch(client: Client, raw: RawClient, topic: str) -> None:
    store(raw, topic, RECORDS)
    assert client.read(topic, MIDDLE, COUNT - MIDDLE) == RECORDS[MIDDLE:]


@each_client
def test_a_client_reads_from_the_end(client: Client, raw: RawClient, topic: str) -> None:
    store(raw, topic, RECORDS)
    new = [Record(COUNT, NOW_MS, b"k", b"new"), Record(COUNT + 1, NOW_MS, b"k", b"newer")]
    assert client.read_new(topic, lambda: store(raw, topic, new), len(new)) == new


@each_client
def test_a_client_reads_from_a_time(client: Client, raw: RawClient, topic: str) -> None:
    store(raw, topic, RECORDS)
    between = RECORDS[MIDDLE].timestamp - STEP_MS // 2
    assert client.read_since(topic, between, COUNT - MIDDLE) == RECORDS[MIDDLE:]


# Administration: of all clients but those whose table says that they have none.


def test_every_client_that_administers_topics_is_tried() -> None:
    able = {kind.name for kind in CLIENTS if Ability.ADMINISTRATION not in kind.lacks}
    assert able == {kind.name for kind in ADMINISTRATORS}


@each_administrator
def test_an_administrator_creates_and_describes_a_topic(
    administrator: Administrator, raw: RawClient, topic: str
) -> None:
    administrator.create(topic, 3, {"retention.ms": "123456"})
    assert len(raw.topic(topic).partitions) == 3
    assert topic in administrator.topics()
    assert administrator.partitions(topic) == 3
    assert administrator.config(topic, "retention.ms") == "123456"


@each_administrator
def test_an_administrator_alters_a_config(administrator: Administrator, raw: RawClient, topic: str) -> None:
    raw.topic(topic)
    administrator.set_config(topic, "max.message.bytes", "54321")
    assert administrator.config(topic, "max.message.bytes") == "54321"


@each_administrator
def test_an_administrator_adds_partitions(administrator: Administrator, raw: RawClient, topic: str) -> None:
    raw.topic(topic)
    administrator.grow(topic, 4)
    assert len(raw.topic(topic).partitions) == 4
    assert administrator.partitions(topic) == 4


@each_administrator
def test_an_administrator_deletes_records(administrator: Administrator, raw: RawClient, topic: str) -> None:
    store(raw, topic, RECORDS)
    administrator.delete_records(topic, MIDDLE)
    assert (raw.offset(topic, EARLIEST), raw.offset(topic, LATEST)) == (MIDDLE, COUNT)


@each_administrator
def test_an_administrator_deletes_a_topic(administrator: Administrator, raw: RawClient, topic: str) -> None:
    raw.topic(topic)
    administrator.delete(topic)
    assert topic not in administrator.topics()
