"""What a pipeline's file says, checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Otherwise = Literal["drop", "divert", "fail"]
SinkKind = Literal["topic", "parquet", "delta", "console", "copy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSpec:
    """How values become columns: see `ottla.spark.decoding.decode`."""

    format: Literal["json", "avro", "protobuf"]
    schema: Any
    message: str | None
    confluent: bool | dict[int, str]
    otherwise: Otherwise
    options: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """The topics that are read, and the options of `format("ottla")` that say how."""

    options: dict[str, str]
    group: str | None
    decode: DecodeSpec | None

    @property
    def bootstrap_servers(self) -> str:
        """The cluster that they are on."""
        return self.options["kafka.bootstrap.servers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpec:
    """Rows to rows."""

    name: str
    input: str
    kind: Literal["sql", "python", "expect"]
    text: str
    """The query, `module:function`, or the condition."""
    otherwise: Otherwise
    """What becomes of rows that do not meet the condition."""
    watermark: tuple[str, str] | None
    """A column with times, and how late rows may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec:
    """Where rows go."""

    name: str
    input: str
    kind: SinkKind
    target: str
    """A topic, a folder, or the address of another cluster."""
    mode: Literal["append", "update", "complete"]
    options: dict[str, str]
    partition_by: tuple[str, ...] = ()
    key: str | None = None
    value: str | None = None
    rows: int = 20
    """How many rows of a batch the console shows."""
    verify: bool = True
    """Whether a copy is compared with what was copied, once all is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """A pipeline."""

    name: str
    folder: Path
    """Where the file is; modules are looked for here."""
    checkpoint: str
    trigger: str | None
    """How often to look for records, as `10 seconds`; `available-now` to end when there are no more; None: always."""
    dead_letters: str | None
    source: SourceSpec
    steps: tuple[StepSpec, ...]
    sinks: tuple[SinkSpec, ...]
    spark: dict[str, str]


SOURCE = "source"
"""The name by which steps and sinks refer to the source's rows."""

AVAILABLE_NOW = "available-now"
