from collections.abc import Callable
from typing import Any

from ottla.wire.schema import Bytes, Schema, Type

class Plan:
    def __init__(
        self, schema: Schema, version: int, flexible: bool, minimum_size: Callable[[Type, int, bool], int]
    ) -> None: ...

def decode(plan: Plan, buffer: Bytes, position: int) -> tuple[Any, int]: ...
def encode(
    place_records: Callable[[Any, int, list[Any], list[Any]], None],
    plan: Plan,
    message: object,
    pieces: list[Any],
    buffers: list[Any],
) -> None: ...
