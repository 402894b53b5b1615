"""Families as text that Prometheus reads, made by prometheus-client in whatever form the scraper accepts.

It takes a while with thousands of partitions, on a thread beside the event loop. Such a thread would keep the
interpreter to itself for milliseconds at a time, so it pauses after every few samples.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Sample

from ottla.metrics.counting import BOUNDS_S
from ottla.metrics.family import Family

SAMPLES_PER_TURN = 100

Pause = Callable[[], object]


def process_metrics() -> Collector:
    """What prometheus-client knows of this process by itself: memory, files, processor time, garbage."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def render(families: Iterable[Family], accept: str, pause: Pause, more: Collector | None = None) -> tuple[bytes, str]:
    """The text and its content type, for an Accept header.

    >>> family = Family("ottla_topics", "gauge", "Topics there are.")
    >>> family.add(3)
    >>> print(render([family], "", lambda: None)[0].decode(), end="")
    # HELP ottla_topics Topics there are.
    # TYPE ottla_topics gauge
    ottla_topics 3.0
    """
    encode, content_type = choose_encoder(accept)
    return encode(_Families(families, pause, more)), content_type


class _Families(Collector):
    """What prometheus-client collects from."""

    def __init__(self, families: Iterable[Family], pause: Pause, more: Collector | None) -> None:
        self._families = families
        self._pause = pause
        self._more = more

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            # The name of a counter's samples ends in `_total`, that of the counter does not.
            metric = Metric(family.name.removesuffix("_total"), family.documentation, family.kind)
            metric.samples = _Samples(family, self._pause)
            yield metric
        if self._more is not None:
            yield from self._more.collect()


class _Samples(list[Sample]):
    """Samples made one by one as they are asked for, with pauses."""

    def __init__(self, family: Family, pause: Pause) -> None:
        super().__init__()
        self._family = family
        self._pause = pause

    def __iter__(self) -> Iterator[Sample]:
        make = _buckets if self._family.kind == "histogram" else _sample
        for number, row in enumerate(self._family.rows):
            if number % SAMPLES_PER_TURN == 0:
                self._pause()
            labels = {name: str(value) for name, value in zip(self._family.labels, row, strict=False)}
            yield from make(self._family.name, labels, row)


def _sample(name: str, labels: dict[str, str], row: tuple[Any, ...]) -> Iterator[Sample]:
    yield Sample(name, labels, row[-1])


def _buckets(name: str, labels: dict[str, str], row: tuple[Any, ...]) -> Iterator[Sample]:
    buckets, total = row[-2:]
    below = list(accumulate(buckets))
    for bound, count in zip(BOUNDS_S, below, strict=False):
        yield Sample(f"{name}_bucket", {**labels, "le": str(bound)}, count)
    yield Sample(f"{name}_bucket", {**labels, "le": "+Inf"}, below[-1])
    yield Sample(f"{name}_count", labels, below[-1])
    yield Sample(f"{name}_sum", labels, total)
