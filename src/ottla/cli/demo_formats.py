"""The first part of `ottla demo`: a produce request of each record format, as bytes, by field, and read back."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from ottla.record import Record, build_batch
from ottla.record.batch import Batch, batches, records
from ottla.record.explain import explain
from ottla.record.legacy import build_message_set, read_messages
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.frame import decode_request, encode_request, request_header_version
from ottla.wire.header import RequestHeader
from ottla.wire.schema import schema_of
from ottla.wire.walk import Step, walk

TIMESTAMP_MS = 1_700_000_000_000
LIMIT = 1 << 20


class Format(NamedTuple):
    """A record format, the request version that carries it, and the clients that write it."""

    title: str
    version: int
    data: bytes
    record: Record


def formats() -> list[Format]:
    """The same record in each of the three formats."""
    plain = Record(0, -1, b"user-1", b"hello")
    timed = Record(0, TIMESTAMP_MS, b"user-1", b"hello")
    full = Record(0, TIMESTAMP_MS, b"user-1", b"hello", [("trace", b"a1")])
    return [
        Format("Message set, magic 0, in Produce v0 (clients since 0.8)", 0, build_message_set([plain], 0), plain),
        Format("Message set, magic 1, in Produce v2 (clients since 0.10)", 2, build_message_set([timed], 1), timed),
        Format("Record batch, magic 2, in Produce v9 (clients since 0.11; flexible)", 9, build_batch([full]), full),
    ]


def produce_request(records_data: bytes) -> ProduceRequest:
    """A request that writes these records to a partition."""
    partition = PartitionProduceData(index=0, records=records_data)
    return ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="greetings", partition_data=[partition])],
        transactional_id=None,
    )


def explain_frame(frame: bytes, version: int) -> Iterator[Step]:
    """Every field of a framed produce request: its size, its header, its body and the records in it."""
    yield Step(0, 4, "size", "int32", len(frame) - 4)
    header = schema_of(RequestHeader)
    position = 4
    for step in walk(header, request_header_version(schema_of(ProduceRequest), version), frame, 4):
        yield step._replace(path=f"header.{step.path}")
        position = step.end
    for step in walk(schema_of(ProduceRequest), version, frame, position):
        if not step.type.endswith("records"):
            yield step
            continue
        first = step.end - len(step.value)
        yield Step(step.start, first, f"{step.path} (length)", step.type, len(step.value))
        for inner in explain(step.value):
            yield inner._replace(start=inner.start + first, end=inner.end + first)


def read_back(frame: bytes, version: int) -> Record:
    """Decode the request and the record in it."""
    _, request = decode_request(ProduceRequest, version, frame[4:])
    data = request.topic_data[0].partition_data[0].records
    (entry,) = batches(data)
    (record,) = records(entry, LIMIT) if isinstance(entry, Batch) else read_messages(entry.data, LIMIT)
    return record


def show_formats(console: Console, *, as_json: bool) -> bool:
    """Print each format, as tables for people or as JSON lines for programs; whether each was read back the same."""
    sound = True
    for number, shown in enumerate(formats()):
        frame = b"".join(
            encode_request(produce_request(shown.data), shown.version, correlation_id=number, client_id="demo")
        )
        steps = list(explain_frame(frame, shown.version))
        record = read_back(frame, shown.version)
        same = record == shown.record
        sound = sound and same
        if as_json:
            for step in steps:
                line: dict[str, Any] = {"format": shown.title, **step._asdict(), "read_back_the_same": same}
                line["value"] = step.value.decode() if isinstance(step.value, bytes) else step.value
                line["bytes"] = frame[step.start : step.end].hex()
                console.out(json.dumps(line), highlight=False)
            continue
        console.print(_table(shown, frame, steps))
        verdict = "the same record" if same else "A DIFFERENT RECORD"
        console.print(f"  {len(frame)} bytes, read back as {verdict}: {record!r}\n", highlight=False)
    return sound


def _table(shown: Format, frame: bytes, steps: list[Step]) -> Table:
    table = Table(title=shown.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("byte", justify="right", style="dim")
    table.add_column("bytes", style="cyan", width=16, overflow="fold")
    table.add_column("field", style="bold", no_wrap=True, max_width=24)
    table.add_column("type", style="dim", no_wrap=True)
    table.add_column("value", style="green", overflow="fold")
    for step in steps:
        if step.start == step.end:
            continue
        raw = frame[step.start : step.end].hex()
        table.add_row(str(step.start), raw, _indented(step.path), step.type, _value(step.value))
    return table


def _indented(path: str) -> str:
    """The last part of a path, set in by how deep it stands, with the index of what it belongs to."""
    *above, name = path.split(".")
    owner = above[-1] if above and above[-1].endswith("]") and not above[-1].startswith(("message", "batch")) else ""
    return "  " * len(above) + (f"{owner[owner.index('[') :]} {name}" if owner else name)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        return ascii(value)
    return "null" if value is None else str(value)
