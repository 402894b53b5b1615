"""A broker's configs: what they are called, what they default to, and the values that one broker runs with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from ottla.config.address import check_limits
from ottla.config.check import (
    at_least,
    between,
    each_of,
    each_of_or_place,
    each_principal,
    one_of,
    only,
    principals_of,
    single,
)
from ottla.config.definition import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigDefinition,
    ConfigSource,
    option,
)
from ottla.config.listener import (
    ListenerAddress,
    check_advertised_listeners,
    check_listeners,
    check_metrics_listen,
    check_protocol_map,
    general_name,
    own_name,
    parse_listener,
    parse_protocol_map,
)
from ottla.config.parse import Value, refuse
from ottla.config.tls import TlsConfigs
from ottla.wire.errors import ErrorCode, KafkaError

LARGEST_INT = (1 << 31) - 1
LARGEST_LONG = (1 << 63) - 1
_NOTHING: Mapping[str, str] = MappingProxyType({})
_AUTHORIZERS = (
    "",
    "ottla",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class BrokerConfig(TlsConfigs):
    """A broker's effective configs, from its start settings and what was changed while it ran.

    >>> config = BrokerConfig({"num.partitions": "3"})
    >>> config.num_partitions, config.socket_request_max_bytes
    (3, 104857600)
    >>> config.with_dynamic(own={"message.max.bytes": "5000"}).message_max_bytes
    5000
    """

    kind: ClassVar[str] = "broker"

    # Who and where the broker is.
    node_id: int = option(INT, 1, "The number of this broker; no other broker of the cluster has it.", at_least(0))
    broker_id: int = option(INT, 1, "The older name of node.id; set one of them.", at_least(0))
    broker_rack: str | None = option(STRING, None, "The rack or zone the broker stands in.")
    listeners: tuple[str, ...] = option(
        LIST, ("PLAINTEXT://:9092",), "Where to accept connections, as NAME://HOST:PORT.", check_listeners
    )
    advertised_listeners: tuple[str, ...] | None = option(
        LIST,
        None,
        "The addresses that clients are told to connect to; those of listeners if not set.",
        check_advertised_listeners,
    )
    listener_security_protocol_map: tuple[str, ...] = option(
        LIST,
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "Which security protocol each listener name stands for, as NAME:PROTOCOL.",
        check_protocol_map,
    )
    security_inter_broker_protocol: str = option(
        STRING,
        "PLAINTEXT",
        "Accepted from Kafka's files; inter.broker.listener.name says more.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    inter_broker_listener_name: str | None = option(STRING, None, "The listener that brokers reach each other by.")
    log_dir: str = option(STRING, "ottla-data", "The data folder, if log.dirs is not set.")
    log_dirs: tuple[str, ...] | None = option(
        LIST, None, "The data folder. Ottla keeps everything in one.", single("there is one data folder")
    )
    process_roles: tuple[str, ...] = option(
        LIST,
        (),
        "Accepted from Kafka's files; every broker here takes the roles there are.",
        each_of("broker", "controller"),
    )
    controller_listener_names: tuple[str, ...] = option(
        LIST, (), "Accepted from Kafka's files; there are no listeners for controllers alone."
    )
    controller_quorum_voters: tuple[str, ...] = option(
        LIST, (), "Accepted from Kafka's files; the metadata store takes the place of a controller quorum."
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = option(
        LIST, (), "Accepted from Kafka's files; the metadata store takes the place of a controller quorum."
    )

    # Connections and requests.
    max_connections: int = option(INT, LARGEST_INT, "Connections open at one time.", at_least(0), dynamic=True)
    max_connections_per_ip: int = option(
        INT, LARGEST_INT, "Connections open at one time from one address.", at_least(0), dynamic=True
    )
    max_connections_per_ip_overrides: tuple[str, ...] = option(
        LIST, (), "The same for single addresses, as ADDRESS:NUMBER.", check_limits, dynamic=True
    )
    max_connection_creation_rate: int = option(
        INT, LARGEST_INT, "Connections a second that are accepted from all addresses.", at_least(0), dynamic=True
    )
    connections_max_idle_ms: int = option(LONG, 600_000, "A connection without a request for so long is closed.")
    socket_request_max_bytes: int = option(
        INT, 100 << 20, "The largest request; a connection that announces a larger one is closed.", at_least(1)
    )
    socket_send_buffer_bytes: int = option(INT, 100 << 10, "A socket's send buffer; -1 leaves it to the system.")
    socket_receive_buffer_bytes: int = option(INT, 100 << 10, "A socket's receive buffer; -1 leaves it to the system.")
    socket_listen_backlog_size: int = option(INT, 50, "Connections that may wait to be accepted.", at_least(1))
    request_timeout_ms: int = option(INT, 30_000, "How long to wait for another broker's reply.", at_least(0))
    queued_max_requests: int = option(
        INT, 500, "Accepted for Kafka's sake; requests wait in their connection, which stops reading.", at_least(1)
    )
    # Kafka has no bound here unless told; a small machine is better off with one. A quarter of a gigabyte is two and a
    # half of the largest requests, or hundreds of usual ones, at a time.
    queued_max_request_bytes: int = option(
        LONG,
        256 << 20,
        "Memory for all requests that are being received or handled; beyond it, large ones wait. -1 for no bound.",
        at_least(-1),
    )
    num_network_threads: int = option(
        INT, 3, "Accepted for Kafka's sake; one event loop serves all connections.", at_least(1), dynamic=True
    )
    num_io_threads: int = option(INT, 8, "Threads for work that waits for the disk.", at_least(1), dynamic=True)
    background_threads: int = option(INT, 10, "Accepted for Kafka's sake.", at_least(1), dynamic=True)
    num_recovery_threads_per_data_dir: int = option(
        INT, 2, "Threads that open and check logs at the start.", at_least(1), dynamic=True
    )
    fetch_max_bytes: int = option(
        INT, 55 << 20, "The most that one fetch returns, whatever it asks for.", at_least(1024)
    )
    max_incremental_fetch_session_cache_slots: int = option(INT, 1000, "Fetch sessions remembered.", at_least(0))

    # SASL.
    sasl_enabled_mechanisms: tuple[str, ...] = option(
        LIST,
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        "The ways to log in, on listeners that ask for it.",
        each_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    )
    sasl_mechanism_inter_broker_protocol: str = option(
        STRING,
        "SCRAM-SHA-256",
        "How brokers log in to each other.",
        one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    )
    sasl_jaas_config: str | None = option(
        PASSWORD,
        None,
        "Users and passwords for PLAIN, set as listener.name.NAME.plain.sasl.jaas.config; those with credentials for "
        "SCRAM need none.",
    )
    sasl_server_max_receive_size: int = option(
        INT, 512 << 10, "The largest request before a client has logged in.", at_least(1)
    )
    connections_max_reauth_ms: int = option(
        LONG, 0, "When a client has to log in again, or is closed; 0 for never.", at_least(0)
    )
    connection_failed_authentication_delay_ms: int = option(
        INT, 100, "How long a failed login waits for its answer.", at_least(0)
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = option(
        STRING, None, "The keys that tokens are signed with, as an address: https://... or file:///..."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = option(
        LONG, 3_600_000, "When the keys are fetched again.", at_least(1)
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = option(
        LONG, 100, "How long to wait before keys are fetched again that could not be had.", at_least(1)
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = option(
        LONG, 10_000, "The longest such wait, and the time between looks for keys that are not known.", at_least(1)
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = option(
        LIST, None, "For whom tokens must be, one of these; not looked at if not set."
    )
    sasl_oauthbearer_expected_issuer: str | None = option(
        STRING, None, "Who must have made tokens; not looked at if not set."
    )
    sasl_oauthbearer_clock_skew_seconds: int = option(
        INT, 30, "How far clocks may differ when it is looked whether tokens have expired.", at_least(0)
    )
    sasl_oauthbearer_sub_claim_name: str = option(STRING, "sub", "The claim of a token that names the user.")
    sasl_oauthbearer_scope_claim_name: str = option(
        STRING, "scope", "Accepted for Kafka's sake; scopes are not looked at."
    )

    # Who may do what.
    authorizer_class_name: str = option(
        STRING,
        "",
        "`ottla`, or the name of one of Kafka's authorizers: rules of access decide who may do what. "
        "If it is empty, everybody may do everything.",
        one_of(*_AUTHORIZERS),
    )
    super_users: str = option(
        STRING,
        "",
        "Those who may do everything, whatever the rules say, as User:NAME, with semicolons between them.",
        each_principal,
    )
    allow_everyone_if_no_acl_found: bool = option(
        BOOLEAN, False, "Whether everybody may do everything to resources that no rule is about."
    )

    # Quotas.
    quota_window_num: int = option(INT, 11, "Over how many windows use is measured.", at_least(1))
    quota_window_size_seconds: int = option(INT, 1, "How long such a window is.", at_least(1))

    # What others get to see.
    ottla_metrics_listen: str | None = option(
        STRING,
        None,
        "HOST:PORT of an HTTP port for Prometheus (/metrics) and for health checks (/ready, /live); none if not set.",
        check_metrics_listen,
    )
    telemetry_max_bytes: int = option(INT, 1 << 20, "The most that a client may push of its metrics.", at_least(1))
    ottla_telemetry_metrics: tuple[str, ...] = option(
        LIST, (), "The metrics that clients are asked to push, by prefixes of their names; `*` for all.", dynamic=True
    )
    ottla_telemetry_interval_ms: int = option(
        INT, 300_000, "How often they are asked to.", between(100, 3_600_000), dynamic=True
    )

    # Topics, and what they default to.
    num_partitions: int = option(INT, 1, "Partitions of a topic for which nobody says how many.", at_least(1))
    default_replication_factor: int = option(INT, 1, "Copies of a topic for which nobody says how many.", at_least(1))
    auto_create_topics_enable: bool = option(BOOLEAN, True, "Whether a topic is created when it is first asked for.")
    delete_topic_enable: bool = option(BOOLEAN, True, "Whether topics can be deleted.")
    min_insync_replicas: int = option(
        INT, 1, "Replicas that must have a record before acks=all is answered.", at_least(1), dynamic=True
    )
    unclean_leader_election_enable: bool = option(
        BOOLEAN, False, "Whether a replica that may lack records can lead if no other is left.", dynamic=True
    )
    message_max_bytes: int = option(INT, 1_048_588, "The largest batch of records.", at_least(0), dynamic=True)
    compression_type: str = option(
        STRING,
        "producer",
        "How batches are stored; `producer` leaves them as sent.",
        one_of(*_COMPRESSIONS),
        dynamic=True,
    )
    compression_gzip_level: int = option(INT, -1, "Level for gzip.", between(-1, 9), dynamic=True)
    compression_lz4_level: int = option(INT, 9, "Level for lz4.", between(1, 17), dynamic=True)
    compression_zstd_level: int = option(INT, 3, "Level for zstd.", between(-131072, 22), dynamic=True)
    log_segment_bytes: int = option(INT, 1 << 30, "Size at which a new segment is begun.", at_least(14), dynamic=True)
    log_roll_ms: int | None = option(LONG, None, "Age at which a new segment is begun.", at_least(1), dynamic=True)
    log_roll_hours: int = option(INT, 168, "The same in hours, if log.roll.ms is not set.", at_least(1))
    log_roll_jitter_ms: int | None = option(
        LONG, None, "By how much that age varies, so that segments do not all end at once.", at_least(0), dynamic=True
    )
    log_roll_jitter_hours: int = option(INT, 0, "The same in hours, if log.roll.jitter.ms is not set.", at_least(0))
    log_segment_delete_delay_ms: int = option(
        LONG, 60_000, "How long a removed segment's files stay.", at_least(0), dynamic=True
    )
    log_index_size_max_bytes: int = option(INT, 10 << 20, "The largest index of a segment.", at_least(4), dynamic=True)
    log_index_interval_bytes: int = option(INT, 4096, "Bytes of log per index entry.", at_least(0), dynamic=True)
    log_preallocate: bool = option(BOOLEAN, False, "Whether segments take their full size at once.", dynamic=True)
    log_retention_ms: int | None = option(
        LONG, None, "How long records are kept; -1 for ever.", at_least(-1), dynamic=True
    )
    log_retention_minutes: int | None = option(
        INT, None, "The same in minutes, if log.retention.ms is not set.", at_least(-1)
    )
    log_retention_hours: int = option(INT, 168, "The same in hours, if neither of the others is set.", at_least(-1))
    log_retention_bytes: int = option(
        LONG, -1, "How much of a partition is kept; -1 for all.", at_least(-1), dynamic=True
    )
    log_retention_check_interval_ms: int = option(LONG, 300_000, "How often retention is looked after.", at_least(1))
    log_cleanup_policy: frozenset[str] = option(
        LIST,
        frozenset({"delete"}),
        "Remove old segments, compact by key, or both.",
        each_of("compact", "delete"),
        dynamic=True,
    )
    log_message_timestamp_type: str = option(
        STRING,
        "CreateTime",
        "Whether records bear the producer's time or that of their arrival.",
        one_of("CreateTime", "LogAppendTime"),
        dynamic=True,
    )
    log_message_timestamp_before_max_ms: int = option(
        LONG, LARGEST_LONG, "How far a record's time may lie in the past.", at_least(0), dynamic=True
    )
    log_message_timestamp_after_max_ms: int = option(
        LONG, 3_600_000, "How far a record's time may lie in the future.", at_least(0), dynamic=True
    )
    log_message_downconversion_enable: bool = option(
        BOOLEAN, True, "Whether records are converted for consumers that read only older formats.", dynamic=True
    )

    # From the page cache to the disk.
    log_flush_interval_messages: int = option(
        LONG,
        LARGEST_LONG,
        "Records after which a partition goes to the disk; 1: before each reply.",
        at_least(1),
        dynamic=True,
    )
    log_flush_interval_ms: int | None = option(
        LONG, None, "Time after which a partition goes to the disk.", at_least(0), dynamic=True
    )
    log_flush_scheduler_interval_ms: int = option(
        LONG, LARGEST_LONG, "How often to look for partitions that must go to the disk.", at_least(1)
    )
    log_flush_offset_checkpoint_interval_ms: int = option(
        INT, 60_000, "How often the point from which recovery starts is noted.", at_least(0)
    )
    log_flush_start_offset_checkpoint_interval_ms: int = option(
        INT, 60_000, "How often the partitions' start offsets are noted.", at_least(0)
    )

    # Compaction.
    log_cleaner_enable: bool = option(BOOLEAN, True, "Whether compaction runs.")
    log_cleaner_threads: int = option(INT, 1, "Compactions that run at one time.", at_least(0), dynamic=True)
    log_cleaner_backoff_ms: int = option(
        LONG, 15_000, "Pause if nothing is to be compacted.", at_least(0), dynamic=True
    )
    log_cleaner_dedupe_buffer_size: int = option(LONG, 128 << 20, "Memory for the keys.", at_least(1024), dynamic=True)
    log_cleaner_io_max_bytes_per_second: float = option(
        DOUBLE, 1.7976931348623157e308, "Bytes per second that compaction may read and write.", dynamic=True
    )
    log_cleaner_delete_retention_ms: int = option(
        LONG, 86_400_000, "How long a compacted topic keeps the marks of deleted keys.", at_least(0), dynamic=True
    )
    log_cleaner_min_compaction_lag_ms: int = option(
        LONG, 0, "How long a record is safe from compaction.", at_least(0), dynamic=True
    )
    log_cleaner_max_compaction_lag_ms: int = option(
        LONG, LARGEST_LONG, "How long a record can wait for compaction.", at_least(1), dynamic=True
    )
    log_cleaner_min_cleanable_ratio: float = option(
        DOUBLE, 0.5, "Share of a log that must be new before it is compacted.", between(0, 1), dynamic=True
    )

    # Replication.
    replica_lag_time_max_ms: int = option(LONG, 30_000, "How far behind a replica may be and count as in sync.")
    replica_fetch_max_bytes: int = option(INT, 1 << 20, "What a follower asks of one partition.", at_least(0))
    replica_fetch_wait_max_ms: int = option(INT, 500, "How long a follower's fetch waits for records.")
    replica_fetch_min_bytes: int = option(INT, 1, "What a follower's fetch waits for.")
    replica_fetch_backoff_ms: int = option(INT, 1000, "Pause after a follower's fetch failed.", at_least(0))
    replica_fetch_response_max_bytes: int = option(INT, 10 << 20, "What a follower's fetch returns.", at_least(0))
    replica_high_watermark_checkpoint_interval_ms: int = option(LONG, 5000, "How often high watermarks are noted.")
    num_replica_fetchers: int = option(INT, 1, "Connections to each leader.", at_least(1), dynamic=True)
    auto_leader_rebalance_enable: bool = option(BOOLEAN, True, "Whether preferred leaders get their partitions back.")
    leader_imbalance_check_interval_seconds: int = option(LONG, 300, "How often that is looked after.", at_least(1))
    controlled_shutdown_enable: bool = option(BOOLEAN, True, "Whether leadership moves before the broker stops.")

    # Groups and their offsets.
    group_min_session_timeout_ms: int = option(INT, 6000, "The shortest session timeout of a member.", at_least(0))
    group_max_session_timeout_ms: int = option(INT, 1_800_000, "The longest session timeout of a member.", at_least(0))
    group_initial_rebalance_delay_ms: int = option(INT, 3000, "How long a new group waits for members.", at_least(0))
    group_max_size: int = option(INT, LARGEST_INT, "Members of a group.", at_least(1))
    group_coordinator_rebalance_protocols: tuple[str, ...] = option(
        LIST,
        ("classic", "consumer"),
        "The group protocols on offer.",
        each_of("classic", "consumer", "streams", "share"),
    )
    group_consumer_session_timeout_ms: int = option(INT, 45_000, "Session timeout of the new protocol.", at_least(1))
    group_consumer_min_session_timeout_ms: int = option(INT, 45_000, "The shortest such timeout.", at_least(1))
    group_consumer_max_session_timeout_ms: int = option(INT, 60_000, "The longest such timeout.", at_least(1))
    group_consumer_heartbeat_interval_ms: int = option(INT, 5000, "Time between heartbeats there.", at_least(1))
    group_consumer_min_heartbeat_interval_ms: int = option(INT, 5000, "The shortest such time.", at_least(1))
    group_consumer_max_heartbeat_interval_ms: int = option(INT, 15_000, "The longest such time.", at_least(1))
    group_consumer_max_size: int = option(INT, LARGEST_INT, "Members of such a group.", at_least(1))
    group_consumer_assignors: tuple[str, ...] = option(
        LIST,
        ("uniform", "range"),
        'Ways to share partitions out, the usual one first; one of your own as "package.module:attribute".',
        each_of_or_place("uniform", "range"),
    )
    group_consumer_migration_policy: str = option(
        STRING,
        "bidirectional",
        "Whether groups may change between the protocols while they run.",
        one_of("bidirectional", "upgrade", "downgrade", "disabled"),
    )
    offsets_topic_num_partitions: int = option(INT, 50, "Partitions of the offsets topic.", at_least(1))
    offsets_topic_replication_factor: int = option(
        SHORT, 3, "Copies of the offsets topic; as many as there are brokers where those are fewer.", at_least(1)
    )
    offsets_topic_segment_bytes: int = option(INT, 100 << 20, "Size of the offsets topic's segments.", at_least(1))
    offsets_topic_compression_codec: int = option(INT, 0, "How the offsets topic is compressed.", between(0, 4))
    offsets_retention_minutes: int = option(INT, 10_080, "How long an unused group's offsets are kept.", at_least(1))
    offsets_retention_check_interval_ms: int = option(LONG, 600_000, "How often that is looked after.", at_least(1))
    offsets_commit_timeout_ms: int = option(INT, 5000, "How long a commit waits for the replicas.", at_least(1))
    offsets_load_buffer_size: int = option(INT, 5 << 20, "Read at a time when offsets are loaded.", at_least(1))
    offset_metadata_max_bytes: int = option(INT, 4096, "Longest text kept with an offset.", at_least(0))

    # Producers and transactions.
    producer_id_expiration_ms: int = option(
        INT, 86_400_000, "How long a silent producer's sequence is remembered.", at_least(1), dynamic=True
    )
    producer_id_expiration_check_interval_ms: int = option(INT, 600_000, "How often that is looked after.", at_least(1))
    transactional_id_expiration_ms: int = option(INT, 604_800_000, "How long an unused id is kept.", at_least(1))
    transaction_max_timeout_ms: int = option(INT, 900_000, "The longest that a transaction may stay open.", at_least(1))
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = option(
        INT, 10_000, "How often transactions that stayed open too long are aborted.", at_least(1)
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = option(
        INT, 3_600_000, "How often unused transactional ids are forgotten.", at_least(1)
    )
    transaction_partition_verification_enable: bool = option(
        BOOLEAN, True, "Whether a partition must have been added to a transaction before it is written.", dynamic=True
    )
    transaction_state_log_num_partitions: int = option(INT, 50, "Partitions of the transaction topic.", at_least(1))
    transaction_state_log_replication_factor: int = option(
        SHORT, 3, "Copies of the transaction topic; as many as there are brokers where those are fewer.", at_least(1)
    )
    transaction_state_log_min_isr: int = option(INT, 2, "In-sync copies it needs, or all if fewer.", at_least(1))
    transaction_state_log_segment_bytes: int = option(INT, 100 << 20, "Size of its segments.", at_least(1))
    share_coordinator_state_topic_replication_factor: int = option(
        SHORT, 3, "Accepted from Kafka's files; there are no share groups.", at_least(1)
    )
    share_coordinator_state_topic_min_isr: int = option(
        SHORT, 2, "Accepted from Kafka's files; there are no share groups.", at_least(1)
    )
    remote_log_storage_system_enable: bool = option(
        BOOLEAN, False, "Whether old segments move to another storage.", only("there is no tiered storage", False)
    )

    static: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    dynamic: Mapping[str, str]

    def __init__(
        self,
        static: Mapping[str, str] = _NOTHING,
        *,
        dynamic_default: Mapping[str, str] = _NOTHING,
        dynamic: Mapping[str, str] = _NOTHING,
    ) -> None:
        values: dict[str, Value] = {name.replace(".", "_"): found.default for name, found in self.definitions.items()}
        for layer in (static, dynamic_default, dynamic):
            values.update(self.checked(layer))
        values["node_id"] = values["broker_id"] = _node_id(static)
        vars(self).update(
            values,
            static=MappingProxyType(dict(static)),
            dynamic_default=MappingProxyType(dict(dynamic_default)),
            dynamic=MappingProxyType(dict(dynamic)),
        )

    @classmethod
    def definition(cls, name: str) -> ConfigDefinition:
        """The definition of a config, also of one that is for a certain listener."""
        found = cls.definitions.get(general_name(name, cls.definitions))
        return super().definition(name) if found is None else replace(found, name=name)

    @classmethod
    def check_dynamic(cls, texts: Mapping[str, str]) -> None:
        """INVALID_CONFIG if these cannot be set, or not while the broker runs."""
        for name, text in texts.items():
            definition = cls.definition(name)
            definition.value(text)
            if not definition.dynamic:
                message = f"{name} cannot be changed while the broker runs; set it where the broker is started"
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)

    def with_dynamic(
        self, *, default: Mapping[str, str] | None = None, own: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """The same with other values set at run time: for every broker of the cluster, or for this one."""
        return BrokerConfig(
            self.static,
            dynamic_default=self.dynamic_default if default is None else default,
            dynamic=self.dynamic if own is None else own,
        )

    def layers(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """What was set, and where: the strongest first."""
        return (
            (ConfigSource.DYNAMIC_BROKER, self.dynamic),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (ConfigSource.STATIC_BROKER, self.static),
        )

    def is_set(self, name: str) -> bool:
        """Whether somebody set this config."""
        return name in self.dynamic or name in self.dynamic_default or name in self.static

    @property
    def data_folder(self) -> str:
        """Where everything is kept."""
        return self.log_dirs[0] if self.log_dirs else self.log_dir

    def super_user_principals(self) -> tuple[str, ...]:
        """Those who may do everything."""
        return principals_of(self.super_users)

    def listener_addresses(self) -> tuple[ListenerAddress, ...]:
        """Where to accept connections; listeners for Kafka's controllers, which nobody connects to here, left out."""
        addresses = (parse_listener("listeners", text) for text in self.listeners)
        return tuple(address for address in addresses if address.name not in self.controller_listener_names)

    def advertised_addresses(self) -> tuple[ListenerAddress, ...]:
        """What clients are told to connect to; empty if that is not set."""
        addresses = [parse_listener("advertised.listeners", text) for text in self.advertised_listeners or ()]
        there = [parse_listener("listeners", text).name for text in self.listeners]
        for address in addresses:
            if address.name not in there:
                complaint = f"there is no listener {address.name}, but {', '.join(there)}; write NAME://HOST:PORT"
                refuse("advertised.listeners", str(address), complaint)
        return tuple(address for address in addresses if address.name not in self.controller_listener_names)

    def listener_protocol(self, listener: str) -> str:
        """The security protocol of a listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        protocols = parse_protocol_map(self.listener_security_protocol_map)
        if listener not in protocols:
            complaint = f"has no protocol for listener {listener}; add {listener}:PROTOCOL, such as {listener}:SSL"
            refuse("listener.security.protocol.map", ",".join(self.listener_security_protocol_map), complaint)
        return protocols[listener]

    def of_listener(self, listener: str, name: str, mechanism: str | None = None) -> Value:
        """The value that a config has for a listener: `listener.name.<listener>.<name>`, or else the general one.

        What is set for a mechanism there, `listener.name.<listener>.<mechanism>.<name>`, goes before either.

        >>> config = BrokerConfig({"ssl.client.auth": "none", "listener.name.ssl.ssl.client.auth": "required"})
        >>> config.of_listener("SSL", "ssl.client.auth"), config.of_listener("OTHER", "ssl.client.auth")
        ('required', 'none')
        """
        names = [own_name(listener, name, mechanism), own_name(listener, name)]
        return self.value(next(filter(self.is_set, names), name))

    def value(self, name: str) -> Value:
        """The effective value by Kafka's name; None if it has none."""
        found: Value = vars(self)[name.replace(".", "_")]
        return found


def _node_id(static: Mapping[str, str]) -> int:
    texts = [static[name] for name in ("node.id", "broker.id") if name in static]
    if len(texts) == 2 and int(texts[0]) != int(texts[1]):
        refuse("broker.id", texts[1], f"node.id is {texts[0]}; set one of them, or both alike")
    return int(texts[0]) if texts else 1
