"""Control batches: the markers with which a coordinator ends a transaction in a partition."""

from enum import IntEnum
from typing import NamedTuple, TypeVar

from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.wire.embedded import decode_versioned, encode_versioned
from ottla.wire.embedded.control import ControlRecordTypeSchema, EndTxnMarker
from ottla.wire.errors import ErrorCode, ProtocolError

T = TypeVar("T")


class ControlType(IntEnum):
    """What a control record says. Readers skip the types that they do not know."""

    ABORT = 0
    COMMIT = 1


class EndMarker(NamedTuple):
    """The end of one producer's transaction."""

    commit: bool
    coordinator_epoch: int


def control_type(record: Record) -> int:
    """The type number in a control record's key.

    >>> control_type(Record(0, 0, bytes([0, 0, 0, 1]), None)) == ControlType.COMMIT
    True
    """
    return _decoded(ControlRecordTypeSchema, record.key, "control key").type


def read_end_marker(record: Record) -> EndMarker | None:
    """The marker in a control record, or None if it is a control record of another kind."""
    number = control_type(record)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    marker = _decoded(EndTxnMarker, record.value, "end transaction marker")
    return EndMarker(number == ControlType.COMMIT, marker.coordinator_epoch)


def build_end_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that commits or aborts what the producer has written in a partition.

    >>> from ottla.record.batch import Batch, records
    >>> marker = build_end_marker(
    ...     commit=True, producer_id=9, producer_epoch=1, coordinator_epoch=3, timestamp_ms=1_700_000_000_000
    ... )
    >>> read_end_marker(records(Batch(marker))[0])
    EndMarker(commit=True, coordinator_epoch=3)
    """
    key = encode_versioned(ControlRecordTypeSchema(type=ControlType.COMMIT if commit else ControlType.ABORT), 0)
    marker = encode_versioned(EndTxnMarker(coordinator_epoch=coordinator_epoch), 0)
    return build_batch(
        [Record(base_offset, timestamp_ms, key, marker)],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def _decoded(cls: type[T], data: bytes | None, where: str) -> T:
    if data is None:
        raise ProtocolError("it is null", where=where, code=ErrorCode.INVALID_RECORD)
    try:
        return decode_versioned(cls, data, from_the_future=True)
    except ProtocolError as error:
        # The batch around it can be answered, and it is the record that is at fault.
        raise ProtocolError(error.reason, offset=error.offset, where=where, code=ErrorCode.INVALID_RECORD) from error
