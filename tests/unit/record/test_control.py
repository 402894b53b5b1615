"""Transaction markers, as brokers write them and other clients read them."""

import pytest

from ottla.record.batch import Batch, records
from ottla.record.control import ControlType, EndMarker, build_end_marker, control_type, read_end_marker
from ottla.record.kernels import Record
from ottla.wire.errors import ErrorCode, ProtocolError
from tests.unit.record.samples import NOW, AiokafkaBatch, KafkaPythonBatch


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_a_transactional_control_batch_of_one_record(commit: bool) -> None:
    data = build_end_marker(
        commit=commit, producer_id=77, producer_epoch=4, coordinator_epoch=9, timestamp_ms=NOW, base_offset=500
    )
    batch = Batch(data)
    batch.validate()
    assert (batch.control, batch.transactional, batch.count) == (True, True, 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 4, -1)
    [record] = records(batch)
    assert record.key == bytes([0, 0, 0, commit])
    assert record.value == bytes([0, 0, 0, 0, 0, 9])
    assert read_end_marker(record) == EndMarker(commit, 9)
    for other in (AiokafkaBatch(data), KafkaPythonBatch(data)):
        assert other.validate_crc()
        assert other.is_control_batch
        assert other.is_transactional
        assert [(found.offset, found.key) for found in other] == [(500, record.key)]


def test_control_records_of_other_kinds_are_no_markers() -> None:
    leader_change = Record(0, NOW, bytes([0, 0, 0, 2]), b"anything")
    assert control_type(leader_change) == 2
    assert read_end_marker(leader_change) is None


def test_fields_of_later_versions_are_ignored() -> None:
    record = Record(0, NOW, bytes([0, 1, 0, 1, 99]), bytes([0, 1, 0, 0, 0, 3, 99]))
    assert control_type(record) == ControlType.COMMIT
    assert read_end_marker(record) == EndMarker(True, 3)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, r"it is null \(control key\)"),
        (b"\0", None, r"version needs 2 bytes, 1 are left \(control key, byte 0\)"),
        (b"\0\0\0", None, r"needs 2 bytes, 1 are left \(control key, byte 2\)"),
        (b"\xff\xff\0\1", None, r"no version -1 \(control key, byte 0\)"),
        (b"\0\0\0\1", None, r"it is null \(end transaction marker\)"),
        (b"\0\0\0\1", b"\0\0\0\0\0", r"needs 4 bytes, 3 are left \(end transaction marker, byte 2\)"),
        (b"\0\0\0\0", b"\xff\xfe\0\0\0\0", r"no version -2 \(end transaction marker, byte 0\)"),
    ],
)
def test_a_malformed_marker_is_refused(key: bytes | None, value: bytes | None, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason) as caught:
        read_end_marker(Record(0, NOW, key, value))
    assert caught.value.code is ErrorCode.INVALID_RECORD
