"""What control records and the transaction index hold."""

from ottla.wire.schema import int16, int32, int64, message


@message(versions="0")
class ControlRecordTypeSchema:
    """A control record's key, after its version: 0 aborts, 1 commits."""

    type: int16 = 0


@message(versions="0")
class EndTxnMarker:
    """The value of a control record that ends a transaction."""

    coordinator_epoch: int32 = 0


@message(versions="0")
class AbortedTxn:
    """One line of a transaction index."""

    producer_id: int64 = 0
    first_offset: int64 = 0
    last_offset: int64 = 0
    last_stable_offset: int64 = 0
