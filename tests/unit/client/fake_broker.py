"""A broker that keeps everything in memory: enough for the client and the commands to be tried against.

It runs in a thread of its own, on the listener that ships, and answers every version that the codec has. Tests can make
it answer with an error a given number of times.
"""

import asyncio
import threading
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

from ottla.net import Listener, Reply, ServerConnection
from ottla.record import Batch, batches
from ottla.record.convert import downconvert, upconvert
from ottla.wire import api
from ottla.wire.api import (
    api_versions,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    fetch,
    incremental_alter_configs,
    list_offsets,
    metadata,
    produce,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_request, encode_response, read_request_prefix
from ottla.wire.schema import schema_of

LIMIT = 1 << 26
KEYS = (0, 1, 2, 3, 18, 19, 20, 32, 37, 44)
NODE_ID = 1


class FakeTopic:
    """A topic: batches by partition, and configs."""

    def __init__(self, topic_id: bytes, partitions: int) -> None:
        self.topic_id = topic_id
        self.logs: list[list[bytes]] = [[] for _ in range(partitions)]
        self.configs: dict[str, str] = {}

    def end_offset(self, partition: int) -> int:
        log = self.logs[partition]
        return Batch(log[-1]).next_offset if log else 0


class FakeBroker:
    """`newest` limits the versions it offers, by API key; those with -1 it does not have."""

    def __init__(self, newest: dict[int, int] | None = None, *, auto_create: bool = True) -> None:
        newest = newest or {}
        self.versions = {
            key: min(newest.get(key, 99), schema_of(api.request(key)).versions.last)
            for key in KEYS
            if newest.get(key, 0) >= 0
        }
        self.auto_create = auto_create
        self.topics: dict[str, FakeTopic] = {}
        self.broker_configs: dict[str, str] = {"log.retention.hours": "168"}
        self.requests: list[tuple[str, int]] = []
        """Which requests came, in which version."""
        self.failures: dict[int, list[ErrorCode]] = defaultdict(list)
        """Errors to answer with, each once, by API key."""
        self.address = ("", 0)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    @property
    def bootstrap(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    async def _serve(self) -> None:
        listener = Listener(self._handle)
        self.address = await listener.start("127.0.0.1", 0)
        self._ready.set()
        await self._stop.wait()
        await listener.stop(timeout_ms=100)

    def _handle(self, connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        key, version, correlation_id = read_request_prefix(frame)
        if version > self.versions[key]:
            assert key == 18, f"{api.api_name(key)} v{version} is not offered"
            refusal = api_versions.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            return encode_response(refusal, 0, correlation_id=correlation_id)
        _, request = decode_request(api.request(key), version, frame)
        self.requests.append((api.api_name(key), version))
        failure = self.failures[key].pop(0) if self.failures[key] else ErrorCode.NONE
        response = getattr(self, "_" + api.MODULES[key])(request, version, failure)
        if key == 0 and request.acks == 0:
            return None
        buffers = encode_response(response, version, correlation_id=correlation_id)
        empty_fetch = key == 1 and not any(one.records for topic in response.responses for one in topic.partitions)
        return _later(buffers, request.max_wait_ms) if empty_fetch else buffers

    def _api_versions(self, request: Any, version: int, failure: int) -> Any:
        ranges = [api_versions.ApiVersion(api_key=key, max_version=last) for key, last in self.versions.items()]
        return api_versions.ApiVersionsResponse(api_keys=ranges)

    def create(self, name: str, partitions: int = 1) -> FakeTopic:
        self.topics[name] = FakeTopic((len(self.topics) + 1).to_bytes(16, "big"), partitions)
        return self.topics[name]

    def _metadata(self, request: Any, version: int, failure: int) -> Any:
        everything = request.topics is None or (version == 0 and not request.topics)
        names = sorted(self.topics) if everything else [topic.name for topic in request.topics]
        answers = []
        for name in names:
            if name not in self.topics and self.auto_create and request.allow_auto_topic_creation:
                self.create(name, 4)
            answer = metadata.MetadataResponseTopic(name=name, error_code=failure)
            if name not in self.topics:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not failure:
                answer.topic_id = self.topics[name].topic_id
                answer.partitions = [
                    metadata.MetadataResponsePartition(
                        partition_index=index, leader_id=NODE_ID, replica_nodes=[NODE_ID], isr_nodes=[NODE_ID]
                    )
                    for index in range(len(self.topics[name].logs))
                ]
            answers.append(answer)
        host, port = self.address
        broker = metadata.MetadataResponseBroker(node_id=NODE_ID, host=host, port=port)
        return metadata.MetadataResponse(brokers=[broker], controller_id=NODE_ID, topics=answers)

    def _find(self, topic: Any, name: str) -> FakeTopic:
        if topic.topic_id != bytes(16):
            return next(one for one in self.topics.values() if one.topic_id == topic.topic_id)
        return self.topics[name]

    def _produce(self, request: Any, version: int, failure: int) -> Any:
        response = produce.ProduceResponse()
        for topic in request.topic_data:
            found = self._find(topic, topic.name)
            answer = produce.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            response.responses.append(answer)
            for data in topic.partition_data:
                base_offset = found.end_offset(data.index)
                answer.partition_responses.append(
                    produce.PartitionProduceResponse(index=data.index, error_code=failure, base_offset=base_offset)
                )
                if failure:
                    continue
                raw = bytearray(data.records if version >= 3 else upconvert(data.records, LIMIT, base_offset=0))
                batch = Batch(raw)
                batch.validate()
                batch.assign(base_offset, 0)
                found.logs[data.index].append(bytes(raw))
        return response

    def _fetch(self, request: Any, version: int, failure: int) -> Any:
        response = fetch.FetchResponse()
        for topic in request.topics:
            found = self._find(topic, topic.topic)
            answer = fetch.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            response.responses.append(answer)
            for wanted in topic.partitions:
                end = found.end_offset(wanted.partition)
                code = ErrorCode(failure)
                if wanted.fetch_offset > end:
                    code = ErrorCode.OFFSET_OUT_OF_RANGE
                run = b"".join(
                    raw for raw in found.logs[wanted.partition] if Batch(raw).next_offset > wanted.fetch_offset
                )
                if version < 4:
                    run = downconvert(run, 1 if version >= 2 else 0, LIMIT, first_offset=wanted.fetch_offset)
                answer.partitions.append(
                    fetch.PartitionData(
                        partition_index=wanted.partition,
                        error_code=code,
                        high_watermark=end,
                        records=b"" if code else run,
                    )
                )
        return response

    def _list_offsets(self, request: Any, version: int, failure: int) -> Any:
        response = list_offsets.ListOffsetsResponse()
        for topic in request.topics:
            answer = list_offsets.ListOffsetsTopicResponse(name=topic.name)
            response.topics.append(answer)
            for wanted in topic.partitions:
                found = self.topics[topic.name]
                offset = found.end_offset(wanted.partition_index)
                if wanted.timestamp == -2:
                    offset = 0
                elif wanted.timestamp >= 0:
                    later = [
                        batch.base_offset
                        for batch in batches(b"".join(found.logs[wanted.partition_index]))
                        if isinstance(batch, Batch) and batch.max_timestamp >= wanted.timestamp
                    ]
                    offset = min(later, default=-1)
                answer.partitions.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index,
                        error_code=failure,
                        offset=offset,
                        old_style_offsets=[offset],
                    )
                )
        return response

    def _create_topics(self, request: Any, version: int, failure: int) -> Any:
        response = create_topics.CreateTopicsResponse()
        for topic in request.topics:
            result = create_topics.CreatableTopicResult(name=topic.name, error_code=failure, error_message=None)
            if topic.name in self.topics:
                result.error_code = ErrorCode.TOPIC_ALREADY_EXISTS
                result.error_message = f"Topic '{topic.name}' already exists."
            elif not failure and not request.validate_only:
                made = self.create(topic.name, 1 if topic.num_partitions < 0 else topic.num_partitions)
                made.configs = {config.name: config.value for config in topic.configs}
            response.topics.append(result)
        return response

    def _delete_topics(self, request: Any, version: int, failure: int) -> Any:
        names = [topic.name for topic in request.topics] if version >= 6 else request.topic_names
        response = delete_topics.DeleteTopicsResponse()
        for name in names:
            gone = self.topics.pop(name, None)
            code = ErrorCode.NONE if gone else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response.responses.append(delete_topics.DeletableTopicResult(name=name, error_code=code))
        return response

    def _create_partitions(self, request: Any, version: int, failure: int) -> Any:
        response = create_partitions.CreatePartitionsResponse()
        for topic in request.topics:
            logs = self.topics[topic.name].logs
            result = create_partitions.CreatePartitionsTopicResult(name=topic.name)
            if topic.count <= len(logs):
                result.error_code = ErrorCode.INVALID_PARTITIONS
                result.error_message = f"Topic already has {len(logs)} partitions."
            logs += [[] for _ in range(topic.count - len(logs))]
            response.results.append(result)
        return response

    def _configs(self, resource: Any) -> dict[str, str] | None:
        if resource.resource_type == 4:
            return self.broker_configs
        topic = self.topics.get(resource.resource_name)
        return None if topic is None else topic.configs

    def _describe_configs(self, request: Any, version: int, failure: int) -> Any:
        response = describe_configs.DescribeConfigsResponse()
        for resource in request.resources:
            result = describe_configs.DescribeConfigsResult(
                resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
            )
            response.results.append(result)
            configs = self._configs(resource)
            if configs is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            source = 1 if resource.resource_type == 2 else 4
            result.configs = [
                describe_configs.DescribeConfigsResourceResult(name=name, value=value, config_source=source)
                for name, value in configs.items()
            ]
            result.configs.append(
                describe_configs.DescribeConfigsResourceResult(
                    name="segment.bytes", value="1073741824", config_source=5, is_default=True
                )
            )
        return response

    def _incremental_alter_configs(self, request: Any, version: int, failure: int) -> Any:
        response = incremental_alter_configs.IncrementalAlterConfigsResponse()
        for resource in request.resources:
            result = incremental_alter_configs.AlterConfigsResourceResponse(
                resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
            )
            response.responses.append(result)
            configs = self._configs(resource)
            assert configs is not None
            for change in resource.configs:
                if change.name == "bad.name":
                    result.error_code = ErrorCode.INVALID_CONFIG
                    result.error_message = "Unknown config name: bad.name"
                elif change.config_operation == 1:
                    configs.pop(change.name, None)
                else:
                    configs[change.name] = change.value
        return response


async def _later(buffers: list[Any], wait_ms: int) -> list[Any]:
    await asyncio.sleep(wait_ms / 1000)
    return buffers
