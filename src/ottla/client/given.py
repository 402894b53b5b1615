"""Offsets as users give them."""

from collections.abc import Mapping

from ottla.client.checks import check_number, check_text, place_of, shown
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.record._kernel_types import LARGEST_INT64

GivenOffset = int | OffsetAndMetadata | tuple[int, str]
"""An offset as users give it: alone, or with a note."""


def given_offsets(offsets: Mapping[TopicPartition, GivenOffset]) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a user wants to have committed.

    >>> given_offsets({TopicPartition("orders", 3): (17, "a note")})
    {TopicPartition(topic='orders', partition=3): OffsetAndMetadata(offset=17, metadata='a note', leader_epoch=-1)}
    >>> given_offsets({TopicPartition("orders", 3): -1})
    Traceback (most recent call last):
    ValueError: the offset of orders-3 is -1; give that of the next record to read, 0 or more
    """
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets is {shown(offsets)}; give a dict, as in {{TopicPartition('orders', 0): 17}}")
    for key, given in offsets.items():
        partition = place_of(key, "offsets")
        offset = OffsetAndMetadata(*given) if isinstance(given, tuple) else OffsetAndMetadata(given)
        check_number(f"the offset of {partition}", offset.offset, most=LARGEST_INT64)
        if offset.offset < 0:
            raise ValueError(
                f"the offset of {partition} is {offset.offset}; give that of the next record to read, 0 or more"
            )
        if offset.metadata:
            check_text(f"the note of {partition}", offset.metadata)
        found[partition] = offset._replace(metadata=offset.metadata or "")
    return found
