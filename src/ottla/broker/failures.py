"""What a client is told when a partition cannot be read."""

import logging

from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("ottla.broker")


def error_code(error: KafkaError | OSError, topic: str | bytes, index: int) -> ErrorCode:
    """The code of an error that concerns one partition; of a disk that fails the operator is told more.

    >>> error_code(KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "offset 7"), "t", 0).name
    'OFFSET_OUT_OF_RANGE'
    """
    if isinstance(error, KafkaError):
        return error.code
    log.error("%s-%d cannot be read: %s", topic if isinstance(topic, str) else topic.hex(), index, error)
    return ErrorCode.KAFKA_STORAGE_ERROR
