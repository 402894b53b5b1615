"""ApiVersions (18): what this broker serves.

v3 names the client's software, whose form is checked, and tells which features the cluster has; v5 names the cluster
and node that the client expects.
"""

import re
from typing import TYPE_CHECKING

from ottla.broker.apis import SERVED, served_versions
from ottla.broker.request import Request
from ottla.wire.api.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_GROUP_VERSION = "group.version"
"""At 1, groups of the consumer protocol are served."""


def handle(broker: "Broker", request: Request) -> ApiVersionsResponse:
    """List the APIs and versions that are served."""
    body: ApiVersionsRequest = request.body
    if request.version >= 3 and not all(
        _SOFTWARE.fullmatch(text) for text in (body.client_software_name, body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if (body.cluster_id is not None and body.cluster_id != broker.image.cluster_id) or (
        body.node_id not in (-1, broker.node_id)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
            for key in SERVED
            for versions in (served_versions(key),)
        ],
        finalized_features_epoch=0,
    )
    if "consumer" in broker.config.group_coordinator_rebalance_protocols:
        # Clients before v4 cannot read a range that begins with 0.
        first = 0 if request.version >= 4 else 1
        response.supported_features = [SupportedFeatureKey(name=_GROUP_VERSION, min_version=first, max_version=1)]
        response.finalized_features = [
            FinalizedFeatureKey(name=_GROUP_VERSION, min_version_level=1, max_version_level=1)
        ]
    return response
