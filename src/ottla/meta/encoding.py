"""How topics and settings are written in the metadata store: as JSON that people can read."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ottla.cluster.image import PartitionImage, TopicImage
from ottla.meta.store import StoreError

FORMAT = 1
"""Written into each value, so that a later version knows what it reads."""


def encode_id(raw: bytes) -> str:
    """A uuid as Kafka prints it.

    >>> encode_id(bytes(range(16)))
    'AAECAwQFBgcICQoLDA0ODw'
    """
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_id(text: str) -> bytes:
    """The uuid of its printed form.

    >>> decode_id("AAECAwQFBgcICQoLDA0ODw") == bytes(range(16))
    True
    """
    raw = urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"{text!r} is no id; one has 22 characters")
    return raw


def encode_json(fields: Mapping[str, Any]) -> bytes:
    """A JSON object with its format."""
    return json.dumps({"format": FORMAT, **fields}, separators=(",", ":"), ensure_ascii=False).encode()


def decode_json(path: str, value: bytes) -> dict[str, Any]:
    """The object that was written at a path; StoreError if it is not one that this version reads."""
    try:
        fields = json.loads(value)
        found = fields["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} holds {value[:50]!r}, which is not what Ottla writes there") from error
    if found != FORMAT:
        raise StoreError(f"{path} is in format {found}, and this version reads {FORMAT}; use a newer one")
    return dict(fields)


def encode_topic(topic: TopicImage) -> bytes:
    """A topic, its partitions as rows to keep them short.

    >>> encode_topic(TopicImage("a", bytes(16), (PartitionImage(0, 1, 0, (1,), (1,)),), {"retention.ms": "5"})).decode()
    '{"format":1,"name":"a","id":"AAAAAAAAAAAAAAAAAAAAAA","partitions":[[1,0,0,[1],[1]]],"configs":{"retention.ms":"5"}}'
    """
    rows = [
        (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.replicas, partition.isr)
        for partition in topic.partitions
    ]
    fields = {"name": topic.name, "id": encode_id(topic.topic_id), "partitions": rows, "configs": dict(topic.configs)}
    return encode_json(fields)


def decode_topic(path: str, value: bytes) -> TopicImage:
    """The topic that was written at a path."""
    fields = decode_json(path, value)
    try:
        partitions = tuple(
            PartitionImage(index, leader, leader_epoch, tuple(replicas), tuple(isr), partition_epoch)
            for index, (leader, leader_epoch, partition_epoch, replicas, isr) in enumerate(fields["partitions"])
        )
        return TopicImage(fields["name"], decode_id(fields["id"]), partitions, MappingProxyType(fields["configs"]))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} holds {value[:50]!r}, which is no topic") from error
