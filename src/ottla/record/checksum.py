"""CRC-32C, the checksum of batches and of what a log writes down.

The package `crc32c` looks up its own version when it is imported, and for that Python loads archives, mail and tables:
a tenth of a broker's start. What is compiled in it needs none of that, so it is loaded by itself.

>>> hex(crc32c(b"123456789"))
'0xe3069283'
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

__all__ = ["crc32c"]


def _load() -> Any:
    package = PathFinder.find_spec("crc32c")
    places = package and package.submodule_search_locations
    compiled = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if compiled is None or compiled.loader is None:
        # Installed in a way that only the import of the package knows.
        import crc32c

        return crc32c
    module = module_from_spec(compiled)
    compiled.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from crc32c import crc32c
else:
    crc32c = _load().crc32c
