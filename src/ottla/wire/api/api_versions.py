"""ApiVersions (API key 18). What the broker speaks; answerable before anything else."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@message(key=18, versions="0-5", flexible="3+")
class ApiVersionsRequest:
    """What each version changed.

    v3 adds client_software_name, client_software_version; flexible.
    v5 adds cluster_id, node_id.
    """

    client_software_name: str = v("3+")
    client_software_version: str = v("3+")
    cluster_id: str | None = v("5+", None)
    node_id: int32 = v("5+", -1)


@part
class ApiVersion:
    api_key: int16 = 0
    min_version: int16 = 0
    max_version: int16 = 0


@part
class SupportedFeatureKey:
    name: str = ""
    min_version: int16 = 0
    max_version: int16 = 0


@part
class FinalizedFeatureKey:
    name: str = ""
    max_version_level: int16 = 0
    min_version_level: int16 = 0


@message(key=18, versions="0-5", flexible="3+")
class ApiVersionsResponse:
    """What each version changed.

    v1 adds throttle_time_ms.
    v3 adds supported_features, finalized_features_epoch, finalized_features, zk_migration_ready;
        flexible.
    """

    error_code: int16 = 0
    api_keys: list[ApiVersion] = v()
    throttle_time_ms: int32 = v("1+")
    supported_features: list[SupportedFeatureKey] = v("3+", tag=0)
    finalized_features_epoch: int64 = v("3+", -1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = v("3+", tag=2)
    zk_migration_ready: bool = v("3+", tag=3)
