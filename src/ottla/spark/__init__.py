"""Topics in and out of Spark, through PySpark: a source, a sink, and pipelines on top."""

from typing import TYPE_CHECKING

from ottla.spark.kafka_format import enable_kafka_format, kafka_jar

if TYPE_CHECKING:
    from ottla.spark.dead_letters import DeadLetters
    from ottla.spark.decoding import decode
    from ottla.spark.progress import CommitListener

# Loaded when they are used: the workers of Spark import this package for each source and sink.
_HOMES = {
    "CommitListener": "ottla.spark.progress",
    "DeadLetters": "ottla.spark.dead_letters",
    "decode": "ottla.spark.decoding",
}

__all__ = ["CommitListener", "DeadLetters", "decode", "enable_kafka_format", "kafka_jar"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'ottla.spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
