"""All that is counted while requests are served: what they cost and bring, by API and by client."""

from collections import Counter
from collections.abc import Callable, Sequence

from ottla.metrics.bounds import BOUNDS_S
from ottla.metrics.clients import Clients
from ottla.metrics.errors import Path, error_paths
from ottla.metrics.tally import ApiTally, Tally
from ottla.wire.api import MODULES, api_name, response
from ottla.wire.schema import schema_of

__all__ = ["BOUNDS_S", "ApiCounters", "Metrics"]


class ApiCounters(ApiTally):
    """The counters of one API."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """As Kafka calls it."""
        return api_name(self.api_key)

    @property
    def used(self) -> bool:
        """Whether anybody has called it."""
        return bool(self.waiting) or any(self.buckets)


class Metrics(Tally):
    """The counters of one broker.

    >>> from ottla.wire.api.metadata import MetadataResponse
    >>> class Connection:
    ...     principal, client = "User:alice", None
    >>> metrics = Metrics(monotonic=iter([10.0, 10.003]).__next__)
    >>> begun = metrics.monotonic()
    >>> client = metrics.clients.enter(Connection(), "app")
    >>> metrics.answered(3, client, 20, MetadataResponse(), [b"reply"], begun)
    >>> api = metrics.apis[3]
    >>> api.name, round(api.seconds, 3), BOUNDS_S[api.buckets.index(1)]
    ('Metadata', 0.003, 0.005)
    >>> client.requests, client.bytes_in, client.bytes_out
    (1, 20, 5)
    """

    def __init__(self, monotonic: Callable[[], float], clients: Clients | None = None) -> None:
        self.apis: Sequence[ApiCounters] = [ApiCounters(api_key) for api_key in range(max(MODULES) + 1)]
        """By API key."""
        super().__init__(self.apis, _paths_of, monotonic)
        self.clients = Clients() if clients is None else clients
        """By principal and client id."""
        self.events: Counter[str] = Counter()
        """What happens seldom, by a name such as `authentication_failed`; the names are few and fixed."""


def _paths_of(api_key: int) -> tuple[Path, ...]:
    return error_paths(schema_of(response(api_key)))
