"""The broker's state: what handlers reach for."""

from collections.abc import Awaitable, Callable

from ottla.broker.acl.authorizer import Authorizer
from ottla.broker.acl.rules import RuleChanges
from ottla.broker.coordinator import GroupCoordinator
from ottla.broker.logs import Logs
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.quota import Quotas
from ottla.broker.sessions import Sessions, TopicKey
from ottla.broker.telemetry import Telemetry
from ottla.broker.topics import Topics
from ottla.broker.users import Users
from ottla.cluster.image import ClusterImage
from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.meta.catalog import Catalog
from ottla.meta.group_offsets import GroupOffsets
from ottla.meta.quotas import QuotaStore
from ottla.metrics.counting import Metrics
from ottla.ports import Chance, Clock, Disk
from ottla.replica.partition import DEBUG_REPLICA, Partition
from ottla.wire.errors import ErrorCode, KafkaError

CONSUMER = -1


class Broker:
    """One broker: its settings, its picture of the cluster, and the partitions that it leads."""

    def __init__(
        self,
        config: BrokerConfig,
        image: ClusterImage,
        catalog: Catalog,
        logs: Logs,
        *,
        disk: Disk,
        clock: Clock,
        chance: Chance,
    ) -> None:
        self.config = config
        self._image = image
        self.catalog = catalog
        self.logs = logs
        self.disk = disk
        self.clock = clock
        self.chance = chance
        self.when_reconfigured: list[Callable[[BrokerConfig], None]] = []
        """Called with the new settings whenever some change while the broker runs."""
        self.preparations: list[Callable[[BrokerConfig], Awaitable[Callable[[], None]]]] = []
        """Called with settings that somebody wants, before they are kept. A KafkaError refuses them; what is returned
        is called once they are in effect."""
        self.authorizer = Authorizer.of(config, image.acls)
        """Decides who may do what; None where everybody may do everything."""
        self.rules = RuleChanges(self)
        self.metrics = Metrics(clock.monotonic)
        self.telemetry = Telemetry(config, self.metrics, clock, chance)
        self.when_reconfigured.append(self.telemetry.configure)
        self.users = Users(catalog.store, chance)
        self.quotas = Quotas(
            QuotaStore(catalog.store),
            clock,
            windows=config.quota_window_num,
            window_s=config.quota_window_size_seconds,
        )
        self.topics = Topics(self)
        self.groups = GroupCoordinator(self)
        self.when_reconfigured.append(self.groups.config_changed)
        self.kept_offsets = GroupOffsets(catalog.store)
        self.producer_ids = ProducerIds(catalog)
        self.sessions = Sessions(
            config.max_incremental_fetch_session_cache_slots,
            SESSION_EVICTION_MS,
            clock.now_ms,
        )

    @property
    def image(self) -> ClusterImage:
        """The picture of the cluster at this moment."""
        return self._image

    @image.setter
    def image(self, image: ClusterImage) -> None:
        if self.authorizer is not None and image.acls is not self._image.acls:
            self.authorizer.take(image.acls)
        self._image = image
        self.groups.image_changed()

    @property
    def node_id(self) -> int:
        """This broker's number."""
        return self.config.node_id

    def leader(self, topic: TopicKey, index: int) -> Partition:
        """A partition that this broker leads, by the topic's name or id."""
        if isinstance(topic, bytes):
            topic = self.topics.existing_by_id(topic).name
        found = self.logs.partitions.get((topic, index))
        if found is not None:
            return found
        image = self.image.partition(topic, index)
        if image is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of a topic {topic!r}"
            )
        if image.leader != self.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is led by broker {image.leader}")
        return self.logs.open(self.image.topics[topic], index)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Put changed settings of this broker into effect, and what topics inherit of them."""
        self.config = self.logs.config = config
        for topic in self.image.topics.values():
            self.logs.configure(topic, TopicConfig.of(topic.configs, config))
        for tell in self.when_reconfigured:
            tell(config)

    def check_replica(self, replica_id: int) -> None:
        """Refuse a fetch in the name of a broker that has no replica here."""
        if replica_id not in (CONSUMER, DEBUG_REPLICA):
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"broker {replica_id} has no replica")


SESSION_EVICTION_MS = 120_000
"""How long a fetch session must have been idle before another may take its place."""
