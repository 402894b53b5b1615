"""UpdateFeatures (API key 57). Raise or lower feature levels."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class FeatureUpdateKey:
    feature: str = ""
    max_version_level: int16 = 0
    allow_downgrade: bool = v("0")
    upgrade_type: int8 = v("1+", 1)


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """v1 adds upgrade_type, validate_only; drops allow_downgrade."""

    timeout_ms: int32 = 60000
    feature_updates: list[FeatureUpdateKey] = v()
    validate_only: bool = v("1+")


@part
class UpdatableFeatureResult:
    feature: str = ""
    error_code: int16 = 0
    error_message: str | None = ""


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """v2 drops results."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = v("0-1")
