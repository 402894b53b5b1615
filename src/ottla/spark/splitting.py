"""Ranges of partitions cut and packed into tasks."""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappush, heapreplace
from itertools import pairwise
from typing import NamedTuple

from ottla.client.types import TopicPartition

ROWS_PER_TASK = 500_000
"""What is worth a task of its own, though there are more tasks than cores already.

A task costs Spark about 70 ms of a core before it does anything, which is time for 100,000 small records.
"""


class Range(NamedTuple):
    """Records of one partition, from an offset to before another."""

    place: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many records there are at most."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.place} from {self.start} to {self.end}"


Ranges = list[Range]


def split(
    ranges: Iterable[Range],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    parallelism: int = 1,
) -> list[Ranges]:
    """The ranges of each task.

    A partition is read by one task, in order, unless `min_partitions` asks for more tasks than there are partitions, or
    it has more than `max_records`. Where there are more ranges than `parallelism`, small ones share tasks of about
    ROWS_PER_TASK or less, which are as many as all cores can do in one turn, or in two, and so on.

    >>> orders = TopicPartition("orders", 0)
    >>> [[str(one) for one in ranges] for ranges in split([Range(orders, 0, 10)], min_partitions=2)]
    [['orders-0 from 0 to 5'], ['orders-0 from 5 to 10']]
    """
    whole = sorted(one for one in ranges if one.size > 0)
    pieces = _cut(whole, min_partitions or 1, max_records)
    fewest = max(parallelism, min_partitions or 1)
    if len(pieces) <= fewest:
        return [[piece] for piece in pieces]
    turns = -(-sum(piece.size for piece in pieces) // (ROWS_PER_TASK * parallelism))
    return _pack(pieces, min(len(pieces), max(fewest, turns * parallelism)), max_records)


def _cut(ranges: Sequence[Range], at_least: int, max_records: int | None) -> Ranges:
    """Cut ranges that are too large, and then the largest until there are enough pieces."""
    counts = [1 if max_records is None else -(-one.size // max_records) for one in ranges]
    largest = [(-one.size // count, index) for index, (one, count) in enumerate(zip(ranges, counts, strict=True))]
    heapify(largest)
    for _ in range(at_least - sum(counts)):
        if not largest or largest[0][0] >= -1:
            break
        index = largest[0][1]
        counts[index] += 1
        heapreplace(largest, (-ranges[index].size // counts[index], index))
    return [piece for one, count in zip(ranges, counts, strict=True) for piece in _even_pieces(one, count)]


def _even_pieces(whole: Range, count: int) -> Ranges:
    edges = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [Range(whole.place, start, end) for start, end in pairwise(edges)]


def _pack(pieces: Ranges, count: int, most_rows: int | None) -> list[Ranges]:
    """Put pieces together in `count` tasks, the largest first, each where there is most room; in more if need be."""
    tasks: list[tuple[int, int]] = [(0, index) for index in range(count)]
    contents: list[Ranges] = [[] for _ in tasks]
    for piece in sorted(pieces, key=lambda one: -one.size):
        rows, index = tasks[0]
        if rows and most_rows is not None and rows + piece.size > most_rows:
            contents.append([piece])
            heappush(tasks, (piece.size, len(contents) - 1))
        else:
            contents[index].append(piece)
            heapreplace(tasks, (rows + piece.size, index))
    return sorted(sorted(ranges) for ranges in contents if ranges)
