"""Where the errors of a response are."""

from ottla.wire.schema import Array, Nested, Scalar, Schema

FIELD = "error_code"

Path = tuple[str, ...]
"""The names of fields, from a message down to an error code; those in between are structs or lists of them."""


def error_paths(schema: Schema) -> tuple[Path, ...]:
    """The ways to all error codes of a message.

    >>> from ottla.wire.api.produce import ProduceResponse
    >>> from ottla.wire.schema import schema_of
    >>> error_paths(schema_of(ProduceResponse))
    (('responses', 'partition_responses', 'error_code'),)
    """
    paths: list[Path] = []
    for field in schema.fields:
        kind = field.type.element if isinstance(field.type, Array) else field.type
        if field.name == FIELD and isinstance(kind, Scalar):
            paths.append((FIELD,))
        elif isinstance(kind, Nested):
            paths += [(field.name, *path) for path in error_paths(kind.schema)]
    return tuple(paths)
