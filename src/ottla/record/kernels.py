"""The hot loops over records: compiled where the extension was built, and the same in Python where it was not."""

from typing import TYPE_CHECKING

from ottla.native import load_compiled
from ottla.record._kernel_types import BinaryColumn, ColumnBuffers, HeaderColumn, Summary

_compiled = load_compiled("ottla.record._kernels")

COMPILED = _compiled is not None
"""Whether the compiled kernels are in use."""

if TYPE_CHECKING or _compiled is None:
    from ottla.record._twin import Columns, Record, RecordWriter, read, scan
else:
    from ottla.record._kernels import Columns, Record, RecordWriter, read, scan

__all__ = [
    "COMPILED",
    "BinaryColumn",
    "ColumnBuffers",
    "Columns",
    "HeaderColumn",
    "Record",
    "RecordWriter",
    "Summary",
    "read",
    "scan",
]
