"""The kernels in plain Python: what `_kernels` does, byte for byte and error for error, only slower.

They are used where the compiled module is missing, and are the reference that the tests hold the compiled one to.
"""

from ottla.record._twin_columns import Columns
from ottla.record._twin_entries import whole_entries
from ottla.record._twin_hash import crc32_rows, murmur2, murmur2_rows
from ottla.record._twin_legacy import (
    append_run,
    last_offset,
    message_at,
    read_run,
    run_end,
    scan_run,
)
from ottla.record._twin_legacy_write import MessageWriter
from ottla.record._twin_read import Record, read, scan
from ottla.record._twin_tuples import read_run_tuples, read_tuples
from ottla.record._twin_write import RecordWriter

__all__ = [
    "Columns",
    "MessageWriter",
    "Record",
    "RecordWriter",
    "append_run",
    "crc32_rows",
    "last_offset",
    "message_at",
    "murmur2",
    "murmur2_rows",
    "read",
    "read_run",
    "read_run_tuples",
    "read_tuples",
    "run_end",
    "scan",
    "scan_run",
    "whole_entries",
]
