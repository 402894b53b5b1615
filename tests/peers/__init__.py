"""Other people's brokers, so that the client's tests run against them as they do against Ottla."""

from .kafka import KAFKA_3, KAFKA_4, KafkaBroker
from .ports import ReservedPort

__all__ = ["KAFKA_3", "KAFKA_4", "KafkaBroker", "ReservedPort"]
