"""Compaction in a broker: off the event loop, and one log that cannot be compacted is in nobody's way."""

import threading
from typing import Any

import pytest

from ottla.broker.cleaner import Cleaner
from ottla.log.clean import Compaction
from ottla.log.segment import Segment
from tests.unit.broker.small_broker import SmallBroker

COMPACTED = {"cleanup_policy": "compact", "segment_bytes": "1000", "min_cleanable_dirty_ratio": "0.01"}


def fill(small: SmallBroker, topic: str) -> int:
    """Make a topic that is worth compacting; bytes of its log."""
    small.create(topic, 1, **COMPACTED)
    for _ in range(50):
        small.append(topic)
    return small.broker.leader(topic, 0).log.size


def test_nothing_that_takes_long_is_done_on_the_event_loop(small: SmallBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fill(small, "t")
    threads: dict[str, set[int]] = {}

    def watch(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def watched(*args: Any, **named: Any) -> Any:
            threads.setdefault(name, set()).add(threading.get_ident())
            return original(*args, **named)

        monkeypatch.setattr(owner, name, watched)

    watch(Compaction, "build_map")
    watch(Compaction, "rewrite")
    # To see which segments can become one, the ends of their files are read.
    watch(Segment, "last_offset")
    watch(Segment, "sync")
    assert small.run(Cleaner(small.broker).run()) == 1
    assert small.broker.leader("t", 0).log.size < before / 2
    assert threads.keys() == {"build_map", "rewrite", "last_offset", "sync"}
    for name, found in threads.items():
        assert threading.get_ident() not in found, name


def test_a_log_that_is_damaged_does_not_keep_others_from_being_compacted(
    small: SmallBroker, caplog: pytest.LogCaptureFixture
) -> None:
    before = fill(small, "sound")
    # More of it is dirty, so that it is the first one.
    damaged = fill(small, "damaged")
    small.broker.disk.open(f"damaged-0/{0:020d}.log").write_at(0, bytes(60))
    for _ in range(50):
        small.append("damaged")
    assert small.run(Cleaner(small.broker).run()) == 2
    assert "damaged-0: compaction was given up" in caplog.text
    assert small.broker.leader("sound", 0).log.size < before / 2
    assert small.broker.leader("damaged", 0).log.size > damaged


def test_a_log_that_is_deleted_meanwhile_does_not_keep_others_from_being_compacted(
    small: SmallBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fill(small, "stays")
    fill(small, "goes")
    original = Compaction.build_map

    def build_map(compaction: Compaction) -> int:
        if small.broker.logs.partitions.pop(("goes", 0), None) is not None:
            small.broker.disk.rename("goes-0", "goes-0.x-delete")
        return original(compaction)

    monkeypatch.setattr(Compaction, "build_map", build_map)
    small.run(Cleaner(small.broker).run())
    assert "goes-0: compaction was given up" in caplog.text
    assert small.broker.leader("stays", 0).log.size < before / 2
