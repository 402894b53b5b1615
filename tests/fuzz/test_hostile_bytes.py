import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from ottla.record import Batch, Record, build_batch
from ottla.record.legacy import build_message_set, read_messages
from ottla.wire.api import MODULES, request, response
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.compile import Engine, make_decoder
from ottla.wire.decoding import FAILURES, minimum_size
from ottla.wire.errors import ProtocolError
from ottla.wire.schema import STRING, Array, Nested, Scalar, Type, Variable, schema_of
from ottla.wire.varint import encode_uvarint
from tests.unit.wire.engines import ENGINES

from . import run
from .run import BYTES_PER_BYTE, run_cases
from .sealing import mend, sealed, wrapped
from .target import Target, agree
from .targets import all_targets

GROUPS = sorted({target.group for target in all_targets()})


@pytest.mark.parametrize("group", GROUPS)
def test_hostile_bytes_give_a_message_or_a_protocol_error_and_nothing_else(group: str) -> None:
    targets = [target for target in all_targets() if target.group == group]
    outcome = run_cases(targets, max(8, 600 // sum(target.weight for target in targets)), seed=20)
    assert outcome.findings == []
    assert outcome.refused.total() > outcome.taken.total() // 10, "the inputs were hardly hostile"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("version", "count"), [(0, "7fffffff"), (9, "ffffffff07")])
def test_an_array_that_claims_two_billion_entries_allocates_nothing(engine: Engine, version: int, count: str) -> None:
    data = bytes.fromhex(count) + b"\1" * 16
    decode = make_decoder(engine, MetadataRequest, version)
    with pytest.raises(ProtocolError):
        decode(data, 0)
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        decode(data, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000


def smallest(kind: Type, version: int, flexible: bool, nullable: bool = False) -> bytes:
    """The fewest bytes that decode to a value, and so the most values for the bytes."""
    if isinstance(kind, Scalar):
        return bytes(kind.size)
    if isinstance(kind, Variable):
        return b"\1" if flexible else bytes(2 if kind is STRING else 4)
    if isinstance(kind, Array):
        return b"\1" if flexible else bytes(4)
    if nullable:
        return b"\xff"
    fields = kind.schema.body(version)
    inside = [smallest(field.type, version, flexible, version in field.nullable) for field in fields]
    return b"".join(inside) + b"\0" * flexible


def costliest(cls: type[Any], version: int) -> list[bytes]:
    """For each array of a message, an input of a kilobyte or so that is all elements of the smallest kind."""
    schema = schema_of(cls)
    flexible = version in schema.flexible
    before, inputs = b"", []
    for field in schema.body(version):
        if isinstance(field.type, Array):
            element = smallest(field.type.element, version, flexible)
            assert len(element) == minimum_size(field.type.element, version, flexible)
            number = 1_000 // len(element)
            prefix = encode_uvarint(number + 1) if flexible else struct.pack(">i", number)
            inputs.append(before + prefix + element * number)
            if flexible and isinstance(field.type.element, Nested):
                # An unknown tag without content costs a dictionary.
                tagged = element[:-1] + bytes.fromhex("01 64 00")
                number = 1_000 // len(tagged)
                inputs.append(before + encode_uvarint(number + 1) + tagged * number)
        before += smallest(field.type, version, flexible, version in field.nullable)
    return inputs


@pytest.mark.parametrize("engine", ENGINES)
def test_no_message_takes_more_memory_than_a_fixed_multiple_of_its_bytes(engine: Engine) -> None:
    worst = 0.0
    for key in MODULES:
        for cls in (request(key), response(key)):
            for version in schema_of(cls).versions:
                decode = engine.make_decoder(schema_of(cls), version)
                for data in costliest(cls, version):
                    tracemalloc.start()
                    # Fields after the array are missing; the array itself was read.
                    with suppress(*FAILURES):
                        decode(data, 0)
                    worst = max(worst, tracemalloc.get_traced_memory()[1] / len(data))
                    tracemalloc.stop()
    assert 10 < worst < BYTES_PER_BYTE


# What watches the decoders is watched here.


def findings_of(take: Callable[[bytes], object], **options: Any) -> list[str]:
    """What is found in a decoder that takes the first sound bytes it gets, and then does this."""
    calls = count()
    target = Target("test", "test", lambda _: b"sound", lambda data: take(data) if next(calls) else None, **options)
    return [finding.what for finding in run_cases([target], 1, seed=1).findings]


def fail(error: BaseException) -> Callable[[bytes], object]:
    def take(data: bytes) -> object:
        raise error

    return take


@pytest.mark.parametrize("error", [IndexError("out of range"), struct.error("short"), MemoryError(), RecursionError()])
def test_any_other_exception_is_found(error: Exception) -> None:
    assert findings_of(fail(error)) == [f"{type(error).__name__}: {error}"]


def test_an_error_that_does_not_say_where_is_found() -> None:
    assert findings_of(fail(ProtocolError("malformed"))) == ["does not say where: malformed"]
    assert findings_of(fail(ProtocolError("malformed", offset=0))) == []
    assert findings_of(fail(ProtocolError("malformed", where="topic"))) == []


def test_memory_beyond_the_allowance_is_found() -> None:
    assert "bytes of memory for" in findings_of(lambda _: bytearray(100_000))[0]
    assert findings_of(lambda _: bytearray(100_000), inflates=True) == []


def test_memory_of_native_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "peak_resident_bytes", count(0, 100 << 20).__next__)
    assert "the process grew by 104857600 bytes" in findings_of(lambda _: None, inflates=True)[0]


def test_a_hang_ends_the_process_and_says_where() -> None:
    code = """
import time
from tests.fuzz.run import run_cases
from tests.fuzz.target import Target
def stuck(data):
    time.sleep(30)
run_cases([Target("test", "test", lambda _: b"sound", stuck)], 1, seed=1, hang_seconds=0.5)
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=25)
    assert done.returncode == 1
    assert "in stuck" in done.stderr


def test_two_ways_that_end_differently_are_found() -> None:
    with pytest.raises(AssertionError, match="one says 1, the other 2"):
        agree(lambda: 1, lambda: 2)
    with pytest.raises(AssertionError, match="one says ProtocolError: a, the other ProtocolError: b"):
        agree(lambda: fail(ProtocolError("a"))(b""), lambda: fail(ProtocolError("b"))(b""))
    with pytest.raises(ProtocolError, match="the same"):
        agree(lambda: fail(ProtocolError("the same"))(b""), lambda: fail(ProtocolError("the same"))(b""))


def test_checksums_can_be_made_right_around_any_damage() -> None:
    batch = bytearray(build_batch([Record(0, 5, b"key", b"value", [("h", b"v")])]))
    batch[-1] ^= 0xFF
    message = bytearray(build_message_set([Record(0, 5, b"key", b"value")], 1))
    message[-1] ^= 0xFF
    with pytest.raises(ProtocolError, match="CRC"):
        Batch(batch).validate()
    with pytest.raises(ProtocolError, match="CRC"):
        read_messages(message, 1000)
    mended = mend(bytes(batch + message))
    Batch(mended).validate()
    assert read_messages(mended[len(batch) :], 1000)[0].value == b"valu\x9a"
    assert read_messages(wrapped(mended[len(batch) :]), 1000)[0].value == b"valu\x9a"
    tight = Batch(sealed(bytes(batch)))
    tight.validate()
    assert bytes(tight.section(1000)) == bytes(batch[61:])
