"""Every decoder there is."""

from . import message_targets, record_targets
from .target import Target

RECORD_WEIGHT = 40
"""A record decoder gets so many times the cases of a message's: there are few of them, and much behind each."""


def all_targets() -> list[Target]:
    """Every decoder of messages, frames, records and compressed data, in both engines where there are two."""
    records = (target._replace(weight=RECORD_WEIGHT, inflates=True) for target in record_targets.targets())
    return [*message_targets.targets(), *records]
