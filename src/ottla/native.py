"""Whether compiled modules or their Python twins do the work."""

import warnings
from importlib import import_module
from os import environ
from types import ModuleType

PURE_PYTHON = environ.get("OTTLA_PURE_PYTHON", "") not in ("", "0")
"""Set OTTLA_PURE_PYTHON=1 to use the twins although the compiled modules are there."""

_warned = False


def load_compiled(name: str) -> ModuleType | None:
    """The compiled module of that name, or None where the twin is to be used; says once that the twins are slower."""
    if PURE_PYTHON:
        return None
    try:
        return import_module(name)
    except ImportError as error:
        _warn_once(error)
        return None


def _warn_once(error: ImportError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "Ottla's compiled modules are not installed: everything works, but messages are several times and records "
            f"many times slower ({error}). To get them, install Ottla anew where a C compiler is at hand; to be "
            "content without them, set OTTLA_PURE_PYTHON=1.",
            RuntimeWarning,
            stacklevel=3,
        )
