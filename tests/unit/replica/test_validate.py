"""What a producer sent, checked where it lies."""

from ottla.config.topic import TopicConfig
from ottla.record import Batch, Record, build_batch
from ottla.replica.validate import check_records


def test_a_batch_in_a_writable_buffer_is_checked_and_stamped_where_it_is() -> None:
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"v")])
    frame = bytearray(b"before" + batch + b"after")
    view = memoryview(frame)[6 : 6 + len(batch)]
    checked = check_records(view, TopicConfig(), 9, 1_700_000_000_000)
    checked.batch.assign(70, 3)
    assert Batch(view).base_offset == 70
    assert (bytes(frame[:6]), bytes(frame[6 + len(batch) :])) == (b"before", b"after")


def test_a_batch_that_cannot_be_written_to_is_copied() -> None:
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"v")])
    check_records(batch, TopicConfig(), 9, 1_700_000_000_000).batch.assign(70, 3)
    assert Batch(batch).base_offset == 0
