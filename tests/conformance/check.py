"""The comparison itself, and the run over everything."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

from ottla.wire.compile import PYTHON, Decoder, Encoder, Engine, compiled_engine, make_decoder, make_encoder

from .codecs import Codec
from .golden import GOLDEN
from .golden_streams import STREAMS_GOLDEN
from .oracle import Oracle
from .samples import make_sample

ALL_GOLDEN = GOLDEN + STREAMS_GOLDEN
AROUND = b"\xff\xff\xff"

ENGINES: dict[str, Engine] = {"Python": PYTHON}
"""The engines of our codec that are checked: both where the compiled one is installed."""
if (_compiled := compiled_engine()) is not None:
    ENGINES["compiled"] = _compiled


class Result(NamedTuple):
    """What one oracle said of one codec."""

    codec: Codec
    oracle: str
    samples: int
    failure: str | None


def compare(codec: Codec, message: Any, theirs: bytes) -> str | None:
    """Hold each engine of our codec to their bytes, in both directions; says what differs, or nothing."""
    for name, engine in ENGINES.items():
        failure = _compare(engine, codec, message, theirs)
        if failure is not None:
            return f"{name} engine: {failure}"
    return None


def _compare(engine: Engine, codec: Codec, message: Any, theirs: bytes) -> str | None:
    encode, decode = _codec(engine, codec)
    pieces: list[Any] = []
    buffers: list[Any] = []
    encode(message, pieces, buffers)
    ours = b"".join([*buffers, *pieces])
    if ours != theirs:
        pairs = enumerate(zip(ours, theirs, strict=False))
        at = next((at for at, (mine, other) in pairs if mine != other), min(len(ours), len(theirs)))
        return (
            f"bytes differ at {at}: ours {len(ours)} bytes ..{ours[max(0, at - 4) : at + 12].hex(' ')}.., "
            f"theirs {len(theirs)} bytes ..{theirs[max(0, at - 4) : at + 12].hex(' ')}.., for {message!r}"
        )
    # Amid other bytes, as a message stands in a frame: the decoder must begin and end where the message does.
    decoded, end = decode(AROUND + theirs + AROUND, len(AROUND))
    if end != len(AROUND) + len(theirs):
        return f"our decoder stopped at byte {end - len(AROUND)} of {len(theirs)}, for {message!r}"
    if decoded != message:
        return f"their bytes decode to {decoded!r}, not to {message!r}"
    return None


@cache
def _codec(engine: Engine, codec: Codec) -> tuple[Encoder, Decoder[Any]]:
    return make_encoder(engine, codec.message, codec.version), make_decoder(engine, codec.message, codec.version)


def check_codec(oracle: Oracle, codec: Codec, samples: int, seed: int = 0) -> Result:
    """Ask an oracle for some samples of one codec; stops at the first that differs."""
    for index in range(samples):
        message = make_sample(codec, index, oracle.limits, seed)
        failure = _try_one(oracle, codec, message)
        if failure is not None:
            return Result(codec, oracle.name, index, f"sample {index}: {failure}")
    return Result(codec, oracle.name, samples, None)


def _try_one(oracle: Oracle, codec: Codec, message: Any) -> str | None:
    # One exception must not end a run of thousands; it is reported as what it is, a failure.
    try:
        theirs = oracle.encode(codec, message)
    except Exception as error:  # noqa: BLE001
        return f"the oracle refused {message!r}: {type(error).__name__}: {error}"
    try:
        return compare(codec, message, theirs)
    except Exception as error:  # noqa: BLE001
        return f"our codec refused {message!r}, {theirs.hex()}: {type(error).__name__}: {error}"


def check_golden(codecs: Iterable[Codec]) -> list[Result]:
    """Hold our codec to the bytes written by hand."""
    results = []
    for codec in codecs:
        golden = [item for item in ALL_GOLDEN if type(item.message) is codec.message and item.version == codec.version]
        failures = [failure for item in golden if (failure := compare(codec, item.message, item.data)) is not None]
        if golden:
            results.append(Result(codec, "golden bytes", len(golden), failures[0] if failures else None))
    return results


def check_all(
    oracles: Sequence[Oracle],
    codecs: Iterable[Codec],
    samples: int,
    seed: int = 0,
    on_result: Callable[[str], None] = lambda _oracle: None,
) -> list[Result]:
    """Every codec that an oracle knows, for each oracle. They run side by side: most are processes of their own."""
    wanted = list(codecs)

    def run(oracle: Oracle) -> list[Result]:
        results = []
        for codec in wanted:
            if oracle.covers(codec):
                results.append(check_codec(oracle, codec, samples, seed))
            on_result(oracle.name)
        return results

    with ThreadPoolExecutor(max_workers=max(1, len(oracles))) as pool:
        return [result for results in pool.map(run, oracles) for result in results]
