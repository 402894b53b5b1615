"""Reading records: alone or as a member of a group, as objects or as Arrow columns."""

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.membership import ConsumerRebalanceListener

__all__ = ["Consumer", "ConsumerRebalanceListener"]
