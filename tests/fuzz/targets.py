"""Every decoder there is."""

from . import login_targets, message_targets, record_targets
from .target import Target

RECORD_WEIGHT = 40
"""A record decoder gets so many times the cases of a message's: there are few of them, and much behind each."""

LOGIN_WEIGHT = 10


def all_targets() -> list[Target]:
    """Every decoder of messages, frames, logins, records and compressed data, in both engines where there are two."""
    records = (target._replace(weight=RECORD_WEIGHT, inflates=True) for target in record_targets.targets())
    logins = (target._replace(weight=LOGIN_WEIGHT) for target in login_targets.targets())
    return [*message_targets.targets(), *logins, *records]
