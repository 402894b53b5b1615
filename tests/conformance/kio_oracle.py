"""kio: classes generated from Kafka's own definitions, one for each message and version."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

from ottla.wire.schema import Field, Scalar

from .oracle import ProgramOracle, download
from .plain import OLD_NAMES, OLDER_NAMES, Names
from .samples import ANYTHING, Limits

CURRENT = "0.6.5"
LAST_WITH_OLD_VERSIONS = "0.6.2"
"""The last release that still has the versions that Kafka 4 dropped."""

SPELLING = {
    ("InitProducerIdRequest", "enable_2pc"): "enable2_pc",
    ("ControlRecordTypeSchema", "type"): "type_",
}

YEAR_9999_MS = 253_402_300_799_000


def narrow(field: Field, random: Random) -> object:
    """Values that kio's richer types can hold.

    Error codes are an enumeration of those known at the release; the older one ends at 127. Times in 64 bits are
    `datetime` or `timedelta` objects, which end with the year 9999 and not with the 64 bits.
    """
    if isinstance(field.type, Scalar):
        if field.type.name == "int16" and field.name.endswith("error_code"):
            return random.randint(-1, 127)
        if field.type.name == "int64" and field.name.endswith("_ms"):
            return random.choice((0, 1, random.randint(0, YEAR_9999_MS)))
    return ANYTHING


def open_current() -> ProgramOracle:
    """The release that is installed beside us."""
    return _open(f"kio {CURRENT}", OLD_NAMES, {})


def open_last_with_old_versions() -> ProgramOracle:
    """The older release, fetched into a directory of its own on first use."""
    directory = download(f"kio-{LAST_WITH_OLD_VERSIONS}", _install)
    return _open(f"kio {LAST_WITH_OLD_VERSIONS}", OLDER_NAMES, {"PYTHONPATH": str(directory)})


def _install(directory: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", str(directory), f"kio=={LAST_WITH_OLD_VERSIONS}"], check=True)


def _open(name: str, old_names: Mapping[tuple[str, str], str], environment: dict[str, str]) -> ProgramOracle:
    program = str(Path(__file__).with_name("kio_program.py"))
    # kio has no way to write a tagged field that it does not know.
    limits = Limits(narrow=narrow, unknown_tags=False)
    names = Names({**SPELLING, **old_names})
    return ProgramOracle(name, [sys.executable, program], limits, names, environment={**os.environ, **environment})
