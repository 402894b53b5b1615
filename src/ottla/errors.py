"""Exceptions of the clients, under a short name: see `ottla.client.errors`.

>>> issubclass(UnknownTopicOrPartitionError, KafkaError)
True
"""

from ottla.client.errors import *  # noqa: F403
from ottla.client.errors import __all__ as __all__
