"""Decoders of compressed data, batches and message sets."""

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from ottla.record import _twin
from ottla.record.batch import CODEC_MASK, Batch, batches, records, scan
from ottla.record.build import BatchBuilder
from ottla.record.columns import to_arrow
from ottla.record.compression import Codec, compress, decompress
from ottla.record.control import build_end_marker, read_end_marker
from ottla.record.convert import downconvert, reformat, upconvert
from ottla.record.explain import explain
from ottla.record.kernels import COMPILED, Record
from ottla.record.legacy import build_message_set, check, read_messages

from .sealing import mend, sealed, wrapped
from .target import LIMIT, Target, agree

Take = Callable[[bytes], object]


def targets() -> Iterator[Target]:
    """Every decoder of records; where checksums guard them, behind those as well."""
    for codec in Codec:
        yield Target("compression", codec.name.lower(), partial(_compressed, codec), partial(_decompress, codec))
    yield Target("compression", "lz4, magic 0", partial(_compressed, Codec.LZ4, legacy_lz4=True), _decompress_old_lz4)
    for name, take in _BATCH_DECODERS.items():
        yield Target("batches", name, _batches, take, mend=mend)
        yield Target("batches", f"{name}, sealed", _plain_batch, partial(_dressed, sealed, take))
    yield Target("batches", "control", _marker, _read_marker, mend=mend)
    yield Target("batches", "both kernels", _section, _both_kernels)
    for name, take in _MESSAGE_SET_DECODERS.items():
        yield Target("message sets", name, _message_set, take, mend=mend)
        yield Target("message sets", f"{name}, wrapped", _message_set, partial(_dressed, wrapped, take), mend=mend)
    for magic in (0, 1):
        yield Target("mixed runs", f"down to magic {magic}", _run, partial(_down, magic), mend=mend)
    yield Target("mixed runs", "arrow", _run, _to_arrow, mend=mend)


def _dressed(dress: Callable[[bytes], bytes], take: Take, data: bytes) -> object:
    return take(dress(data))


# --- sound bytes ---


def _compressed(codec: Codec, random: Random, *, legacy_lz4: bool = False) -> bytes:
    plain = random.choice((random.randbytes(random.randrange(300)), b"ab" * random.randrange(90_000)))
    return compress(codec, plain, legacy_lz4=legacy_lz4)


def _some_records(random: Random) -> list[Record]:
    return [
        Record(
            offset,
            1_700_000_000_000 + random.randrange(-50, 50),
            None if random.randrange(3) == 0 else random.randbytes(random.randrange(6)),
            None if random.randrange(9) == 0 else b"v" * random.randrange(300),
            [("h", random.choice((None, b"", b"x")))] if random.randrange(3) == 0 else (),
        )
        for offset in range(random.randint(1, 6))
    ]


def _batch(random: Random) -> bytes:
    return _build(random, random.choice(list(Codec)))


def _plain_batch(random: Random) -> bytes:
    return _build(random, Codec.NONE)


def _build(random: Random, codec: Codec) -> bytes:
    builder = BatchBuilder(codec, base_offset=random.randrange(1 << 40))
    for record in _some_records(random):
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder.build()


def _batches(random: Random) -> bytes:
    return b"".join(_batch(random) for _ in range(random.randint(1, 3)))


def _message_set(random: Random) -> bytes:
    codec = random.choice([codec for codec in Codec if codec is not Codec.ZSTD])
    plain = [Record(record.offset, record.timestamp, record.key, record.value) for record in _some_records(random)]
    return build_message_set(plain, random.randrange(2), codec)


def _run(random: Random) -> bytes:
    return b"".join(random.choice((_batch, _message_set))(random) for _ in range(random.randint(1, 3)))


def _section(random: Random) -> bytes:
    writer = _twin.RecordWriter()
    for record in _some_records(random):
        writer.append(record.timestamp, record.key, record.value, record.headers)
    return bytes([writer.count]) + bytes(writer.records())


def _marker(random: Random) -> bytes:
    return build_end_marker(
        producer_id=random.randrange(99),
        producer_epoch=3,
        commit=random.randrange(2) == 0,
        coordinator_epoch=1,
        timestamp_ms=5,
    )


# --- decoders ---


def _decompress(codec: Codec, data: bytes) -> None:
    assert len(decompress(codec, data, LIMIT)) <= max(LIMIT, len(data))


def _decompress_old_lz4(data: bytes) -> None:
    assert len(decompress(Codec.LZ4, data, LIMIT, legacy_lz4=True)) <= LIMIT


def _each_batch(data: bytes) -> Iterator[Batch]:
    return (entry for entry in batches(data) if isinstance(entry, Batch))


def _validate(data: bytes) -> None:
    for batch in _each_batch(data):
        batch.validate(gaps=True)


def _scan(data: bytes) -> None:
    for batch in _each_batch(data):
        scan(batch, LIMIT, gaps=True)


def _records(data: bytes) -> None:
    for batch in _each_batch(data):
        records(batch, LIMIT)


def _read_marker(data: bytes) -> None:
    for batch in _each_batch(data):
        for record in records(batch, LIMIT):
            read_end_marker(record)


def _both_kernels(data: bytes) -> None:
    kernels = [importlib.import_module("ottla.record._kernels"), _twin] if COMPILED else [_twin, _twin]

    def end(kernel: Any) -> object:
        count, section = data[0] if data else 0, data[1:]
        columns, views = kernel.Columns(), kernel.Columns(views=True)
        columns.extend(section, count, 0, 0)
        views.extend(section, count, 0, 0)
        found = [
            (item.offset, item.timestamp, item.key, item.value, item.headers)
            for item in kernel.read(section, count, 0, 0)
        ]
        return kernel.scan(section, count, True), found, columns.finish(), views.finish()

    agree(partial(end, kernels[0]), partial(end, kernels[1]))


def _gather(data: bytes) -> None:
    kernels = [importlib.import_module("ottla.record._kernels"), _twin] if COMPILED else [_twin, _twin]

    def end(kernel: Any) -> object:
        columns, views = kernel.Columns(), kernel.Columns(views=True)
        # Without checksums, so that what was changed is looked into.
        passed = [each.extend_batches(data, 0, len(data), len(data), CODEC_MASK, 0) for each in (columns, views)]
        return passed, columns.finish(), views.finish()

    agree(partial(end, kernels[0]), partial(end, kernels[1]))


def _to_arrow(data: bytes) -> None:
    to_arrow(data, limit=LIMIT).validate(full=True)


def _explain(data: bytes) -> None:
    for _ in explain(data, LIMIT):
        pass


def _down(magic: int, data: bytes) -> None:
    downconvert(data, magic, LIMIT, zstd_as=Codec.GZIP)


_BATCH_DECODERS: dict[str, Take] = {
    "validate": _validate,
    "scan": _scan,
    "records": _records,
    "arrow": _to_arrow,
    "gather": _gather,
    "explain": _explain,
}
_MESSAGE_SET_DECODERS: dict[str, Take] = {
    "check": lambda data: check(data, LIMIT),
    "records": lambda data: read_messages(data, LIMIT),
    "arrow": _to_arrow,
    "gather": _gather,
    "explain": _explain,
    "up": lambda data: upconvert(data, LIMIT),
    "to magic 0": lambda data: reformat(data, 0, LIMIT),
    "to magic 1": lambda data: reformat(data, 1, LIMIT),
}
