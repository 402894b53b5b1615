"""What stands in front of a message, held against other people's code: header versions and version prefixes."""

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.protocol.consumer import metadata as kafka_python
from kio import index

from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.frame import request_header_version, response_header_version
from ottla.wire.schema import schema_of

from .codecs import api_codecs


def test_header_versions_are_those_of_kio() -> None:
    compared = 0
    for codec in api_codecs():
        assert codec.key is not None
        schema = schema_of(codec.message)
        try:
            if codec.kind == "request":
                ours = request_header_version(schema, codec.version)
                theirs = index.load_request_schema(codec.key, codec.version).__header_schema__.__version__
            else:
                ours = response_header_version(schema, codec.version)
                theirs = index.load_response_schema(codec.key, codec.version).__header_schema__.__version__
        except index.KioIndexError:
            continue
        assert (str(codec), ours) == (str(codec), theirs)
        compared += 1
    assert compared > 500


def test_a_subscription_opens_with_its_version_as_it_does_in_kafka_python_and_aiokafka() -> None:
    ours = ConsumerProtocolSubscription(
        topics=["a", "b"],
        user_data=b"data",
        owned_partitions=[TopicPartition(topic="a", partitions=[0, 7])],
        generation_id=3,
        rack_id="r",
    )
    theirs = kafka_python.ConsumerProtocolSubscription
    item = theirs(
        topics=["a", "b"],
        user_data=b"data",
        owned_partitions=[theirs.TopicPartition(topic="a", partitions=[0, 7])],
        generation_id=3,
        rack_id="r",
    )
    for version in range(4):
        assert encode_versioned(ours, version) == item.encode(version=version)
    assert encode_versioned(ours, 0) == ConsumerProtocolMemberMetadata(0, ["a", "b"], b"data").encode()


def test_an_assignment_opens_with_its_version_as_it_does_in_kafka_python_and_aiokafka() -> None:
    ours = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="a", partitions=[0, 7])], user_data=None
    )
    theirs = kafka_python.ConsumerProtocolAssignment
    assigned = [theirs.TopicPartition(topic="a", partitions=[0, 7])]
    item = theirs(assigned_partitions=assigned, user_data=None)
    for version in range(4):
        assert encode_versioned(ours, version) == item.encode(version=version)
    assert encode_versioned(ours, 0) == ConsumerProtocolMemberAssignment(0, [("a", [0, 7])], None).encode()
