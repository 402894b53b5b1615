"""DeleteTopics (API key 20). Delete topics."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@part
class DeleteTopicState:
    name: str | None = None
    topic_id: uuid = v()


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    """v4 flexible; v6 adds topics; drops topic_names."""

    topics: list[DeleteTopicState] = v("6+")
    topic_names: list[str] = v("0-5")
    timeout_ms: int32 = 0


@part
class DeletableTopicResult:
    name: str | None = v(nullable="6+")
    topic_id: uuid = v("6+")
    error_code: int16 = 0
    error_message: str | None = v("5+", None)


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    """What each version changed.

    v1 adds throttle_time_ms.
    v4 flexible.
    v5 adds error_message.
    v6 adds topic_id; name may be null.
    """

    throttle_time_ms: int32 = v("1+")
    responses: list[DeletableTopicResult] = v()
