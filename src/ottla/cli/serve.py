"""`ottla serve`: a broker until it is told to stop."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ottla import __version__
from ottla.broker.server import Server
from ottla.cli.ending import FAILED, complain
from ottla.config.broker import BrokerConfig
from ottla.config.load import load_broker_config
from ottla.meta.store import StoreError
from ottla.metrics.logs import LogFormat, write_logs
from ottla.ports.descriptors import allow_more_descriptors
from ottla.ports.heap import collect_seldom, keep_freed_memory
from ottla.wire.errors import KafkaError

KEPT_BYTES = 32 * 1024 * 1024
"""How much free memory a broker keeps: some large requests are all that it has in its hands at a time."""


def settings(
    file: Path | None, overrides: Sequence[str], listen: Sequence[str], advertise: Sequence[str], data: Path | None
) -> BrokerConfig:
    """Put the settings together: file, environment, `--set`, then the options that have names of their own."""
    named = list(overrides)
    if listen:
        named.append("listeners=" + ",".join(listen))
    if advertise:
        # With one listener it is clear whose address it is.
        prefix = "".join(listen[0].rpartition("://")[:2]) if len(listen) == 1 else ""
        named.append("advertised.listeners=" + ",".join(one if "://" in one else prefix + one for one in advertise))
    if data is not None:
        named.append(f"log.dirs={data}")
    text = "" if file is None else file.read_text()
    name = "broker.toml" if file is None else file.name
    return load_broker_config(text, name, environment=os.environ, overrides=named)


def run(
    file: Path | None = None,
    overrides: Sequence[str] = (),
    listen: Sequence[str] = (),
    advertise: Sequence[str] = (),
    data: Path | None = None,
    *,
    metrics: str | None = None,
    log_format: LogFormat = "text",
    log_level: str = "info",
) -> None:
    """Run a broker with these settings; what stops it from starting goes to stderr, with exit code 1."""
    write_logs(log_format, log_level.upper())
    try:
        named = [*overrides, *([] if metrics is None else [f"ottla.metrics.listen={metrics}"])]
        config = settings(file, named, listen, advertise, data)
        _prepare_folder(Path(config.data_folder))
        serve(config)
    except (KafkaError, StoreError) as error:
        _fail(str(error))
    except OSError as error:
        reason = error.strerror or str(error)
        _fail(reason if error.filename is None else f"{error.filename}: {reason}")


def _fail(message: str) -> NoReturn:
    complain(message)
    raise SystemExit(FAILED)


def _prepare_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        _fail(f"the data folder {folder} is a file; name another one with --data")
    except OSError as error:
        _fail(f"the data folder {folder} cannot be created ({error.strerror}); name another one with --data")
    if not os.access(folder, os.W_OK | os.X_OK):
        _fail(f"the data folder {folder} cannot be written to by this user; name another one with --data")


def serve(config: BrokerConfig) -> None:
    """Run a broker until SIGINT or SIGTERM."""
    keep_freed_memory(KEPT_BYTES)
    allow_more_descriptors()
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(config))
    else:
        uvloop.run(_serve(config))


async def _serve(config: BrokerConfig) -> None:
    started = time.perf_counter()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with Server(config) as server:
        took_ms = (time.perf_counter() - started) * 1000
        others = "".join(f", {name} at {where}" for name, where in list(server.endpoints.items())[1:])
        where = f"{server.address}{others}, data in {config.data_folder}"
        sys.stdout.write(f"ottla {__version__} ready at {where} ({took_ms:.0f} ms)\n")
        sys.stdout.flush()
        collect_seldom()
        await stop.wait()
