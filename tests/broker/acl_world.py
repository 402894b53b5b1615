"""A broker with rules of access, something in it that they are about, and all of its state to compare."""

from pathlib import Path
from typing import Any

from ottla.cluster.acl import (
    CLUSTER_NAME,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourceType,
)
from ottla.meta.store import Entry, MetaStore
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.api.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.schema import schema_of
from tests.unit.broker.small_broker import SmallBroker, Stranger, User

ALICE, ROOT = User("alice"), User("root")

TOPIC, CLASSIC_GROUP, CONSUMER_GROUP = "orders", "billing", "readers"
NEW_TOPIC, NEW_GROUP, TRANSACTION = "new", "newcomers", "payment"

SETTINGS = {
    "authorizer.class.name": "ottla",
    "super.users": ROOT.principal,
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}

AUTHORIZATION_FAILED = frozenset({29, 30, 31, 53, 65})


class World:
    """A topic with records, a group that has committed for it and one that reads it. The super user made all that."""

    def __init__(self, folder: Path, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.small = SmallBroker(folder, {**SETTINGS, **named})
        self.small.run(self.small.broker.users.load())
        self.small.broker.authorizer, authorizer = None, self.small.broker.authorizer
        self.topic_id = self.small.create(TOPIC, 2)
        self.small.append(TOPIC, count=5)
        self.small.broker.authorizer = authorizer
        self._prepare_groups()

    def _prepare_groups(self) -> None:
        offset = OffsetCommitRequestPartition(committed_offset=3)
        committed = OffsetCommitRequestTopic(name=TOPIC, partitions=[offset])
        commit = OffsetCommitRequest(group_id=CLASSIC_GROUP, topics=[committed])
        assert codes(self.ask(commit, 9, ROOT)) == set()
        join = ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP,
            member_id="member",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        assert codes(self.ask(join, 1, ROOT)) == set()

    def close(self) -> None:
        self.small.__exit__(None, None, None)

    def ask(self, body: object, version: int, who: Stranger = ALICE) -> Any:
        return self.small.ask(body, version, who)

    def rule(
        self,
        operation: ACLOperation,
        kind: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        principal: str = ALICE.principal,
        permission: ACLPermissionType = ACLPermissionType.ALLOW,
        pattern: ACLResourcePatternType = ACLResourcePatternType.LITERAL,
    ) -> None:
        """Have a rule made, as the super user does."""
        creation = AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=permission,
        )
        assert codes(self.ask(CreateAclsRequest(creations=[creation]), 3, ROOT)) == set()

    def state(self) -> dict[str, Any]:
        """All there is: what is in the store and in the logs, and the groups as those see them who may."""
        broker = self.small.broker
        listed = self.ask(ListGroupsRequest(), 5, ROOT).groups
        names = [group.group_id for group in listed]
        return {
            "store": self.small.run(_dump(broker.catalog.store, "/")),
            "topics": broker.image.topics,
            "logs": {
                place: (partition.log.start_offset, partition.log.end_offset, set(partition.log.producers.states))
                for place, partition in broker.logs.partitions.items()
            },
            "groups": repr(listed),
            "classic": repr(self.ask(DescribeGroupsRequest(groups=names), 6, ROOT)),
            "consumer": repr(self.ask(ConsumerGroupDescribeRequest(group_ids=names), 1, ROOT)),
            "configs": (dict(broker.config.dynamic), dict(broker.config.dynamic_default)),
            "sessions": len(broker.sessions),
        }


async def _dump(store: MetaStore, path: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for name, entry in (await store.entries(path)).items():
        below = f"{path.rstrip('/')}/{name}"
        found |= {below: entry, **await _dump(store, below)}
    return found


def codes(response: Any) -> set[int]:
    """All error codes in a response, at whatever depth; empty if all is well."""
    found: set[int] = set()
    for field in schema_of(type(response)).fields:
        value = getattr(response, field.name)
        if field.name == "error_code":
            found |= {value} - {0}
        elif isinstance(value, list) and value and hasattr(value[0], "__slots__"):
            found = found.union(*map(codes, value))
    return found
