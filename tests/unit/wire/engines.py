"""Both ways to make codecs, for tests that hold them equal."""

from typing import Any

import pytest

from ottla.wire.compile import PYTHON, Engine, compiled_engine, make_decoder, make_encoder

ENGINES = [pytest.param(PYTHON, id="python")]
if (_compiled := compiled_engine()) is not None:
    ENGINES.append(pytest.param(_compiled, id="compiled"))


def encode_with(engine: Engine, message: Any, version: int) -> bytes:
    pieces: list[Any] = []
    buffers: list[Any] = []
    make_encoder(engine, type(message), version)(message, pieces, buffers)
    return b"".join([*buffers, *pieces])


def decode_with(engine: Engine, cls: type[Any], version: int, data: bytes) -> Any:
    return make_decoder(engine, cls, version)(data, 0)[0]
