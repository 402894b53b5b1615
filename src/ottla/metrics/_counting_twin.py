"""`_counting` in Python, for where there is no compiler: what is added up for each request that is answered."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from ottla.metrics.bounds import BOUNDS_S
from ottla.metrics.errors import Path


class ClientTally:
    """What the clients of one principal that share a client id have done."""

    __slots__ = ("bytes_in", "bytes_out", "client_id", "connections", "errors", "principal", "requests")

    def __init__(self, principal: str, client_id: str) -> None:
        self.principal = principal
        self.client_id = client_id
        self.connections = 0
        """Those whose last request bore this client id."""
        self.requests = 0
        self.errors = 0
        """Errors in responses, which may have several."""
        self.bytes_in = 0
        self.bytes_out = 0


class ApiTally:
    """What the requests of one API cost, and what errors they were answered with."""

    __slots__ = ("api_key", "buckets", "errors", "paths", "seconds", "waiting")

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.seconds = 0.0
        self.errors: dict[int, int] = {}
        """How often each error code was answered."""
        self.waiting = 0
        """Requests whose reply is not there yet."""
        self.paths: tuple[Path, ...] | None = None
        """Where the errors of a response are; None until there is one."""


class Tally:
    """Adds up requests that are answered.

    `find_paths` says where the responses of an API have errors, and is asked when there is the first one.
    """

    __slots__ = ("_apis", "_find_paths", "monotonic")

    def __init__(
        self,
        apis: Sequence[ApiTally],
        find_paths: Callable[[int], tuple[Path, ...]],
        monotonic: Callable[[], float],
    ) -> None:
        self._apis = apis
        self._find_paths = find_paths
        self.monotonic = monotonic
        """The clock by which requests begin."""

    def answered(
        self, api_key: int, client: ClientTally, size: int, response: Any, reply: list[Any] | None, begun: float
    ) -> None:
        """A request of so many bytes that began then is answered: a response, and the buffers that it became."""
        took = self.monotonic() - begun
        if api_key < 0:
            raise IndexError(api_key)
        api = self._apis[api_key]
        api.buckets[bisect_left(BOUNDS_S, took)] += 1
        api.seconds += took
        client.requests += 1
        client.bytes_in += size
        if reply is not None:
            client.bytes_out += sum(map(len, reply))
        if response is None:
            return
        if api.paths is None:
            api.paths = self._find_paths(api_key)
        for path in api.paths:
            client.errors += _count(response, path, 0, api.errors)


def _count(message: Any, path: Path, depth: int, counts: dict[int, int]) -> int:
    found = getattr(message, path[depth])
    if depth + 1 == len(path):
        if not found:
            return 0
        counts[int(found)] = counts.get(int(found), 0) + 1
        return 1
    if found is None:
        return 0
    if isinstance(found, list):
        return sum([_count(each, path, depth + 1, counts) for each in found])
    return _count(found, path, depth + 1, counts)
