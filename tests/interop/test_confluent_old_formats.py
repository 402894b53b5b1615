"""Message sets of magic 0 and 1 between librdkafka and Ottla: in every codec that they have, both ways."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE

from ottla.record import Codec, build_batch
from ottla.record.convert import downconvert
from ottla.record.legacy import Message, build_message_set

from . import confluent
from .old_broker import OldBroker
from .samples import (
    LIMIT,
    NOW_MS,
    as_records,
    each_magic,
    each_old_codec,
    read_message_set,
    sample,
    stamped,
    without_timestamps,
)

PRODUCE, FETCH = 0, 1
# What makes librdkafka write the format, and the version of Produce and Fetch in which it then does.
BROKER_OF: list[dict[str, Any]] = [{"api_version_request": False, "broker_version_fallback": "0.9.0"}, {}]
VERSION_OF = [1, 2]
TIMESTAMP_TYPE_OF = [TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME]


@pytest.fixture
def old_broker() -> Iterator[OldBroker]:
    with OldBroker() as broker:
        yield broker


@each_magic
@each_old_codec
def test_what_librdkafka_writes_is_read(old_broker: OldBroker, topic: str, codec: Codec, magic: int) -> None:
    originals = sample(headers=False)
    confluent.write(old_broker.address, topic, originals, codec, **BROKER_OF[magic])
    assert (PRODUCE, VERSION_OF[magic]) in old_broker.asked
    found: list[Message] = []
    for produced in old_broker.produced[topic]:
        # Usually there is one set, but a busy machine may make librdkafka send what it has. Each counts from 0.
        message_set = read_message_set(produced)
        assert [message.offset for message in message_set] == list(range(len(message_set)))
        found += [message._replace(offset=len(found) + message.offset) for message in message_set]
    assert {(message.magic, message.log_append_time) for message in found} == {(magic, False)}
    # A set that compression does not make smaller is sent as it is, which happens only where it was split.
    used = {message.codec for message in found}
    if len(old_broker.produced[topic]) > 1 and codec is not Codec.NONE:
        used.discard(Codec.NONE)
    assert used == {codec}
    assert as_records(found) == (originals if magic else without_timestamps(originals))


@each_magic
@each_old_codec
def test_librdkafka_reads_what_is_built(old_broker: OldBroker, topic: str, codec: Codec, magic: int) -> None:
    originals = sample(headers=False)
    old_broker.served[topic] = build_message_set(originals, magic, codec)
    found = confluent.read(
        old_broker.address, topic, len(originals), timestamp_type=TIMESTAMP_TYPE_OF[magic], **BROKER_OF[magic]
    )
    assert (FETCH, VERSION_OF[magic]) in old_broker.asked
    assert found == (originals if magic else without_timestamps(originals))


@each_magic
@each_old_codec
def test_librdkafka_reads_batches_that_were_converted_for_it(
    old_broker: OldBroker, topic: str, codec: Codec, magic: int
) -> None:
    first, second = sample(), sample(base_offset=1000)
    old_broker.served[topic] = downconvert(build_batch(first, codec) + build_batch(second, codec), magic, LIMIT)
    expected = sample(headers=False) + sample(base_offset=1000, headers=False)
    found = confluent.read(
        old_broker.address, topic, len(expected), timestamp_type=TIMESTAMP_TYPE_OF[magic], **BROKER_OF[magic]
    )
    assert found == (expected if magic else without_timestamps(expected))


@each_old_codec
def test_librdkafka_reads_the_time_of_the_append(old_broker: OldBroker, topic: str, codec: Codec) -> None:
    originals = stamped(sample(headers=False), NOW_MS + 5)
    old_broker.served[topic] = build_message_set(originals, 1, codec, log_append_time=True)
    found = confluent.read(old_broker.address, topic, len(originals), timestamp_type=TIMESTAMP_LOG_APPEND_TIME)
    assert found == originals
