"""Control batches: the markers with which a coordinator ends a transaction in a partition."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.wire.errors import ErrorCode, ProtocolError

_KEY = Struct(">hh")
_MARKER = Struct(">hi")


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
    version, number = _unpack(_KEY, record.key, "control key")
    if version < 0:
        raise _invalid(f"version {version} is negative", "control key")
    return number


def read_end_marker(record: Record) -> EndMarker | None:
    """The marker in a control record, or None if it is a control record of another kind."""
    number = control_type(record)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    # Later versions may only add fields, so what follows these is left alone.
    version, coordinator_epoch = _unpack(_MARKER, record.value, "end transaction marker")
    if version < 0:
        raise _invalid(f"version {version} is negative", "end transaction marker")
    return EndMarker(number == ControlType.COMMIT, coordinator_epoch)


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
    key = _KEY.pack(0, ControlType.COMMIT if commit else ControlType.ABORT)
    return build_batch(
        [Record(base_offset, timestamp_ms, key, _MARKER.pack(0, coordinator_epoch))],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def _unpack(layout: Struct, data: bytes | None, where: str) -> tuple[int, int]:
    if data is None or len(data) < layout.size:
        found = "null" if data is None else f"{len(data)} bytes"
        raise _invalid(f"{found} where at least {layout.size} bytes are needed", where)
    first, second = layout.unpack_from(data)
    return first, second


def _invalid(reason: str, where: str) -> ProtocolError:
    return ProtocolError(reason, where=where, code=ErrorCode.INVALID_RECORD)
