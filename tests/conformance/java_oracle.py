"""Apache Kafka's own message classes, where Maven can fetch them: the authority on every version."""

from pathlib import Path
from random import Random

from ottla.wire.schema import Field
from tests.java import jars, java_command

from .oracle import EVERY_KIND, ProgramOracle
from .plain import OLDER_NAMES, Names
from .samples import ANYTHING, Limits

NEWEST = "4.4.0"
WITH_COORDINATORS = "4.3.1"
"""The newest release whose coordinator jars, which have the internal records, are published."""
LAST_WITH_OLD_VERSIONS = "3.9.2"

SPELLING = {
    ("InitProducerIdRequest", "enable_2pc"): "enable2Pc",
}

# Null instead of an empty list is what we accept in Metadata v0 beyond its definition; Kafka cannot write it.
LIMITS = Limits(unknown_tags=True, never_null=frozenset({("MetadataRequest", 0, "topics")}))


def open_newest() -> ProgramOracle:
    """The newest release."""
    return _open(NEWEST, Names(SPELLING, camel_case=True))


def open_with_coordinators() -> ProgramOracle:
    """A release with the records of the internal topics, and asked for those alone."""
    names = Names(SPELLING, camel_case=True)
    limits = LIMITS._replace(narrow=without_assignment_epochs)
    return _open(WITH_COORDINATORS, names, "coordinators", limits=limits, kinds=frozenset({"data"}))


def open_last_with_old_versions() -> ProgramOracle:
    """The last release before Kafka 4 dropped versions.

    It is not asked for records: they have since got tagged fields without getting a new version.
    """
    names = Names({**SPELLING, **OLDER_NAMES}, camel_case=True)
    return _open(LAST_WITH_OLD_VERSIONS, names, kinds=EVERY_KIND - {"data"})


def without_assignment_epochs(field: Field, _random: Random) -> object:
    """Leave out the one tagged field that came after the release with coordinators; golden bytes have it."""
    return None if field.name == "assignment_epochs" else ANYTHING


def _open(
    version: str,
    names: Names,
    profile: str | None = None,
    *,
    limits: Limits = LIMITS,
    kinds: frozenset[str] = EVERY_KIND,
) -> ProgramOracle:
    command = [*java_command(f"{jars(version, profile)}/*"), str(Path(__file__).parent / "java" / "Oracle.java")]
    return ProgramOracle(f"Java {version}", command, limits, names, kinds=kinds)
