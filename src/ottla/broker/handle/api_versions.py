"""ApiVersions (18): what this broker serves.

v3 names the client's software, whose form is checked; v5 names the cluster and node that the client expects.
"""

import re
from typing import TYPE_CHECKING

from ottla.broker.apis import SERVED, served_versions
from ottla.broker.request import Request
from ottla.wire.api.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


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
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
            for key in SERVED
            for versions in (served_versions(key),)
        ]
    )
