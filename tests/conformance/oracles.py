"""Which oracles there are, and how to have them open for a while."""

import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from . import handwritten_oracle, java_oracle, kio_oracle
from .kafka_python_oracle import KafkaPythonOracle
from .oracle import Oracle

Opener = Callable[[], Oracle]

PYTHON_ORACLES: tuple[Opener, ...] = (
    kio_oracle.open_current,
    kio_oracle.open_last_with_old_versions,
    KafkaPythonOracle,
    handwritten_oracle.open_kafka_python_old,
    handwritten_oracle.open_aiokafka,
)

JAVA_ORACLES: tuple[Opener, ...] = (
    java_oracle.open_newest,
    java_oracle.open_with_coordinators,
    java_oracle.open_last_with_old_versions,
)


@contextmanager
def opened(openers: Iterable[Opener], on_failure: Callable[[str], None]) -> Iterator[list[Oracle]]:
    """Open what can be opened; `on_failure` hears of what cannot, such as a download without a network."""
    with ExitStack() as stack:
        oracles = []
        for opener in openers:
            try:
                oracle = opener()
            except (subprocess.CalledProcessError, OSError) as error:
                on_failure(f"{opener.__module__}.{opener.__name__} failed: {error}")
                continue
            stack.callback(oracle.close)
            oracles.append(oracle)
        yield oracles
