"""User data without a version in front, as they have been written by several libraries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.compile import encode
from ottla.wire.embedded.consumer_protocol import TopicPartition
from ottla.wire.embedded.sticky_user_data import (
    CooperativeStickyAssignorUserData,
    StickyAssignorUserData,
    read_generation,
    read_sticky_user_data,
)

DATA = StickyAssignorUserData(previous_assignment=[TopicPartition(topic="a", partitions=[0, 2])], generation=7)
V1 = bytes.fromhex("00000001 0001 61 00000002 00000000 00000002 00000007")


def test_has_the_bytes_that_java_writes() -> None:
    assert encode(DATA, 1) == V1
    assert encode(CooperativeStickyAssignorUserData(generation=7), 0) == bytes.fromhex("00000007")


@pytest.mark.parametrize("data", [V1, b"\0\1" + V1], ids=["plain", "with the version that kafka-python puts in front"])
def test_the_newest_version_is_read(data: bytes) -> None:
    assert read_sticky_user_data(data) == DATA


def test_the_version_without_a_generation_is_read() -> None:
    read = read_sticky_user_data(V1[:-4])
    assert read is not None
    assert (read.previous_assignment, read.generation) == (DATA.previous_assignment, -1)


def test_nothing_owned_is_read_in_each_form() -> None:
    for data in ("00000000 00000007", "0001 00000000 00000007"):
        assert read_sticky_user_data(bytes.fromhex(data)) == StickyAssignorUserData(generation=7)


@given(data=st.binary(max_size=40))
def test_other_bytes_are_no_error(data: bytes) -> None:
    read_sticky_user_data(data)
    read_generation(data)


def test_a_generation_is_read_as_java_and_as_librdkafka_write_it() -> None:
    assert read_generation(bytes.fromhex("00000007")) == 7
    assert read_generation(V1) == 7
    assert read_generation(b"junk!") == -1
