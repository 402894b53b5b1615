"""How many clients may be connected, in all and from one address."""

from collections import Counter
from collections.abc import Callable, Mapping

NO_BOUND = 2**31 - 1


class Admission:
    """Counts the connections of all listeners. The limits may change at any time; those who are in stay.

    >>> admission = Admission(limit=3, limit_per_host=2)
    >>> [admission.refusal("10.0.0.1") for _ in range(3)]
    [None, None, '2 clients are connected from there']
    >>> admission.limit_per_host = 3
    >>> admission.refusal("10.0.0.1"), admission.refusal("10.0.0.2")
    (None, '3 clients are connected')
    """

    def __init__(self, limit: int = NO_BOUND, limit_per_host: int = NO_BOUND) -> None:
        self.limit = limit
        self.limit_per_host = limit_per_host
        self.limits_of_hosts: Mapping[str, int] = {}
        """Of addresses that have a limit of their own."""
        self.too_often: Callable[[str], str | None] = lambda host: None
        """What to say if clients, or those from an address, connect too often; asked once for each that comes."""
        self._hosts: Counter[str] = Counter()
        self._count = 0

    def refusal(self, host: str) -> str | None:
        """Count a new client, unless there are too many; then say so."""
        if self._count >= self.limit:
            return f"{self._count} clients are connected"
        from_there = self._hosts.get(host, 0)
        if from_there >= self.limits_of_hosts.get(host, self.limit_per_host):
            return f"{from_there} clients are connected from there"
        if (refusal := self.too_often(host)) is not None:
            return refusal
        self._count += 1
        self._hosts[host] += 1
        return None

    def leave(self, host: str) -> None:
        """A client that was counted is gone."""
        self._count -= 1
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]
