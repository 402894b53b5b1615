"""Requests made beforehand and replies seen at a glance are what the codec would make of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.single import FIRST_VERSION, SingleProduce, Written
from ottla.client.types import TopicPartition
from ottla.wire.api.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.compile import encode
from ottla.wire.frame import encode_request
from ottla.wire.schema import schema_of

VERSIONS = range(FIRST_VERSION, schema_of(ProduceRequest).versions.last + 1)
PARTITION = TopicPartition("orders", 3)
TOPIC_ID = bytes(range(16))

int64s = st.integers(-(2**63), 2**63 - 1)


def good(**changes: Any) -> PartitionProduceResponse:
    return PartitionProduceResponse(**{"index": 3, "base_offset": 70, "log_start_offset": 5, **changes})


def single(version: int) -> SingleProduce:
    return SingleProduce(PARTITION, TOPIC_ID, version=version, acks=-1, timeout_ms=1234, client_id="me")


def reply(version: int, answer: PartitionProduceResponse | None = None, **fields: Any) -> bytes:
    topic = TopicProduceResponse(name="orders", topic_id=TOPIC_ID, partition_responses=[answer or good()])
    return b"\0\0\0\x07\0" + encode(ProduceResponse(**{"responses": [topic], **fields}), version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 5_000, 70_000])
def test_a_request_is_what_the_codec_makes(version: int, size: int) -> None:
    batch = bytes(size)
    data = TopicProduceData(
        name="orders", topic_id=TOPIC_ID, partition_data=[PartitionProduceData(index=3, records=batch)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=1234, topic_data=[data])
    made = b"".join(encode_request(request, version, correlation_id=2**31 - 1, client_id="me"))
    assert single(version).frame(batch, 2**31 - 1) == made


@pytest.mark.parametrize("version", VERSIONS)
@given(base_offset=int64s, append_time=int64s, start_offset=int64s)
def test_the_usual_reply_is_recognised(version: int, base_offset: int, append_time: int, start_offset: int) -> None:
    answer = good(base_offset=base_offset, log_append_time_ms=append_time, log_start_offset=start_offset)
    assert single(version).glance(reply(version, answer)) == Written(base_offset, append_time)


@pytest.mark.parametrize("version", VERSIONS)
def test_any_other_reply_is_left_to_the_codec(version: int) -> None:
    glance, usual = single(version).glance, reply(version)
    other_topic = TopicProduceResponse(name="others", topic_id=bytes(16), partition_responses=[good()])
    others = [
        reply(version, good(error_code=6)),
        reply(version, good(index=4)),
        reply(version, good(error_message="")),
        reply(version, good(record_errors=[BatchIndexAndErrorMessage()])),
        reply(version, good(current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=5))),
        reply(version, throttle_time_ms=1),
        reply(version, node_endpoints=[NodeEndpoint(node_id=2, host="b", port=9)]),
        reply(version, responses=[]),
        reply(version, responses=[other_topic]),
        usual + b"\0",
        *(usual[:size] for size in range(len(usual))),
    ]
    assert glance(usual) is not None
    assert [glance(one) for one in others] == [None] * len(others)
