"""Error codes in replies, as exceptions."""

from ottla.wire.errors import ErrorCode, KafkaError


def check(code: int, message: str | None) -> None:
    """Raise KafkaError unless the code is that of success.

    >>> check(0, "topic 'a'")
    >>> check(36, "topic 'a'")
    Traceback (most recent call last):
    ottla.wire.errors.KafkaError: TOPIC_ALREADY_EXISTS: topic 'a'
    """
    if code:
        raise error_of(code, message)


def error_of(code: int, message: str | None) -> KafkaError:
    """The exception for a code, which may be one that only a newer broker knows."""
    try:
        return KafkaError(ErrorCode(code), message or "the broker gave no reason")
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"error code {code}, which this version does not know")
