"""All lines, in the order of the table, and those that a minute has room for."""

import fnmatch
from collections.abc import Sequence

from ottla.record.compression import Codec

from .clients import EndToEnd, Librdkafka, PerfTool
from .line import Line
from .small import Acknowledgement, Flood
from .throughput import Consume, Load, Produce
from .whole import ColdStart, Crash, Memory

SIZES = (100, 1_024)
CODECS = (Codec.NONE, Codec.LZ4)
PARTITIONS = (1, 100)
ACKS = (1, -1)
CONNECTIONS = (1, 64, 1_000)
READERS = 10
LOADS = [Load(size, codec, partitions) for partitions in PARTITIONS for codec in CODECS for size in SIZES]
CLIENT_LOADS = (Load(100), Load(1_024), Load(100, Codec.LZ4), Load(1_024, partitions=100))
TOOL_LOADS = (Load(100), Load(1_024))

LINES: tuple[Line, ...] = (
    *(Produce(load, acks) for load in LOADS for acks in ACKS),
    *(Consume(load) for load in LOADS),
    Consume(Load(1_024), READERS),
    *(Librdkafka(task, load) for task in ("produce", "consume") for load in CLIENT_LOADS),
    *(PerfTool(task, load) for task in ("produce", "consume") for load in TOOL_LOADS),
    *(Flood(api, connections) for api in ("Metadata", "Produce") for connections in CONNECTIONS),
    Acknowledgement(),
    EndToEnd(),
    ColdStart(),
    Memory(),
    Crash(),
)

QUICK = (
    "produce/100/none/1/all",
    "produce/1024/none/1/all",
    "produce/1024/lz4/100/all",
    "consume/100/none/1",
    "consume/1024/none/1",
    "requests/metadata/1",
    "requests/produce/64",
    "latency/acknowledgement",
)
"""Lines that the client does not blur and that are over within a second each."""


def chosen(patterns: Sequence[str]) -> list[Line]:
    """The lines that any of the patterns names, whole or by its beginning; ValueError for one that names none.

    >>> [line.name for line in chosen(["latency", "start/c*"])]
    ['latency/acknowledgement', 'latency/end-to-end', 'start/cold', 'start/crash']
    """
    for pattern in patterns:
        if not any(_named(line, pattern) for line in LINES):
            raise ValueError(f"no line is called {pattern}; --list shows what they are called")
    return [line for line in LINES if any(_named(line, pattern) for pattern in patterns)]


def _named(line: Line, pattern: str) -> bool:
    return fnmatch.fnmatch(line.name, pattern) or line.name.startswith(f"{pattern}/")
