"""Whether compiled modules or their Python twins do the work."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from os import environ, path
from types import ModuleType

PURE_PYTHON = environ.get("OTTLA_PURE_PYTHON", "") not in ("", "0")
"""Set OTTLA_PURE_PYTHON=1 to use the twins although the compiled modules are there."""

_warned = False


class _Sources:
    """Finds the Python file of a module where a compiled one of the same name lies beside it."""

    @staticmethod
    def find_spec(name: str, folders: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if folders is not None and name.startswith(__package__ + "."):
            for folder in folders:
                source = path.join(folder, name.rpartition(".")[2] + ".py")
                if path.exists(source):
                    return spec_from_file_location(name, source)
        return None


def prefer_sources() -> None:
    """Have Ottla's modules run as Python, also those that were compiled as they stand, if that is asked for."""
    if PURE_PYTHON:
        sys.meta_path.insert(0, _Sources)


def load_compiled(name: str) -> ModuleType | None:
    """The compiled module of that name, or None where the twin is to be used; says once that the twins are slower."""
    if PURE_PYTHON:
        return None
    try:
        return import_module(name)
    except ImportError as error:
        _warn_once(error)
        return None


def expect_compiled(module: ModuleType) -> None:
    """Say so if a module that is compiled as it stands runs as Python though nobody asked for that."""
    if not PURE_PYTHON and str(module.__file__).endswith(".py"):
        _warn_once(ImportError(f"{module.__name__} is not compiled"))


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
