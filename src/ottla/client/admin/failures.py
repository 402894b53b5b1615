"""How failures of several things at once are raised."""

from collections.abc import Hashable, Mapping

from ottla.client.errors import KafkaError, SeveralFailedError


def raise_failures(failures: Mapping[Hashable, KafkaError]) -> None:
    """Raise what went wrong, if anything did: one failure as it is, several as one `SeveralFailedError`."""
    errors = list(dict.fromkeys(failures.values()))
    # A request that failed as a whole failed for everything that it asked for.
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SeveralFailedError(failures)
