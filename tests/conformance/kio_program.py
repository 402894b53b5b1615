"""Answers questions on its input with kio's encoder; run as a program, with the release to ask first on the path."""

import base64
import datetime
import io
import json
import re
import sys
import uuid
from dataclasses import Field, fields
from typing import Any, cast

from kio import index
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field
from kio.static.constants import EntityType

KINDS = {"header": EntityType.header, "data": EntityType.data}


def load(question: dict[str, Any]) -> Any:
    """kio's class for a message and version."""
    kind, version = question["kind"], question["version"]
    if kind == "request":
        return index.load_request_schema(question["key"], version)
    if kind == "response":
        return index.load_response_schema(question["key"], version)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", question["name"]).lower()
    return index.load_entity_schema(name, version, cast(Any, KINDS[kind]))


def build(entity: Any, values: dict[str, Any]) -> Any:
    """An instance of kio's class with these values, found by name. Tagged fields may be missing."""
    left = dict(values)
    arguments = {}
    for field in fields(entity):
        # kio leaves the unit off the fields that it turns into time objects.
        name = next((name for name in (field.name, f"{field.name}_ms") if name in left), None)
        if name is not None:
            arguments[field.name] = convert(field, left.pop(name))
        elif "tag" not in field.metadata:
            raise KeyError(f"{entity.__name__} wants {field.name}, which is not among {sorted(values)}")
    if left:
        raise KeyError(f"{entity.__name__} has no {sorted(left)}")
    return entity(**arguments)


def convert(field: Field[Any], value: Any) -> Any:
    """A plain value as kio's type for the field."""
    kind: Any = classify_field(field)
    if value is None:
        return None
    if kind.is_array:
        if isinstance(kind, EntityTupleField):
            return tuple(build(kind.type_, item) for item in value)
        return tuple(primitive(field.metadata["kafka_type"], item) for item in value)
    if isinstance(kind, EntityField):
        return build(kind.type_, value)
    return primitive(field.metadata["kafka_type"], value)


def primitive(kafka_type: str, value: Any) -> Any:
    """A plain value as the Python type that kio has for a wire type."""
    match kafka_type:
        case "uuid":
            # To kio a uuid of zeros is None, and only as such does it equal the default that a tagged field omits.
            made = uuid.UUID(bytes=base64.urlsafe_b64decode(value + "=="))
            return made if made.int else None
        case "bytes" | "records":
            return base64.b64decode(value)
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            return None if value == -1 else epoch + datetime.timedelta(milliseconds=value)
    return value


def answer(question: dict[str, Any]) -> str:
    """One line for one line."""
    try:
        entity = load(question)
    except index.KioIndexError as error:
        return f"!{error}" if "body" in question else "no"
    if "body" not in question:
        return "yes"
    try:
        buffer = io.BytesIO()
        entity_writer(entity)(buffer, build(entity, question["body"]))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side reports it
        return f"!{type(error).__name__}: {error}".replace("\n", " ")
    return buffer.getvalue().hex()


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(answer(json.loads(line)) + "\n")
        sys.stdout.flush()
