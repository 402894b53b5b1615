import struct
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from ottla.wire.api import MODULES, request, response
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.compile import Engine, make_decoder
from ottla.wire.decoding import FAILURES, minimum_size
from ottla.wire.errors import ProtocolError
from ottla.wire.schema import STRING, Array, Scalar, Type, Variable, schema_of
from ottla.wire.varint import encode_uvarint
from tests.unit.wire.engines import ENGINES

from .run import BYTES_PER_BYTE, run_cases
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
    """For each array of a message, an input of 3 KB that is all elements of the smallest kind."""
    schema = schema_of(cls)
    flexible = version in schema.flexible
    before, inputs = b"", []
    for field in schema.body(version):
        if isinstance(field.type, Array):
            element = smallest(field.type.element, version, flexible)
            assert len(element) == minimum_size(field.type.element, version, flexible)
            count = 3_000 // len(element)
            prefix = encode_uvarint(count + 1) if flexible else struct.pack(">i", count)
            inputs.append(before + prefix + element * count)
        before += smallest(field.type, version, flexible, version in field.nullable)
    return inputs


@pytest.mark.parametrize("engine", ENGINES)
def test_no_message_takes_more_memory_than_a_fixed_multiple_of_its_bytes(engine: Engine) -> None:
    worst = 0.0
    for key in MODULES:
        for cls in (request(key), response(key)):
            for version in schema_of(cls).versions:
                for data in costliest(cls, version):
                    decode = engine.make_decoder(schema_of(cls), version)
                    tracemalloc.start()
                    # Fields after the array are missing; the array itself was read.
                    with suppress(*FAILURES):
                        decode(data, 0)
                    worst = max(worst, tracemalloc.get_traced_memory()[1] / len(data))
                    tracemalloc.stop()
    assert 10 < worst < BYTES_PER_BYTE
