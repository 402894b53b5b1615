"""Connections to clusters, which all tasks of a process share.

Spark reuses the processes that tasks run in, so that a task finds the connections of those before it.
"""

import threading
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions
from ottla.sync.loop import Background, Call, background

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_clusters: dict[tuple[Background, ClientOptions], Cluster] = {}
"""By event loop too: a process that was forked has another one, and leaves its parent's clusters alone."""


def connected(
    options: ClientOptions,
    function: Callable[Concatenate[Cluster, P], Awaitable[T]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """What a coroutine function gives that needs a cluster. The cluster stays connected for the next one.

    >>> from ottla.testing import TestBroker
    >>> async def topics(cluster: Cluster) -> int:
    ...     return len((await cluster.metadata(None)).topics)
    >>> with TestBroker() as broker:
    ...     connected(ClientOptions(bootstrap_servers=broker.bootstrap_servers), topics)
    0
    """

    return begun(options, function, *args, **kwargs).result()


def begun(
    options: ClientOptions,
    function: Callable[Concatenate[Cluster, P], Awaitable[T]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> Call[T]:
    """The same, while the caller does something else: `result()` waits for what it gives."""

    async def work() -> T:
        return await function(shared_cluster(options), *args, **kwargs)

    return background().begin(work)


def shared_cluster(options: ClientOptions) -> Cluster:
    """The cluster of these options; to be used on the loop of `background()` only."""
    here = background()
    with _lock:
        found = _clusters.get((here, options))
        if found is None:
            found = _clusters[here, options] = Cluster(options)
            here.remember(found, found.close)
        return found
