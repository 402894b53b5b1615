from pathlib import Path
from typing import Any

import pytest

from ottla.wire.api.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def describe(small: SmallBroker, topics: list[DescribableLogDirTopic] | None = None, version: int = 5) -> Any:
    answer = small.ask(DescribeLogDirsRequest(topics=topics), version)
    assert answer.error_code == 0
    (result,) = answer.results
    return result


def sizes(result: Any) -> dict[tuple[str, int], int]:
    for topic in result.topics:
        assert all((found.offset_lag, found.is_future_key) == (0, False) for found in topic.partitions)
    return {
        (topic.name, found.partition_index): found.partition_size
        for topic in result.topics
        for found in topic.partitions
    }


@pytest.mark.parametrize("version", range(6))
def test_every_version_tells_the_size_of_every_partition(small: SmallBroker, tmp_path: Path, version: int) -> None:
    small.create("orders", partitions=2)
    small.create("other")
    small.append("orders", index=1, count=10)
    result = describe(small, version=version)
    assert (result.error_code, result.log_dir) == (0, str(tmp_path))
    written = (tmp_path / "orders-1" / "00000000000000000000.log").stat().st_size
    assert written > 0
    assert sizes(result) == {("orders", 0): 0, ("orders", 1): written, ("other", 0): 0}


def test_only_what_is_asked_for_and_there_is_told(small: SmallBroker) -> None:
    small.create("orders", partitions=2)
    small.create("other")
    asked = [
        DescribableLogDirTopic(topic="orders", partitions=[1, 5]),
        DescribableLogDirTopic(topic="nothing", partitions=[0]),
    ]
    assert list(sizes(describe(small, asked))) == [("orders", 1)]


def test_the_disk_is_measured_from_version_four_on(small: SmallBroker) -> None:
    result = describe(small, version=4)
    assert 0 < result.usable_bytes <= result.total_bytes
    assert (describe(small, version=3).total_bytes, describe(small, version=3).usable_bytes) == (-1, -1)


def test_a_disk_that_cannot_be_asked_is_told_as_a_storage_error(
    small: SmallBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> tuple[int, int]:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(small.broker.disk, "usage", broken)
    result = describe(small)
    assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
