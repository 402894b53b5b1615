"""How ranges become tasks, without Spark."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.types import TopicPartition
from ottla.spark.splitting import ROWS_PER_TASK, Range, split


def range_of(partition: int, size: int, start: int = 0) -> Range:
    return Range(TopicPartition("orders", partition), start, start + size)


ranges = st.lists(st.tuples(st.integers(0, 3 * ROWS_PER_TASK), st.integers(0, 100)), max_size=40).map(
    lambda sizes: [range_of(index, size, start) for index, (size, start) in enumerate(sizes)]
)
counts = st.none() | st.integers(1, 60)


@given(ranges, counts, st.none() | st.integers(1, 2 * ROWS_PER_TASK), st.integers(1, 16))
def test_every_record_is_in_one_task(
    whole: list[Range], min_partitions: int | None, max_records: int | None, parallelism: int
) -> None:
    if max_records is not None:
        max_records = max(max_records, 1 + sum(one.size for one in whole) // 200)
    tasks = split(whole, min_partitions=min_partitions, max_records=max_records, parallelism=parallelism)
    assert all(tasks)
    for one in whole:
        pieces = sorted(piece for task in tasks for piece in task if piece.place == one.place)
        assert sum(piece.size for piece in pieces) == one.size
        assert all(before.end == after.start for before, after in pairwise(pieces))
        assert not pieces or (pieces[0].start, pieces[-1].end) == (one.start, one.end)
    for task in tasks:
        assert len({piece.place for piece in task}) == len(task), "a task reads a partition once"
        assert max_records is None or sum(piece.size for piece in task) <= max_records
    rows = sum(one.size for one in whole)
    assert len(tasks) >= min(min_partitions or 1, rows)
    assert len(tasks) >= min(parallelism, sum(one.size > 0 for one in whole))


@given(ranges, st.integers(1, 16))
def test_a_partition_stays_whole_unless_options_ask_for_more(whole: list[Range], parallelism: int) -> None:
    tasks = split(whole, parallelism=parallelism)
    assert sorted(piece for task in tasks for piece in task) == sorted(one for one in whole if one.size)


def test_empty_ranges_are_no_tasks() -> None:
    assert split([range_of(0, 0)], min_partitions=5) == []
    assert split([]) == []


def test_the_largest_partitions_are_cut_to_have_enough_tasks() -> None:
    tasks = split([range_of(0, 90), range_of(1, 10)], min_partitions=4)
    assert [str(one) for (one,) in tasks] == [
        "orders-0 from 0 to 30",
        "orders-0 from 30 to 60",
        "orders-0 from 60 to 90",
        "orders-1 from 0 to 10",
    ]


def test_no_task_has_more_records_than_allowed() -> None:
    assert [one.size for (one,) in split([range_of(0, 25)], max_records=10)] == [8, 8, 9]


def test_a_hundred_tiny_partitions_make_as_many_tasks_as_there_are_cores() -> None:
    tasks = split([range_of(index, 10) for index in range(100)], parallelism=2)
    assert [len(task) for task in tasks] == [50, 50]


def test_a_hundred_large_partitions_make_a_hundred_tasks() -> None:
    assert len(split([range_of(index, ROWS_PER_TASK) for index in range(100)], parallelism=2)) == 100


def test_cores_get_the_same_number_of_tasks() -> None:
    for rows in (100_000, 130_000, 260_000):
        tasks = split([range_of(index, rows + index) for index in range(8)], parallelism=2)
        assert len(tasks) % 2 == 0, "the last task would have a core for itself, and the other core nothing to do"


def test_tasks_are_about_equal() -> None:
    tasks = split([range_of(index, 100 * (index + 1)) for index in range(20)], parallelism=4)
    rows = [sum(one.size for one in task) for task in tasks]
    assert len(tasks) == 4
    assert max(rows) - min(rows) < 0.1 * max(rows)


def test_more_tasks_than_partitions_are_wished_for_than_there_are_records() -> None:
    assert [one.size for (one,) in split([range_of(0, 3)], min_partitions=10)] == [1, 1, 1]
