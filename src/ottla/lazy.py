"""Names that are looked up when they are first used, so that a package can be imported without all that is in it."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lookup(namespace: dict[str, Any], homes: dict[str, str]) -> Callable[[str], object]:
    """A package's `__getattr__`, given its `globals()` and in which module each name is.

    >>> namespace = {"__name__": "mathematics"}
    >>> lookup(namespace, {"sqrt": "math"})("sqrt")(4.0)
    2.0
    >>> lookup(namespace, {"sqrt": "math"})("cosine")
    Traceback (most recent call last):
    AttributeError: module 'mathematics' has no attribute 'cosine'
    """

    def found(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        namespace[name] = value = getattr(import_module(home), name)
        return value

    return found
