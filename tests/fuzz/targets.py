"""What hostile bytes are thrown at: every decoder there is.

A target makes sound bytes to be damaged, and takes damaged ones. It returns, or raises ProtocolError; anything else is
a finding.
"""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple

from ottla.record import _twin
from ottla.record.batch import Batch, batches, records, scan
from ottla.record.build import BatchBuilder
from ottla.record.columns import to_arrow
from ottla.record.compression import Codec, compress, decompress
from ottla.record.control import build_end_marker, read_end_marker
from ottla.record.convert import downconvert, upconvert
from ottla.record.kernels import Record
from ottla.record.legacy import build_message_set, check, read_messages
from ottla.wire.compile import PYTHON, compiled_engine, encode, make_decoder
from ottla.wire.embedded import decode_versioned, encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.frame import FrameReader
from tests.conformance.codecs import Codec as WireCodec
from tests.conformance.codecs import api_codecs, other_codecs
from tests.conformance.samples import Limits, make_sample

LIMIT = 1 << 18
"""What compressed records may grow to here."""


class Target(NamedTuple):
    """A decoder: how to make bytes that it accepts, and how to give it bytes."""

    group: str
    name: str
    make: Callable[[Random], bytes]
    take: Callable[[bytes], object]


def all_targets() -> list[Target]:
    """Every decoder of messages, frames, records and compressed data, in both engines where there are two."""
    return [*_wire_targets(), *_record_targets()]


# --- messages ---


def _wire_targets() -> Iterator[Target]:
    engines = {"python": PYTHON}
    if (compiled := compiled_engine()) is not None:
        engines["compiled"] = compiled
    for codec in [*api_codecs(), *other_codecs()]:
        for name, engine in engines.items():
            take = make_decoder(engine, codec.message, codec.version)
            yield Target(f"messages, {name}", str(codec), partial(_message, codec), partial(_decode, take))
    yield Target("frames", "frames", _frames, _read_frames)
    yield Target("embedded", "subscription", _subscription, partial(decode_versioned, ConsumerProtocolSubscription))


def _message(codec: WireCodec, random: Random) -> bytes:
    return encode(make_sample(codec, random.randrange(2, 1 << 30), Limits(unknown_tags=True)), codec.version)


def _decode(take: Callable[[bytes, int], Any], data: bytes) -> object:
    return take(data, 0)


def _frames(random: Random) -> bytes:
    return b"".join(
        size.to_bytes(4, "big") + random.randbytes(size) for size in (random.randrange(30) for _ in range(4))
    )


def _read_frames(data: bytes) -> None:
    reader = FrameReader(max_size=64)
    for start in range(0, len(data), 7):
        reader.feed(data[start : start + 7])


def _subscription(random: Random) -> bytes:
    topics = [f"topic-{random.randrange(99)}" for _ in range(random.randrange(4))]
    return encode_versioned(ConsumerProtocolSubscription(topics=topics), random.randrange(4))


# --- records ---


def _record_targets() -> Iterator[Target]:
    for codec in Codec:
        yield Target("compression", codec.name.lower(), partial(_compressed, codec), partial(_decompress, codec))
    yield Target("compression", "lz4, magic 0", partial(_compressed, Codec.LZ4, legacy_lz4=True), _decompress_old_lz4)
    yield Target("batches", "scan", _batches, _scan)
    yield Target("batches", "records", _batches, _records)
    yield Target("batches", "arrow", _run, _to_arrow)
    yield Target("batches", "control", _marker, _read_marker)
    yield Target("batches", "python twin", _section, _twin_records)
    yield Target("message sets", "check", _message_set, lambda data: check(data, LIMIT))
    yield Target("message sets", "records", _message_set, lambda data: read_messages(data, LIMIT))
    yield Target("conversion", "up", _message_set, lambda data: upconvert(data, LIMIT))
    for magic in (0, 1):
        yield Target("conversion", f"down to {magic}", _run, partial(_down, magic))


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
    builder = BatchBuilder(random.choice(list(Codec)), base_offset=random.randrange(1 << 40))
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


def _twin_records(data: bytes) -> None:
    count = data[0] if data else 0
    _twin.scan(data[1:], count, True)
    _twin.read(data[1:], count, 0, 0)


def _marker(random: Random) -> bytes:
    return build_end_marker(
        producer_id=random.randrange(99),
        producer_epoch=3,
        commit=random.randrange(2) == 0,
        coordinator_epoch=1,
        timestamp_ms=5,
    )


def _compressed(codec: Codec, random: Random, *, legacy_lz4: bool = False) -> bytes:
    plain = random.choice((random.randbytes(random.randrange(300)), b"ab" * random.randrange(90_000)))
    return compress(codec, plain, legacy_lz4=legacy_lz4)


def _decompress(codec: Codec, data: bytes) -> None:
    assert len(decompress(codec, data, LIMIT)) <= max(LIMIT, len(data))


def _decompress_old_lz4(data: bytes) -> None:
    assert len(decompress(Codec.LZ4, data, LIMIT, legacy_lz4=True)) <= LIMIT


def _scan(data: bytes) -> None:
    for entry in batches(data):
        if isinstance(entry, Batch):
            scan(entry, LIMIT, gaps=True)


def _records(data: bytes) -> None:
    for entry in batches(data):
        if isinstance(entry, Batch):
            records(entry, LIMIT)


def _read_marker(data: bytes) -> None:
    for entry in batches(data):
        if isinstance(entry, Batch):
            for record in records(entry, LIMIT):
                read_end_marker(record)


def _to_arrow(data: bytes) -> None:
    to_arrow(data, limit=LIMIT).validate(full=True)


def _down(magic: int, data: bytes) -> None:
    downconvert(data, magic, LIMIT, zstd_as=Codec.GZIP)
