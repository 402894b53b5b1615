"""Which segments have had their time, by age, by size of the log, or because all their records were deleted."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.config.topic import TopicConfig
from ottla.log.state import LogState


class Aging(Protocol):
    """What retention must know of a segment, be its log open or closed."""

    @property
    def base_offset(self) -> int:
        """Where it begins."""

    @property
    def size(self) -> int:
        """Bytes of its batches."""

    @property
    def largest_timestamp(self) -> int:
        """How new its records are."""


class Removed(NamedTuple):
    """A segment that retention has taken away, and why."""

    base_offset: int
    size: int
    reason: str


def outlived(
    segments: Sequence[Aging],
    config: TopicConfig,
    *,
    now_ms: int,
    start_offset: int,
    high_watermark: int,
    end_offset: int,
) -> list[Removed]:
    """The segments that may go, oldest first, all of them replicated. The last is among them only if it has records."""
    removed = []
    deletes = "delete" in config.cleanup_policy
    excess = sum(segment.size for segment in segments) - config.retention_bytes if config.retention_bytes >= 0 else -1
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        next_offset = end_offset if is_last else segments[number + 1].base_offset
        if next_offset > high_watermark or (is_last and segment.size == 0):
            break
        age_ms = now_ms - segment.largest_timestamp
        if not is_last and next_offset <= start_offset:
            reason = f"its records lie before the log's start, {start_offset}"
        elif deletes and excess >= segment.size:
            reason = f"the log is {excess} bytes larger than retention.bytes, {config.retention_bytes}"
        elif deletes and 0 <= config.retention_ms < age_ms:
            reason = f"its newest record is {age_ms} ms old, and retention.ms is {config.retention_ms}"
        else:
            break
        excess -= segment.size
        removed.append(Removed(segment.base_offset, segment.size, reason))
    return removed


def retention_is_due(state: LogState, config: TopicConfig, now_ms: int) -> bool:
    """Whether retention would find something in a closed log."""
    return bool(
        outlived(
            state.segments,
            config,
            now_ms=now_ms,
            start_offset=state.start_offset,
            high_watermark=state.end_offset,
            end_offset=state.end_offset,
        )
    )
