"""The admin client without asyncio."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ottla.client.admin import (
    ACL,
    ACLFilter,
    ClientQuotaEntity,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ElectionType,
    Feature,
    GroupDescription,
    GroupLag,
    GroupListing,
    LogDirectory,
    MemberToRemove,
    NewPartitions,
    NewTopic,
    PartitionReassignment,
    ProducerState,
    TopicDescription,
    VersionRange,
)
from ottla.client.admin import Admin as ClientAdmin
from ottla.client.admin.group_progress import ResetTo
from ottla.client.admin.users import Alteration, ScramCredentialInfo
from ottla.client.given import GivenOffset
from ottla.client.offsets import IsolationLevel, OffsetSpec
from ottla.client.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from ottla.sync.face import Face, takes_arguments_of
from ottla.sync.loop import Background


class Admin(Face):
    """Looks at a cluster and changes it. It has the options of `ottla.Admin`, and the same methods without `await`.

    >>> with Admin(broker.bootstrap_servers) as admin:
    ...     admin.create_topics([NewTopic("orders", num_partitions=3)])
    ...     admin.list_topics()
    ['orders']

    What is asked for by name comes back as a dict by that name. A method that concerns several things does all that it
    can, and then raises if anything failed: for one thing the `KafkaError` that says which and why, for several a
    `SeveralFailedError`, whose `failures` has the error of each. Several threads may use one client.
    """

    @takes_arguments_of(ClientAdmin)
    def __init__(self, *servers: Any, **options: Any) -> None:
        self._admin = ClientAdmin(*servers, **options)

    async def _start_client(self, background: Background) -> None:
        await self._admin.start()

    async def _stop_client(self, *, is_finished: bool) -> None:
        await self._admin.stop()

    # Topics.

    def list_topics(self) -> list[str]:
        """The names of all topics, internal ones too.

        >>> admin.create_topics(["orders", "payments"])
        >>> admin.list_topics()
        ['orders', 'payments']
        """
        return self._call(self._admin.list_topics)

    def describe_topics(self, topics: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """Topics by name: those that are asked for, each of which must exist, or all.

        >>> admin.create_topics([NewTopic("orders", num_partitions=2)])
        >>> topic = admin.describe_topics(["orders"])["orders"]
        >>> [(one.partition, one.leader, one.replicas) for one in topic.partitions]
        [(0, 1, (1,)), (1, 1, (1,))]
        """
        return self._call(self._admin.describe_topics, topics)

    def create_topics(
        self, new_topics: Iterable[NewTopic | str], timeout_ms: int | None = None, validate_only: bool = False
    ) -> None:
        """Create topics, or with `validate_only` see whether they could be. A name alone leaves all to the broker.

        Where the answer to an attempt is lost, a topic that exists when it is tried again counts as created.

        >>> new = NewTopic("orders", num_partitions=3, topic_configs={"cleanup.policy": "compact"})
        >>> admin.create_topics([new, "payments"])
        >>> admin.create_topics(["orders"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.TopicAlreadyExistsError: TOPIC_ALREADY_EXISTS: ...
        """
        self._call(self._admin.create_topics, new_topics, timeout_ms, validate_only)

    def delete_topics(self, topics: Iterable[str], timeout_ms: int | None = None) -> None:
        """Delete topics with all their records.

        >>> admin.create_topics(["orders", "payments"])
        >>> admin.delete_topics(["orders"])
        >>> admin.list_topics()
        ['payments']
        """
        self._call(self._admin.delete_topics, topics, timeout_ms)

    def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Grow topics to these numbers of partitions. Keys go to other partitions from then on.

        >>> admin.create_topics([NewTopic("orders", 2)])
        >>> admin.create_partitions({"orders": 5})
        >>> len(admin.describe_topics(["orders"])["orders"].partitions)
        5
        """
        self._call(self._admin.create_partitions, topic_partitions, timeout_ms, validate_only)

    # Configs.

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Configs by name, for each resource.

        >>> admin.create_topics(["orders"])
        >>> orders = ConfigResource("topic", "orders")
        >>> entry = admin.describe_configs([orders])[orders]["cleanup.policy"]
        >>> entry.value, entry.source.name, entry.is_default
        ('delete', 'DEFAULT_CONFIG', True)
        """
        return self._call(self._admin.describe_configs, config_resources, include_synonyms, include_documentation)

    def alter_configs(self, config_resources: Iterable[ConfigResource], validate_only: bool = False) -> None:
        """Set configs to new values, or with None back to their defaults. Those that are not named stay as they are.

        A pair `("append", value)` or `("subtract", value)` adds to or takes from a config that is a list.

        >>> admin.create_topics(["orders"])
        >>> change = {"retention.ms": "60000", "cleanup.policy": ("append", "compact"), "segment.ms": None}
        >>> admin.alter_configs([ConfigResource("topic", "orders", change)])
        >>> found = admin.describe_configs([ConfigResource("topic", "orders", list(change))])
        >>> [entry.value for entry in found[ConfigResource("topic", "orders")].values()]
        ['delete,compact', '60000', '604800000']
        """
        self._call(self._admin.alter_configs, config_resources, validate_only)

    # Groups.

    def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[str] = (),
        types_filter: Iterable[str] = (),
    ) -> list[GroupListing]:
        """All groups by id, or those that certain brokers coordinate, in certain states, or of certain types.

        >>> admin.create_topics(["orders"])
        >>> admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0})
        >>> admin.list_groups(states_filter=["Empty"])
        [GroupListing(group_id='readers', protocol_type='', state='Empty', group_type='classic')]
        """
        return self._call(self._admin.list_groups, broker_ids, states_filter, types_filter)

    def list_consumer_groups(self, broker_ids: Iterable[int] | None = None) -> list[GroupListing]:
        """The groups of consumers: those of `list_groups` that share out partitions, or only have offsets.

        >>> admin.list_consumer_groups()
        []
        """
        return self._call(self._admin.list_consumer_groups, broker_ids)

    def describe_consumer_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """State and members of groups by their ids, whichever protocol they speak.

        >>> admin.create_topics(["orders"])
        >>> admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0})
        >>> group = admin.describe_consumer_groups(["readers"])["readers"]
        >>> group.state, group.group_type, group.members
        ('Empty', 'classic', ())
        """
        return self._call(self._admin.describe_consumer_groups, group_ids)

    def delete_consumer_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups without members, with their offsets.

        >>> admin.delete_consumer_groups(["readers"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.GroupIdNotFoundError: GROUP_ID_NOT_FOUND: there is no group 'readers'; ...
        """
        self._call(self._admin.delete_consumer_groups, group_ids)

    def remove_group_members(self, group_id: str, members: Iterable[MemberToRemove | str] | None = None) -> None:
        """Have members leave a group, all of them if none are named. Those that still run will join again.

        It is for those that do not run any more and whose sessions last: static members above all.

        >>> admin.remove_group_members("readers", [MemberToRemove(group_instance_id="reader-1")])
        ... # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.UnknownMemberIdError: UNKNOWN_MEMBER_ID: ...
        """
        self._call(self._admin.remove_group_members, group_id, members)

    # Where groups are.

    def list_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, in all partitions or in some. Where it has not, there is no entry.

        >>> admin.create_topics([NewTopic("orders", 2)])
        >>> admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 1): 0})
        >>> admin.list_consumer_group_offsets("readers")
        {TopicPartition(topic='orders', partition=1): OffsetAndMetadata(offset=0, metadata='', leader_epoch=-1)}
        """
        return self._call(self._admin.list_consumer_group_offsets, group_id, partitions)

    def alter_consumer_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, GivenOffset]) -> None:
        """Set offsets of a group without members: what they will read next. A new group comes into being.

        >>> admin.create_topics(["orders"])
        >>> admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0})
        >>> [group.group_id for group in admin.list_groups()]
        ['readers']
        """
        self._call(self._admin.alter_consumer_group_offsets, group_id, offsets)

    def consumer_group_lag(self, group_id: str) -> dict[TopicPartition, GroupLag]:
        """How far a group is behind, in each partition in which it has committed something.

        >>> admin.create_topics(["orders"])
        >>> admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0})
        >>> admin.consumer_group_lag("readers")
        {TopicPartition(topic='orders', partition=0): GroupLag(committed=0, end=0, lag=0)}
        """
        return self._call(self._admin.consumer_group_lag, group_id)

    def reset_consumer_group_offsets(
        self, group_id: str, topics: str | Iterable[str | TopicPartition], to: ResetTo
    ) -> dict[TopicPartition, int]:
        """Have a group without members read on elsewhere, in a topic, several of them, or single partitions.

        `to` is "earliest", "latest", an offset, or a datetime with a timezone, which stands for the first record at or
        after it. An offset that the log does not have stands for its nearer end. What was committed comes back.

        >>> admin.create_topics([NewTopic("orders", 2)])
        >>> admin.reset_consumer_group_offsets("readers", "orders", "earliest")
        {TopicPartition(topic='orders', partition=0): 0, TopicPartition(topic='orders', partition=1): 0}
        """
        return self._call(self._admin.reset_consumer_group_offsets, group_id, topics, to)

    def delete_consumer_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete what a group has committed in partitions of topics that none of its members reads.

        >>> admin.create_topics(["orders"])
        >>> admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0})
        >>> admin.delete_consumer_group_offsets("readers", [TopicPartition("orders", 0)])
        >>> admin.list_consumer_group_offsets("readers")
        {}
        """
        self._call(self._admin.delete_consumer_group_offsets, group_id, partitions)

    # Where records are.

    def list_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, OffsetSpec | int | datetime],
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Offsets in partitions: at an end, of the latest record, or of the first at or after a time: milliseconds,
        or a datetime with a timezone.

        None where there is no such record. With `read_committed` a partition ends where the first transaction begins
        that is not finished.

        >>> admin.create_topics(["orders"])
        >>> orders = TopicPartition("orders", 0)
        >>> admin.list_offsets({orders: OffsetSpec.LATEST})[orders].offset
        0
        >>> admin.list_offsets({orders: 1_700_000_000_000})[orders] is None
        True
        """
        return self._call(self._admin.list_offsets, topic_partition_specs, isolation_level)

    def beginning_offsets(self, topics: Iterable[str | TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets of the first records that are still there, in all partitions of topics, or in single ones.

        >>> admin.create_topics([NewTopic("orders", 2)])
        >>> admin.beginning_offsets(["orders"])
        {TopicPartition(topic='orders', partition=0): 0, TopicPartition(topic='orders', partition=1): 0}
        """
        return self._call(self._admin.beginning_offsets, topics)

    def end_offsets(
        self, topics: Iterable[str | TopicPartition], isolation_level: IsolationLevel = "read_uncommitted"
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will get, in all partitions of topics, or in single ones.

        >>> admin.create_topics(["orders"])
        >>> admin.end_offsets([TopicPartition("orders", 0)])
        {TopicPartition(topic='orders', partition=0): 0}
        """
        return self._call(self._admin.end_offsets, topics, isolation_level)

    # Records.

    def delete_records(
        self, records_to_delete: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before these offsets, all with -1; gives back where the partitions begin then.

        >>> admin.create_topics(["orders"])
        >>> admin.delete_records({TopicPartition("orders", 0): -1})
        {TopicPartition(topic='orders', partition=0): 0}
        """
        return self._call(self._admin.delete_records, records_to_delete, timeout_ms)

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """The idempotent and transactional producers that partitions remember.

        >>> admin.create_topics(["orders"])
        >>> admin.describe_producers([TopicPartition("orders", 0)])
        {TopicPartition(topic='orders', partition=0): ()}
        """
        return self._call(self._admin.describe_producers, partitions)

    # Replicas.

    def elect_leaders(
        self,
        election_type: ElectionType | str,
        partitions: Iterable[TopicPartition],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders of partitions; says of each whether there was anything to elect.

        Ottla's own broker has one replica of each partition, and does not offer it:

        >>> try:
        ...     admin.elect_leaders("preferred", [TopicPartition("orders", 0)])
        ... except KafkaError as error:
        ...     print(error.code.name)
        UNSUPPORTED_VERSION
        """
        return self._call(self._admin.elect_leaders, election_type, partitions, timeout_ms)

    def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None], timeout_ms: int | None = None
    ) -> None:
        """Begin to move partitions to these brokers, the preferred leader first; None calls a move off.

        It returns when the moves have begun; `list_partition_reassignments` tells which are not done yet.

        >>> try:
        ...     admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 3]})
        ... except KafkaError as error:
        ...     print(error.code.name)
        UNSUPPORTED_VERSION
        """
        self._call(self._admin.alter_partition_reassignments, reassignments, timeout_ms)

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The partitions that are being moved: all, or which of certain ones.

        >>> try:
        ...     admin.list_partition_reassignments()
        ... except KafkaError as error:
        ...     print(error.code.name)
        UNSUPPORTED_VERSION
        """
        return self._call(self._admin.list_partition_reassignments, partitions, timeout_ms)

    # The cluster.

    def describe_cluster(self) -> ClusterDescription:
        """The brokers of the cluster, and which of them is the controller.

        >>> cluster = admin.describe_cluster()
        >>> cluster.controller_id, [broker.node_id for broker in cluster.brokers]
        (1, [1])
        """
        return self._call(self._admin.describe_cluster)

    def find_coordinator(self, group_id: str) -> int:
        """The id of the broker that looks after a group.

        >>> admin.find_coordinator("readers")
        1
        """
        return self._call(self._admin.find_coordinator, group_id)

    def describe_log_dirs(
        self, partitions: Iterable[TopicPartition] | None = None, broker_ids: Iterable[int] | None = None
    ) -> dict[int, tuple[LogDirectory, ...]]:
        """The folders of brokers, by their ids, with what lies in them: all partitions, or certain ones.

        A folder that cannot be used is no failure here; its `error` says why.

        >>> admin.create_topics(["orders"])
        >>> (folder,) = admin.describe_log_dirs()[1]
        >>> folder.error, folder.replicas
        (None, {TopicPartition(topic='orders', partition=0): ReplicaSize(size_bytes=0, offset_lag=0, is_future=False)})
        """
        return self._call(self._admin.describe_log_dirs, partitions, broker_ids)

    def api_versions(self, broker_id: int | None = None) -> dict[str, VersionRange]:
        """What a broker offers, by the names of the APIs: a certain one, or whichever is at hand.

        APIs that this version of Ottla does not know are named by their numbers.

        >>> admin.api_versions()["CreateTopics"]
        VersionRange(first=0, last=7)
        """
        return self._call(self._admin.api_versions, broker_id)

    def describe_features(self, broker_id: int | None = None) -> dict[str, Feature]:
        """The features that a broker has and that the cluster uses, by name.

        >>> feature = admin.describe_features()["group.version"]
        >>> feature.supported, feature.finalized
        (VersionRange(first=0, last=1), VersionRange(first=1, last=1))
        """
        return self._call(self._admin.describe_features, broker_id)

    # Users.

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, tuple[ScramCredentialInfo, ...]]:
        """How users can log in: those that are asked for, each of which must exist, or all.

        >>> admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder")])
        >>> admin.describe_user_scram_credentials()
        {'alice': (ScramCredentialInfo(mechanism=<ScramMechanism.SCRAM_SHA_256: 1>, iterations=4096),)}
        """
        return self._call(self._admin.describe_user_scram_credentials, users)

    def alter_user_scram_credentials(self, alterations: Iterable[Alteration]) -> None:
        """Set and delete passwords. All changes of one user are made together or not at all.

        >>> admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder")])
        >>> admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", "SCRAM-SHA-256")])
        >>> admin.describe_user_scram_credentials()
        {}
        """
        self._call(self._admin.alter_user_scram_credentials, alterations)

    # Quotas.

    def describe_client_quotas(
        self, entity: ClientQuotaEntity | None = None, *, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas that are set: all, or those of entities that have what is asked for.

        With `strict`, of entities that have nothing besides: a user alone, and not the user with a client id.

        >>> alice = ClientQuotaEntity(user="alice")
        >>> admin.alter_client_quotas({alice: {"producer_byte_rate": 1_000_000}})
        >>> admin.describe_client_quotas(alice)[alice]
        {'producer_byte_rate': 1000000.0}
        """
        return self._call(self._admin.describe_client_quotas, entity, strict=strict)

    def alter_client_quotas(
        self, quotas: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> None:
        """Set quotas, and remove those whose value is None. What is not mentioned stays.

        `producer_byte_rate` and `consumer_byte_rate` are bytes a second, `request_percentage` is a share of the
        broker's time; an address has `connection_creation_rate`.

        >>> alice = ClientQuotaEntity(user="alice")
        >>> admin.alter_client_quotas({alice: {"request_percentage": 50}})
        >>> admin.alter_client_quotas({alice: {"request_percentage": None}})
        >>> admin.describe_client_quotas()
        {}
        """
        self._call(self._admin.alter_client_quotas, quotas, validate_only=validate_only)

    # Rules of access.

    def describe_acls(self, acl_filter: ACLFilter) -> list[ACL]:
        """The rules that a filter matches.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
        >>> admin.create_acls([rule])
        >>> everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        >>> wanted = ACLFilter("User:alice", None, ACLOperation.ANY, ACLPermissionType.ANY, everything)
        >>> admin.describe_acls(wanted) == [rule]
        True
        """
        return self._call(self._admin.describe_acls, acl_filter)

    def create_acls(self, acls: Iterable[ACL]) -> None:
        """Add rules. Those that are there already stay as they are.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders-", ACLResourcePatternType.PREFIXED)
        >>> admin.create_acls([ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)])
        """
        self._call(self._admin.create_acls, acls)

    def delete_acls(self, acl_filters: Iterable[ACLFilter]) -> dict[ACLFilter, list[ACL]]:
        """Remove the rules that filters match; by filter those that it matched, none where there were none.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
        >>> admin.create_acls([rule])
        >>> wanted = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, orders)
        >>> admin.delete_acls([wanted]) == {wanted: [rule]}
        True
        """
        return self._call(self._admin.delete_acls, acl_filters)
