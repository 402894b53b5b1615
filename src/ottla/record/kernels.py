"""The hot loops over records: compiled where the extension was built, and the same in Python where it was not."""

from typing import TYPE_CHECKING

from ottla.native import load_compiled
from ottla.record._kernel_types import BinaryColumn, ColumnBuffers, HeaderColumn, Summary, ViewColumn
from ottla.record._legacy_types import MessageRun, MessageTotals, StoredMessage

_compiled = load_compiled("ottla.record._kernels")

COMPILED = _compiled is not None
"""Whether the compiled kernels are in use."""

if TYPE_CHECKING or _compiled is None:
    from ottla.record._twin import (
        Columns,
        MessageWriter,
        Record,
        RecordWriter,
        append_run,
        crc32_rows,
        last_offset,
        message_at,
        murmur2,
        murmur2_rows,
        read,
        read_run,
        read_run_tuples,
        read_tuples,
        run_end,
        scan,
        scan_run,
        whole_entries,
    )
else:
    from ottla.record._kernels import (
        Columns,
        MessageWriter,
        Record,
        RecordWriter,
        append_run,
        crc32_rows,
        last_offset,
        message_at,
        murmur2,
        murmur2_rows,
        read,
        read_run,
        read_run_tuples,
        read_tuples,
        run_end,
        scan,
        scan_run,
        whole_entries,
    )

__all__ = [
    "COMPILED",
    "BinaryColumn",
    "ColumnBuffers",
    "Columns",
    "HeaderColumn",
    "MessageRun",
    "MessageTotals",
    "MessageWriter",
    "Record",
    "RecordWriter",
    "StoredMessage",
    "Summary",
    "ViewColumn",
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
