"""What topics may be called."""

import re
from typing import Final

from ottla.wire.errors import ErrorCode, KafkaError

LONGEST_NAME: Final = 249
"""A partition's folder bears the topic's name and more, and most file systems allow 255 bytes."""

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    """Whether the broker itself keeps its state in this topic.

    >>> is_internal("__consumer_offsets"), is_internal("_schemas")
    (True, False)
    """
    return name in INTERNAL_TOPICS


def check_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION if a topic cannot be called that.

    >>> check_topic_name("orders.eu-1")
    >>> check_topic_name("..")
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: INVALID_TOPIC_EXCEPTION: topic name '..': must not be '.' or '..', which mean folders
    """
    if (complaint := _complaint(name)) is not None:
        # A name can be as long as a request; nobody wants it back whole.
        shown = name if len(name) <= 300 else name[:300] + "..."
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic name {shown!r}: {complaint}")


def _complaint(name: str) -> str | None:
    if not name:
        return "must not be empty"
    if name in (".", ".."):
        return "must not be '.' or '..', which mean folders"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, and at most {LONGEST_NAME} are possible"
    if not _LEGAL.fullmatch(name):
        return "use letters a-z, digits, '.', '_' and '-' only"
    return None


def folded(name: str) -> str:
    """The name as metrics write it, where a dot cannot be told from an underscore: topics must differ in this.

    >>> folded("orders.eu") == folded("orders_eu")
    True
    """
    return name.replace(".", "_")
