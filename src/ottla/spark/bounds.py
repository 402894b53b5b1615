"""Where reading begins and where it ends, as users say it: ends of the log, offsets or times."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.offsets import EARLIEST, LATEST, IsolationLevel, find_offsets
from ottla.client.types import TopicPartition
from ottla.spark.offsets import Offsets, check_offset
from ottla.spark.topics import listed

OFFSET_NAMES = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class Bound:
    """A beginning or an end: the same for all partitions, or one for each."""

    option: str
    """The option that says so, for messages."""
    offsets: int | Mapping[TopicPartition, int] = LATEST
    """EARLIEST, LATEST, or offsets, EARLIEST and LATEST among them."""
    times_ms: int | Mapping[TopicPartition, int] | None = None
    """Stands instead of the offsets if it is not None: the first records at or after a time."""
    or_latest: bool = False
    """Where there is no record at or after a time the end of the log is meant, rather than an error."""

    @property
    def is_fixed(self) -> bool:
        """Whether the same offsets will be found again later."""
        if self.times_ms is not None:
            return not self.or_latest
        return LATEST not in self.offsets.values() if isinstance(self.offsets, Mapping) else self.offsets != LATEST

    async def find(self, cluster: Cluster, places: Collection[TopicPartition], isolation: IsolationLevel) -> Offsets:
        """The offsets in these partitions."""
        if self.times_ms is not None:
            return await self._by_time(cluster, self._for_each(places, self.times_ms), isolation)
        wanted = self._for_each(places, self.offsets)
        ends = {place: spec for place, spec in wanted.items() if spec in (EARLIEST, LATEST)}
        return {**wanted, **await find_ends(cluster, ends, isolation)}

    def _for_each(self, places: Collection[TopicPartition], said: int | Mapping[TopicPartition, int]) -> Offsets:
        if isinstance(said, int):
            return dict.fromkeys(places, said)
        wrong = []
        if missing := set(places) - set(said):
            wrong.append(f"says nothing about {listed(missing)}")
        if strange := set(said) - set(places):
            wrong.append(f"speaks of {listed(strange)}, which are not read")
        if wrong:
            hint = "" if self.times_ms is not None else f"; {EARLIEST} means the earliest and {LATEST} the latest"
            raise ValueError(f"option {self.option} {' and '.join(wrong)}; name each partition that is read{hint}")
        return dict(said)

    async def _by_time(self, cluster: Cluster, times_ms: Offsets, isolation: IsolationLevel) -> Offsets:
        answers = await find_offsets(cluster, times_ms, isolation)
        found = {place: answer.offset for place, answer in answers.items() if answer is not None}
        late = [place for place in times_ms if place not in found]
        if late and not self.or_latest:
            raise ValueError(
                f"option {self.option}: no record of {listed(late)} is at or after {times_ms[late[0]]} ms; choose an "
                f"earlier time, or set startingOffsetsByTimestampStrategy to latest"
            )
        return {**found, **await find_ends(cluster, dict.fromkeys(late, LATEST), isolation)}


async def find_ends(
    cluster: Cluster, specs: Mapping[TopicPartition, int], isolation: IsolationLevel = "read_uncommitted"
) -> Offsets:
    """Where logs begin (EARLIEST) or end (LATEST)."""
    if not specs:
        return {}
    found = await find_offsets(cluster, specs, isolation)
    return {place: 0 if answer is None else answer.offset for place, answer in found.items()}


def parse_start(options: Mapping[str, str], *, default: int) -> Bound:
    """Where to begin. The time for all partitions goes before times of each, and these before offsets.

    >>> parse_start({"startingOffsets": "earliest"}, default=LATEST).offsets == EARLIEST
    True
    >>> parse_start({"startingOffsets": "first"}, default=LATEST)
    Traceback (most recent call last):
    ValueError: option startingOffsets is 'first'; write earliest, latest, or JSON as {"orders": {"0": 23, "1": -2}}
    """
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise ValueError(f"option startingOffsetsByTimestampStrategy is {strategy!r}; it must be error or latest")
    return _parse(options, "starting", default, or_latest=strategy == "latest")


def parse_end(options: Mapping[str, str]) -> Bound:
    """Where to end, in the same order. Where there is no record at or after a time, the end of the log is meant."""
    return _parse(options, "ending", LATEST, or_latest=True)


def _parse(options: Mapping[str, str], side: str, default: int, *, or_latest: bool) -> Bound:
    name = f"{side}Timestamp"
    if name in options:
        text = options[name].strip()
        if not text.isdecimal():
            raise ValueError(f"option {name} is {text!r}; write milliseconds since 1970")
        return Bound(name, times_ms=int(text), or_latest=or_latest)
    name = f"{side}OffsetsByTimestamp"
    if name in options:
        example = '{"orders": {"0": 1700000000000}} with milliseconds since 1970'
        times = _by_partition(name, options[name], f"write JSON as {example}")
        if any(isinstance(time, bool) or not isinstance(time, int) or time < 0 for time in times.values()):
            raise ValueError(f"option {name} is {options[name]!r}; write JSON as {example}")
        return Bound(name, times_ms=times, or_latest=or_latest)
    name = f"{side}Offsets"
    text = options.get(name, "").strip()
    if not text:
        return Bound(name, default)
    if text.lower() in OFFSET_NAMES:
        return Bound(name, OFFSET_NAMES[text.lower()])
    offsets = _by_partition(name, text, 'write earliest, latest, or JSON as {"orders": {"0": 23, "1": -2}}')
    try:
        return Bound(name, {place: check_offset(offset) for place, offset in offsets.items()})
    except ValueError as error:
        raise ValueError(f"option {name}: {error}") from None


def _by_partition(name: str, text: str, advice: str) -> dict[TopicPartition, Any]:
    try:
        return {
            TopicPartition(topic, int(partition)): value
            for topic, partitions in json.loads(text).items()
            for partition, value in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"option {name} is {text!r}; {advice}") from None
