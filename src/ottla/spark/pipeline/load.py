"""A pipeline's file to what it says. Nothing of Spark runs for that."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from ottla.spark.java_options import about_the_cluster
from ottla.spark.options import SourceOptions
from ottla.spark.pipeline.section import PipelineError, Section
from ottla.spark.pipeline.spec import (
    AVAILABLE_NOW,
    SOURCE,
    DecodeSpec,
    Otherwise,
    PipelineSpec,
    SinkSpec,
    SourceSpec,
    StepSpec,
)
from ottla.spark.sink_options import SinkOptions

MAX_RECORDS_PER_BATCH = 1_000_000
"""Micro-batches end here unless the file says otherwise, so that a long history is taken, and shown, in pieces."""

_SINKS = ("topic", "parquet", "delta", "console", "copy")
_STEPS = ("sql", "python", "expect")
_OTHERWISE = ("drop", "divert", "fail")
_DURATION = re.compile(r"\s*\d+\s*(millisecond|second|minute|hour|day|week)s?\s*")
_FUNCTION = re.compile(r"[\w.]+:\w+")


def load(file: Path, settings: Mapping[str, str] | None = None) -> PipelineSpec:
    """Read a file. Settings are `key=value` for dotted keys, such as `source.bootstrap_servers` and `sink.0.topic`."""
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise PipelineError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is no TOML: {error}") from None
    for key, value in (settings or {}).items():
        _set(table, key, value)
    return parse(table, file.absolute().parent, file.stem)


def parse(table: Mapping[str, Any], folder: Path, default_name: str) -> PipelineSpec:
    """Check what a file says. Relative paths are relative to its folder, wherever the pipeline is started from."""
    top = Section(table, "")
    top.finish({"name", "checkpoint", "trigger", "dead_letters", "source", "step", "sink", "spark"})
    name = top.text("name", default_name) or default_name
    if not top.has("source"):
        raise PipelineError("[source] is missing; say which topics to read: topics = ...")
    dead_letters = top.text("dead_letters")
    source = _source(top.section("source"), folder, dead_letters)
    steps = _steps(top.sections("step"), dead_letters)
    sinks = _sinks(top.sections("sink"), folder, source, steps)
    return PipelineSpec(
        name=name,
        folder=folder,
        checkpoint=_path(folder, top.text("checkpoint") or f".ottla/{name}"),
        trigger=_trigger(top),
        dead_letters=dead_letters,
        source=source,
        steps=steps,
        sinks=sinks,
        spark={f"spark.{key}".replace("spark.spark.", "spark."): value for key, value in top.settings("spark").items()},
    )


def _trigger(top: Section) -> str | None:
    found = top.text("trigger")
    if found is not None and found != AVAILABLE_NOW and not _DURATION.fullmatch(found):
        raise top.error("trigger", f'is {found!r}; it must be a time such as "10 seconds", or "{AVAILABLE_NOW}"')
    return found


def _source(section: Section, folder: Path, dead_letters: str | None) -> SourceSpec:
    section.finish(
        {"bootstrap_servers", "topics", "pattern", "start", "max_records_per_batch", "group", "options", "decode"}
    )
    which = section.one_of(["topics", "pattern"])
    options = {
        "kafka.bootstrap.servers": section.text("bootstrap_servers", "localhost:9092") or "",
        "startingOffsets": section.choice("start", ("earliest", "latest"), "earliest"),
        "maxOffsetsPerTrigger": str(section.number("max_records_per_batch", MAX_RECORDS_PER_BATCH)),
        "includeHeaders": "true",
    }
    if which == "topics":
        options["subscribe"] = ",".join(section.texts("topics"))
    else:
        options["subscribePattern"] = section.text("pattern") or ""
    options |= section.settings("options")
    try:
        SourceOptions.parse(options, streaming=True)
    except ValueError as error:
        raise PipelineError(f"{section.path}: {error}") from None
    decode = _decode(section.section("decode"), folder, dead_letters) if section.has("decode") else None
    return SourceSpec(options=options, group=section.text("group"), decode=decode)


def _decode(section: Section, folder: Path, dead_letters: str | None) -> DecodeSpec:
    section.finish({"format", "schema", "schema_file", "message", "confluent", "otherwise", "options"})
    form = section.choice("format", ("json", "avro", "protobuf"), "json")
    schema: Any
    if section.one_of(["schema", "schema_file"]) == "schema_file":
        schema = _file(section, "schema_file", folder)
        schema = schema if form == "protobuf" else schema.decode()
    else:
        schema = section.raw("schema") if form == "avro" else section.text("schema")
        if form == "protobuf":
            raise section.error("schema", "cannot be a text for protobuf; write schema_file, made by protoc -o")
    if form == "protobuf":
        section.needed_text("message", '"package.Name"')
    found = DecodeSpec(
        format=cast(Any, form),
        schema=schema,
        message=section.text("message"),
        confluent=_confluent(section, folder),
        otherwise=_otherwise(section, "divert" if dead_letters else "fail", dead_letters),
        options=section.settings("options"),
    )
    _check_schema(section, found)
    return found


def _check_schema(section: Section, spec: DecodeSpec) -> None:
    from ottla.spark.avro import AvroFormat
    from ottla.spark.protobuf import ProtobufFormat

    try:
        if spec.format == "avro":
            _ = AvroFormat(spec.schema, spec.confluent).spark_type
        elif spec.format == "protobuf":
            _ = ProtobufFormat(spec.schema, spec.message or "", bool(spec.confluent)).spark_type
    except ImportError as error:
        raise PipelineError(f"{section.path}: {error}; install it with pip install 'ottla[{spec.format}]'") from None
    except Exception as error:
        raise PipelineError(f"{section.path}: the schema is not right: {error}") from error


def _confluent(section: Section, folder: Path) -> bool | dict[int, str]:
    if not isinstance(section.raw("confluent"), Mapping):
        return section.flag("confluent", False)
    files = section.section("confluent")
    found: dict[int, str] = {}
    for key in section.settings("confluent"):
        if not key.isdecimal():
            raise files.error(key, "is no id of a schema; write 1 = 'order-v1.avsc' and so on")
        found[int(key)] = _file(files, key, folder).decode()
    return found


def _otherwise(section: Section, default: str, dead_letters: str | None) -> Otherwise:
    found = section.choice("otherwise", _OTHERWISE, default)
    if found == "divert" and dead_letters is None:
        raise section.error("otherwise", 'is "divert", but there is no topic for it; write dead_letters = "..." on top')
    return cast(Otherwise, found)


def _steps(sections: Sequence[Section], dead_letters: str | None) -> tuple[StepSpec, ...]:
    found: list[StepSpec] = []
    for index, section in enumerate(sections):
        section.finish({"name", "input", "sql", "python", "expect", "otherwise", "watermark"})
        kind = section.one_of(_STEPS)
        text = section.needed_text(kind, "...")
        if kind == "python" and not _FUNCTION.fullmatch(text):
            raise section.error(kind, f'is {text!r}; write python = "module:function"')
        if section.has("otherwise") and kind != "expect":
            raise section.error("otherwise", "is for steps with expect = ...; leave it out")
        names = [SOURCE, *(one.name for one in found)]
        name = section.text("name") or f"step{index}"
        if name in (*names, "input"):
            raise section.error("name", f"is {name!r}, which is taken; give it another one")
        found.append(
            StepSpec(
                name=name,
                input=_input(section, names),
                kind=cast(Any, kind),
                text=text,
                otherwise=_otherwise(section, "fail", dead_letters) if kind == "expect" else "fail",
                watermark=_watermark(section),
            )
        )
    return tuple(found)


def _input(section: Section, names: list[str]) -> str:
    found = section.text("input") or names[-1]
    if found not in names:
        raise section.error("input", f"is {found!r}; before it there are {', '.join(names)}")
    return found


def _watermark(section: Section) -> tuple[str, str] | None:
    if not section.has("watermark"):
        return None
    table = section.section("watermark")
    table.finish({"column", "delay"})
    delay = table.needed_text("delay", '"10 minutes"')
    if not _DURATION.fullmatch(delay):
        raise table.error("delay", f'is {delay!r}; it must be a time such as "10 minutes"')
    return table.needed_text("column", '"at"'), delay


def _sinks(
    sections: Sequence[Section], folder: Path, source: SourceSpec, steps: Sequence[StepSpec]
) -> tuple[SinkSpec, ...]:
    if not sections:
        raise PipelineError('[[sink]] is missing; say where rows go: topic = "...", parquet = "folder", ...')
    names = [SOURCE, *(step.name for step in steps)]
    found = [_sink(section, index, folder, source, names) for index, section in enumerate(sections)]
    for index, sink in enumerate(found):
        if sink.name in [other.name for other in found[:index]]:
            raise sections[index].error("name", f"is {sink.name!r}, which is taken; give it another one")
        if sink.kind == "copy" and (steps or source.decode):
            raise sections[index].error("copy", "takes records as they are; leave out the steps and source.decode")
    return tuple(found)


def _sink(section: Section, index: int, folder: Path, source: SourceSpec, names: list[str]) -> SinkSpec:
    kind = section.one_of(_SINKS)
    extra = {
        "topic": {"bootstrap_servers", "key", "value"},
        "parquet": {"partition_by"},
        "delta": {"partition_by"},
        "console": {"rows"},
        "copy": {"verify"},
    }[kind]
    section.finish({"name", "input", "mode", "options", kind, *extra})
    if kind == "delta" and find_spec("deltalake") is None:
        raise section.error("delta", "needs a package that is not there; pip install 'ottla[delta]'")
    target = "" if kind == "console" and section.raw(kind) is True else section.needed_text(kind, "...")
    options = section.settings("options")
    if kind in ("topic", "copy"):
        servers = target if kind == "copy" else section.text("bootstrap_servers", source.bootstrap_servers)
        if servers == source.bootstrap_servers:
            options = about_the_cluster(source.options) | options
        options |= {"kafka.bootstrap.servers": servers or ""}
        try:
            SinkOptions.parse(options)
        except ValueError as error:
            raise PipelineError(f"{section.path}: {error}") from None
    elif kind in ("parquet", "delta"):
        target = _path(folder, target)
    mode = section.choice("mode", ("append", "update", "complete"), "append")
    if mode != "append" and kind in ("parquet", "delta", "copy"):
        raise section.error("mode", f"is {mode!r}, but rows of a {kind} sink stay what they are; leave it out")
    return SinkSpec(
        name=section.text("name") or f"{kind}{index}",
        input=_input(section, names),
        kind=cast(Any, kind),
        target=target,
        mode=cast(Any, mode),
        options=options,
        partition_by=section.texts("partition_by"),
        key=section.text("key"),
        value=section.text("value"),
        rows=section.number("rows", 20),
        verify=section.flag("verify", True),
    )


def _path(folder: Path, text: str) -> str:
    return text if "://" in text else str(folder / Path(text).expanduser())


def _file(section: Section, key: str, folder: Path) -> bytes:
    path = folder / section.needed_text(key, '"file"')
    try:
        return path.read_bytes()
    except OSError as error:
        raise section.error(key, f"is {path}, which cannot be read: {error.strerror}") from None


def _set(table: Any, key: str, text: str) -> None:
    """Set a dotted key to a TOML value, or to the text itself if it is none."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.split(".")
    for depth, parent in enumerate(parents):
        if isinstance(table, list):
            table = _item(table, parent, ".".join(parents[:depth]))
        elif isinstance(table, dict):
            table = table.setdefault(parent, {})
    if isinstance(table, list):
        _item(table, last, ".".join(parents))
        table[int(last)] = value
    elif isinstance(table, dict):
        table[last] = value
    else:
        raise PipelineError(f"{key} cannot be set: {'.'.join(parents)} is {table!r}, no table")


def _item(items: list[Any], index: str, path: str) -> Any:
    if not index.isdecimal() or int(index) >= len(items):
        raise PipelineError(f"{path}.{index} cannot be set: {path} is a list of {len(items)}, counted from 0")
    return items[int(index)]
