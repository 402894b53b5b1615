"""What to read next, and what is not there any more."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping

from ottla.client.cluster import Cluster
from ottla.client.errors import UnknownTopicOrPartitionError
from ottla.client.offsets import EARLIEST, LATEST
from ottla.client.types import TopicPartition
from ottla.spark.bounds import find_ends
from ottla.spark.offsets import Offsets
from ottla.spark.options import SourceOptions
from ottla.spark.splitting import Range, Ranges

LISTED_LOSSES = 10

log = logging.getLogger(__name__)


class DataLossError(Exception):
    """Records that should have been read are gone."""


def report_losses(options: SourceOptions, losses: Iterable[str]) -> None:
    """Raise, or warn if the user has said that the query shall go on."""
    found = list(losses)
    if not found:
        return
    more = f"; and {len(found) - LISTED_LOSSES} more" if len(found) > LISTED_LOSSES else ""
    text = "; ".join(found[:LISTED_LOSSES]) + more
    if options.fail_on_data_loss:
        raise DataLossError(
            f"records that should be read may be lost: {text}. To go on with what there is, set option failOnDataLoss "
            f"to false; to keep it from happening, have topics keep records for longer (retention.ms, "
            f"retention.bytes), or read more often; if a topic was created anew, begin with a new checkpoint"
        )
    log.warning("records may be lost, and the query goes on since failOnDataLoss is false: %s", text)


async def plan_batch(cluster: Cluster, options: SourceOptions) -> Ranges:
    """What a batch query reads."""
    places = await options.topics.find(cluster)
    starts = await options.start.find(cluster, places, options.isolation)
    ends = await options.end.find(cluster, places, options.isolation)
    if late := [Range(place, starts[place], ends[place]) for place in places if starts[place] > ends[place]]:
        raise ValueError(
            f"option {options.start.option} begins after {options.end.option} or the last record: "
            f"{'; '.join(map(str, late[:LISTED_LOSSES]))}; set it to offsets before that"
        )
    return await keep_what_is_there(
        cluster, options, [Range(place, starts[place], ends[place]) for place in places if starts[place] < ends[place]]
    )


async def find_start(cluster: Cluster, options: SourceOptions) -> Offsets:
    """Where a streaming query begins."""
    places = await options.topics.find(cluster)
    return await options.start.find(cluster, places, options.isolation)


async def find_latest(cluster: Cluster, options: SourceOptions, known: Mapping[TopicPartition, int]) -> Offsets:
    """Where the partitions end that there are now. What is strange about that is looked at again a few times.

    A broker that is behind may tell of less than what was read, and a topic may be gone for a moment only.
    """
    retries = options.offset_retries
    # Who goes on whatever is lost goes on without topics too.
    may_be_gone = {place.topic for place in known} if options.fail_on_data_loss else set(options.topics.names)
    while True:
        try:
            places = await options.topics.find(cluster, may_be_gone=may_be_gone)
            latest = await find_ends(cluster, dict.fromkeys(places, LATEST), options.isolation)
            if retries == 0 or all(latest.get(place, -1) >= offset for place, offset in known.items()):
                return latest
        except UnknownTopicOrPartitionError:
            # Either a topic never was there, or it was deleted after partitions were listed.
            if retries == 0:
                raise
        retries -= 1
        await asyncio.sleep(options.offset_retry_interval_ms / 1000)


def losses_between(known: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> list[str]:
    """What is wrong with the ends of partitions, in the light of what was read."""
    found = [f"{place} does not exist any more; {known[place]} was next" for place in sorted(known.keys() - latest)]
    found += [
        f"{place} ends at {latest[place]}, but {offset} was next, as if the topic was created anew"
        for place, offset in sorted(known.items())
        if place in latest and latest[place] < offset
    ]
    return found


def are_continued(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> bool:
    """Whether no partition is new or was created anew, so that reading goes on where it was."""
    return not _anew(starts, ends)


def _anew(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    return [place for place, end in ends.items() if starts.get(place, end + 1) > end]


async def find_beginnings(
    cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Offsets:
    """Where to begin in each partition that there is: new ones, and those that were created anew, at the earliest."""
    anew = _anew(starts, ends)
    earliest = await find_ends(cluster, dict.fromkeys(anew, EARLIEST))
    return {place: earliest.get(place, starts.get(place, 0)) for place in ends}


async def plan_micro_batch(
    cluster: Cluster,
    options: SourceOptions,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> Ranges:
    """What a batch of a streaming query reads."""
    beginnings = await find_beginnings(cluster, starts, ends)
    losses = losses_between(starts, ends)
    losses += [
        f"{place} is new, and begins at {beginnings[place]} instead of 0"
        for place in sorted(ends.keys() - starts)
        if beginnings[place] > 0
    ]
    report_losses(options, losses)
    ranges = [Range(place, beginnings[place], end) for place, end in ends.items() if beginnings[place] < end]
    return await keep_what_is_there(cluster, options, ranges)


async def keep_what_is_there(cluster: Cluster, options: SourceOptions, ranges: Collection[Range]) -> Ranges:
    """The ranges without what is gone."""
    retries = options.offset_retries if ranges else 0
    while True:
        earliest, latest = await cluster.retrying(lambda: _find_both_ends(cluster, options, ranges))
        # A broker that has just become the leader may not know yet how far records are committed.
        if retries == 0 or all(latest.get(one.place, -1) >= one.end for one in ranges):
            break
        retries -= 1
        await asyncio.sleep(options.offset_retry_interval_ms / 1000)
    losses: list[str] = []
    kept: Ranges = []
    for place, start, end in ranges:
        wanted = f"offsets {start} to {end} were to be read"
        if place not in latest:
            losses.append(f"{place} does not exist any more; {wanted}")
            continue
        first, last = earliest[place], latest[place]
        if start < first:
            losses.append(f"{place} begins at {first}, but {wanted}")
        if end > last:
            losses.append(f"{place} ends at {last}, but {wanted}")
        if max(start, first) < min(end, last):
            kept.append(Range(place, max(start, first), min(end, last)))
    report_losses(options, losses)
    return kept


async def _find_both_ends(
    cluster: Cluster, options: SourceOptions, ranges: Collection[Range]
) -> tuple[Offsets, Offsets]:
    """The ends of the partitions that exist."""
    places = [one.place for one in ranges]
    if not places:
        return {}, {}
    for topic in {place.topic for place in places}:
        cluster.picture.forget_topic(topic)
    missing = (await cluster.find_leaders(places)).missing
    there = [place for place in places if not isinstance(missing.get(place), UnknownTopicOrPartitionError)]
    earliest, latest = await asyncio.gather(
        find_ends(cluster, dict.fromkeys(there, EARLIEST)),
        find_ends(cluster, dict.fromkeys(there, LATEST), options.isolation),
    )
    return earliest, latest
