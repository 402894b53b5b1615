"""Ottla: a Kafka-compatible event streaming platform in Python.

`Producer`, `Consumer` and `Admin` speak to any Kafka-compatible broker, with asyncio; `ottla.sync` has the same without
it. `read_table` gives a topic as an Arrow table. Exceptions are in `ottla.errors`.

Importing this package is cheap: nothing is compiled and no other module is loaded until it is used.
"""

from os import environ as _environ

# Not from typing, whose import takes longer than all the rest of this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ottla import errors as errors
    from ottla import sync as sync
    from ottla.client.admin import Admin as Admin
    from ottla.client.admin import ConfigResource as ConfigResource
    from ottla.client.admin import MemberToRemove as MemberToRemove
    from ottla.client.admin import NewPartitions as NewPartitions
    from ottla.client.admin import NewTopic as NewTopic
    from ottla.client.consumer import Consumer as Consumer
    from ottla.client.consumer import ConsumerRebalanceListener as ConsumerRebalanceListener
    from ottla.client.offsets import OffsetSpec as OffsetSpec
    from ottla.client.producer import Delivery as Delivery
    from ottla.client.producer import Producer as Producer
    from ottla.client.producer import TableDelivery as TableDelivery
    from ottla.client.producer import TableMetadata as TableMetadata
    from ottla.client.table import read_table as read_table
    from ottla.client.types import ConsumerRecord as ConsumerRecord
    from ottla.client.types import OffsetAndMetadata as OffsetAndMetadata
    from ottla.client.types import OffsetAndTimestamp as OffsetAndTimestamp
    from ottla.client.types import RecordMetadata as RecordMetadata
    from ottla.client.types import TopicPartition as TopicPartition
    from ottla.ports.heap import keep_freed_memory as keep_freed_memory
    from ottla.wire.errors import KafkaError as KafkaError

__version__ = "0.1.0.dev0"

if _environ.get("OTTLA_PURE_PYTHON"):
    from ottla import native as _native

    _native.prefer_sources()

_HOMES = {
    "Admin": "ottla.client.admin",
    "ConfigResource": "ottla.client.admin",
    "Consumer": "ottla.client.consumer",
    "ConsumerRebalanceListener": "ottla.client.consumer",
    "ConsumerRecord": "ottla.client.types",
    "Delivery": "ottla.client.producer",
    "KafkaError": "ottla.wire.errors",
    "MemberToRemove": "ottla.client.admin",
    "NewPartitions": "ottla.client.admin",
    "NewTopic": "ottla.client.admin",
    "OffsetAndMetadata": "ottla.client.types",
    "OffsetAndTimestamp": "ottla.client.types",
    "OffsetSpec": "ottla.client.offsets",
    "Producer": "ottla.client.producer",
    "RecordMetadata": "ottla.client.types",
    "TableDelivery": "ottla.client.producer",
    "TableMetadata": "ottla.client.producer",
    "TopicPartition": "ottla.client.types",
    "keep_freed_memory": "ottla.ports.heap",
    "read_table": "ottla.client.table",
}
_MODULES = ("errors", "sync")

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOMES:
        found: object = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        found = import_module(f"ottla.{name}")
    else:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
