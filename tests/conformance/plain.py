"""A message of ours as plain JSON: what is handed to an oracle that runs as its own program."""

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.wire.schema import STRING, Array, Nested, Scalar, Type, schema_of

OLD_NAMES = {
    ("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id",
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag_legacy"): "acceptable_recovery_lag",
}
"""What fields were called before the newest release of Kafka, by struct and our name: same bytes, other name."""

OLDER_NAMES = {
    **OLD_NAMES,
    ("ListConfigResourcesResponse", "config_resources"): "client_metrics_resources",
    ("ConfigResource", "resource_name"): "name",
}
"""The same for releases before Kafka 4."""


class Names(NamedTuple):
    """How an oracle spells our field names."""

    renamed: Mapping[tuple[str, str], str]
    camel_case: bool = False

    def spell(self, struct: str, field: str) -> str:
        """Their name for a field of ours.

        >>> Names({}, camel_case=True).spell("FetchRequest", "max_wait_ms")
        'maxWaitMs'
        """
        name = self.renamed.get((struct, field), field)
        if not self.camel_case:
            return name
        first, *rest = name.split("_")
        return first + "".join(word[0].upper() + word[1:] for word in rest)


def to_plain(message: Any, version: int, names: Names) -> dict[str, Any]:
    """The fields of one version, by name; bytes and uuids in base64, tagged fields left out where they are None."""
    schema = schema_of(type(message))
    plain = {
        names.spell(type(message).__name__, field.name): _value(
            field.type, getattr(message, field.name), version, names
        )
        for field in schema.body(version) + schema.tagged(version)
        if not (field.tag is not None and field.default is None and getattr(message, field.name) is None)
    }
    if message.unknown_tags:
        plain["unknownTags"] = {
            str(tag): base64.b64encode(value).decode() for tag, value in message.unknown_tags.items()
        }
    return plain


def _value(kind: Type, value: Any, version: int, names: Names) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_value(kind.element, item, version, names) for item in value]
    if isinstance(kind, Nested):
        return to_plain(value, version, names)
    if isinstance(kind, Scalar):
        return base64.urlsafe_b64encode(value).decode().rstrip("=") if kind.name == "uuid" else value
    return value if kind is STRING else base64.b64encode(value).decode()
