"""DeleteShareGroupOffsets (API key 92). Delete a share group's positions."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@part
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = ""


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """The only version so far."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = v()


@part
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: uuid = v()
    error_code: int16 = 0
    error_message: str | None = None


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = v()
