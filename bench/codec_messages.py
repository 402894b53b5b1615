"""The messages of the codec benchmark, and how each library encodes and decodes them."""

import importlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import aiokafka.protocol.fetch
import aiokafka.protocol.metadata
import aiokafka.protocol.produce
from kio.serial import entity_reader, entity_writer

from ottla.wire.api.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.api.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.compile import decode, encode

from .timing import Work

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer import FetchRequest as KafkaFetchRequest
    from kafka.protocol.consumer import FetchResponse as KafkaFetchResponse
    from kafka.protocol.metadata import MetadataResponse as KafkaMetadataResponse
    from kafka.protocol.producer import ProduceRequest as KafkaProduceRequest

RECORDS = bytes(200)


class Case(NamedTuple):
    """A message in one version, with every library's way to read and write it: name -> work."""

    title: str
    decoding: dict[str, Work]
    encoding: dict[str, Work]


class _Peers(NamedTuple):
    kafka_python: Any
    kio_module: str
    aiokafka_module: Any


def fetch_request(version: int) -> FetchRequest:
    """Five topics of ten partitions."""
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=7,
        session_epoch=3,
        topics=[
            FetchTopic(
                topic=f"topic-{topic}" if version < 13 else "",
                topic_id=bytes([topic] * 16) if version >= 13 else bytes(16),
                partitions=[
                    FetchPartition(
                        partition=partition,
                        current_leader_epoch=4,
                        fetch_offset=123_456 + partition,
                        log_start_offset=0,
                        partition_max_bytes=1 << 20,
                    )
                    for partition in range(10)
                ],
            )
            for topic in range(5)
        ],
    )


def fetch_response(version: int) -> FetchResponse:
    """Five topics of ten partitions, with 200 bytes of records each."""
    return FetchResponse(
        session_id=7,
        responses=[
            FetchableTopicResponse(
                topic=f"topic-{topic}" if version < 13 else "",
                topic_id=bytes([topic] * 16) if version >= 13 else bytes(16),
                partitions=[
                    PartitionData(
                        partition_index=partition,
                        high_watermark=123_456 + partition,
                        last_stable_offset=123_456,
                        log_start_offset=0,
                        aborted_transactions=None,
                        records=RECORDS,
                    )
                    for partition in range(10)
                ],
            )
            for topic in range(5)
        ],
    )


def metadata_response(version: int) -> MetadataResponse:
    """Ten topics of a hundred partitions on three brokers."""
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host=f"broker-{node}", port=9092) for node in range(3)],
        cluster_id="cluster",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{topic}",
                topic_id=bytes([topic] * 16) if version >= 10 else bytes(16),
                partitions=[
                    MetadataResponsePartition(
                        partition_index=partition,
                        leader_id=partition % 3,
                        leader_epoch=4 if version >= 7 else -1,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for partition in range(100)
                ],
            )
            for topic in range(10)
        ],
    )


def produce_request(version: int) -> ProduceRequest:
    """Five topics of ten partitions, with 200 bytes of records each."""
    return ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        transactional_id=None,
        topic_data=[
            TopicProduceData(
                name=f"topic-{topic}",
                partition_data=[PartitionProduceData(index=partition, records=RECORDS) for partition in range(10)],
            )
            for topic in range(5)
        ],
    )


def cases() -> Iterator[Case]:
    """Every line, in a version that all peers have and in a flexible one that aiokafka lacks."""
    fetch = aiokafka.protocol.fetch
    metadata = aiokafka.protocol.metadata
    produce = aiokafka.protocol.produce
    for version in (11, 13):
        yield _case(fetch_request(version), version, _Peers(KafkaFetchRequest, "fetch.v{}.request", fetch))
    for version in (11, 13):
        yield _case(fetch_response(version), version, _Peers(KafkaFetchResponse, "fetch.v{}.response", fetch))
    for version in (5, 12):
        peers = _Peers(KafkaMetadataResponse, "metadata.v{}.response", metadata)
        yield _case(metadata_response(version), version, peers)
    for version in (7, 9):
        yield _case(produce_request(version), version, _Peers(KafkaProduceRequest, "produce.v{}.request", produce))


def _case(message: Any, version: int, peers: _Peers) -> Case:
    cls = type(message)
    data = encode(message, version)
    decoding: dict[str, Work] = {"ottla": lambda: decode(cls, version, data)}
    encoding: dict[str, Work] = {"ottla": lambda: encode(message, version)}
    for name, (read, write) in {
        "kio": _kio(cls.__name__, version, peers.kio_module, data),
        "kafka-python": _kafka_python(version, peers.kafka_python, data),
        "aiokafka": _aiokafka(f"{cls.__name__}_v{version}", peers.aiokafka_module, data),
    }.items():
        if read is not None and write is not None:
            # What is compared must be the same message: each library writes the very bytes that the others read.
            assert write() == data, f"{name} writes other bytes for {cls.__name__} v{version}"
            decoding[name], encoding[name] = read, write
    return Case(f"{cls.__name__} v{version}", decoding, encoding)


_Pair = tuple[Callable[[], Any] | None, Callable[[], bytes] | None]


def _kio(name: str, version: int, module: str, data: bytes) -> _Pair:
    cls = getattr(importlib.import_module(f"kio.schema.{module.format(version)}"), name)
    read, write = entity_reader(cls), entity_writer(cls)
    entity = read(data, 0)[0]

    def encode_entity() -> bytes:
        out = io.BytesIO()
        write(out, entity)
        return out.getvalue()

    return lambda: read(data, 0), encode_entity


def _kafka_python(version: int, cls: Any, data: bytes) -> _Pair:
    message = cls.decode(data, version=version)
    # Decoding leaves the header unset, and encoding looks at it.
    message._header = None
    message.API_VERSION = version
    return lambda: cls.decode(data, version=version), message.encode


def _aiokafka(name: str, module: Any, data: bytes) -> _Pair:
    cls = getattr(module, name, None)
    if cls is None:
        return None, None
    message = cls.decode(data)
    return lambda: cls.decode(data), message.encode
