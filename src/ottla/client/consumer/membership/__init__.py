"""Consumers in groups: both protocols, committed positions, and what happens when partitions come and go."""

from ottla.client.consumer.membership.group import Group
from ottla.client.consumer.membership.identity import Identity
from ottla.client.consumer.membership.listener import ConsumerRebalanceListener
from ottla.client.consumer.membership.options import GroupOptions

__all__ = ["ConsumerRebalanceListener", "Group", "GroupOptions", "Identity"]
