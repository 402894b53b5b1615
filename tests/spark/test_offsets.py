"""Offsets between Spark, users and brokers, without Spark."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.types import TopicPartition
from ottla.spark.admission import Patience, share_out
from ottla.spark.offsets import START_KEY, from_json_dict, start_of, to_json_dict, with_start
from ottla.spark.planning import losses_between

places = st.builds(TopicPartition, st.sampled_from(["orders", "payments", "a.b-c_d"]), st.integers(0, 120))
offsets = st.dictionaries(places, st.integers(0, 2**40))
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)


@given(offsets)
def test_offsets_come_back_from_json(found: dict[TopicPartition, int]) -> None:
    assert from_json_dict(json.loads(json.dumps(to_json_dict(found)))) == found


@given(offsets)
def test_the_same_offsets_are_the_same_text_since_spark_compares_that(found: dict[TopicPartition, int]) -> None:
    backwards = dict(reversed(list(found.items())))
    assert json.dumps(to_json_dict(found)) == json.dumps(to_json_dict(backwards))


def test_offsets_of_the_official_connectors_checkpoint_are_read() -> None:
    assert from_json_dict(json.loads('{"orders":{"0":23,"1":7}}')) == {ORDERS: 23, TopicPartition("orders", 1): 7}


def test_a_batch_that_is_repeated_begins_where_the_query_did() -> None:
    end = json.loads(json.dumps(with_start({"orders": {"0": 9}}, {"orders": {"0": 5}})))
    assert from_json_dict(end) == {ORDERS: 9}
    assert start_of({"orders": {"0": 100}}, end) == {ORDERS: 5}
    assert start_of({"orders": {"0": 7}}, {"orders": {"0": 9}}) == {ORDERS: 7}
    assert not START_KEY.isalnum(), "no topic can be called that"


@given(st.integers(1, 10_000), st.dictionaries(places, st.tuples(st.integers(0, 10_000), st.integers(0, 10_000))))
def test_a_limit_is_shared_out(limit: int, found: dict[TopicPartition, tuple[int, int]]) -> None:
    starts = {place: start for place, (start, _) in found.items()}
    ends = {place: start + size for place, (start, size) in found.items()}
    shared = share_out(limit, starts, ends)
    taken = {place: shared[place] - starts[place] for place in shared}
    sizes = {place: ends[place] - starts[place] for place in ends}
    assert all(0 <= taken[place] <= sizes[place] for place in ends)
    assert all(taken[place] > 0 for place, size in sizes.items() if size > 0), "nobody is starved"
    total = sum(sizes.values())
    if total <= limit:
        assert shared == ends
    else:
        assert sum(taken.values()) <= limit + len(ends)
        assert all(taken[place] <= max(1, limit * size / total) for place, size in sizes.items())


def test_large_offsets_are_no_trouble() -> None:
    assert share_out(10, {ORDERS: 2**62, PAYMENTS: 0}, {ORDERS: 2**62 + 100, PAYMENTS: 100}) == {
        ORDERS: 2**62 + 5,
        PAYMENTS: 5,
    }


def test_too_few_records_wait_until_there_are_enough_or_the_delay_is_over() -> None:
    patience = Patience(100, 1_000)
    assert patience.is_over(0, 0), "the first batch is not kept waiting"
    assert not patience.is_over(99, 999)
    assert patience.is_over(100, 999)
    assert not patience.is_over(1, 1_998)
    assert patience.is_over(1, 1_999)


def test_partitions_that_are_gone_or_went_back_are_named_with_their_offsets() -> None:
    assert losses_between({ORDERS: 5, PAYMENTS: 7}, {PAYMENTS: 3, TopicPartition("new", 0): 9}) == [
        "orders-0 does not exist any more; 5 was next",
        "payments-0 ends at 3, but 7 was next, as if the topic was created anew",
    ]
    assert losses_between({ORDERS: 5}, {ORDERS: 5}) == []
