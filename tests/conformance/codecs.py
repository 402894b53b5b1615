"""What is to be checked: every message of the protocol in every version."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.wire import api, header
from ottla.wire.embedded import consumer_protocol, control, offsets_topic, transactions_topic
from ottla.wire.schema import Struct, schema_of


class Codec(NamedTuple):
    """One message in one version. `kind` is request, response, header or data."""

    kind: str
    key: int | None
    message: type[Any]
    version: int

    @property
    def name(self) -> str:
        """The message's name, as Kafka writes it."""
        return self.message.__name__

    @property
    def flexible(self) -> bool:
        """Whether this version has compact lengths and tagged fields."""
        return self.version in schema_of(self.message).flexible

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


def api_codecs() -> Iterator[Codec]:
    """The requests and responses that clients speak: the 600 that the closing line counts."""
    for key in api.MODULES:
        for kind, message in (("request", api.request(key)), ("response", api.response(key))):
            for version in schema_of(message).versions:
                yield Codec(kind, key, message, version)


def other_codecs() -> Iterator[Codec]:
    """Headers, the consumer protocol, control records and the records of internal topics."""
    for message in (header.RequestHeader, header.ResponseHeader):
        for version in schema_of(message).versions:
            yield Codec("header", None, message, version)
    for module in (consumer_protocol, control, offsets_topic, transactions_topic):
        for message in vars(module).values():
            # Parts take the version of the message that they stand in; only messages have versions of their own.
            if isinstance(message, type) and issubclass(message, Struct) and schema_of(message).versions.last < 100:
                for version in schema_of(message).versions:
                    yield Codec("data", None, message, version)
