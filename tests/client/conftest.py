"""Every test that asks for `broker` runs against Ottla, Kafka 4 and Kafka 3.9."""

from tests.peers.fixtures import broker, name, new_topic

__all__ = ["broker", "name", "new_topic"]
