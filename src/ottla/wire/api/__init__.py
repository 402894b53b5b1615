"""One module per API, request and response together; this one finds them by key and loads them when asked."""

from functools import cache
from importlib import import_module
from typing import Any

MODULES = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    55: "describe_quorum",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    76: "share_group_heartbeat",
    77: "share_group_describe",
    78: "share_fetch",
    79: "share_acknowledge",
    88: "streams_group_heartbeat",
    89: "streams_group_describe",
    90: "describe_share_group_offsets",
    91: "alter_share_group_offsets",
    92: "delete_share_group_offsets",
    93: "streams_group_topology_description_update",
}
"""API key to module name, for every API that clients of a broker speak."""


def api_name(key: int) -> str:
    """The name of an API, as Kafka writes it.

    >>> api_name(2)
    'ListOffsets'
    """
    return "".join(word.capitalize() for word in MODULES[key].split("_"))


@cache
def request(key: int) -> type[Any]:
    """The request class of an API key.

    >>> request(18).__name__
    'ApiVersionsRequest'
    """
    return _load(key, "Request")


@cache
def response(key: int) -> type[Any]:
    """The response class of an API key."""
    return _load(key, "Response")


def _load(key: int, suffix: str) -> type[Any]:
    if key not in MODULES:
        raise ValueError(f"there is no API key {key!r}; there are {min(MODULES)} to {max(MODULES)}, with gaps")
    module = import_module(f"{__name__}.{MODULES[key]}")
    found: type[Any] = getattr(module, api_name(key) + suffix)
    return found
