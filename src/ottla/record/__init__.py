"""What is inside `records`: batches and message sets, objects and columns, compressed or not."""

from ottla.record.batch import Batch, Batches, LegacyEntry, batches, records, scan
from ottla.record.build import BatchBuilder, build_batch
from ottla.record.compression import Codec
from ottla.record.control import ControlType, EndMarker, build_end_marker, control_type, read_end_marker
from ottla.record.kernels import Record, Summary

__all__ = [
    "Batch",
    "BatchBuilder",
    "Batches",
    "Codec",
    "ControlType",
    "EndMarker",
    "LegacyEntry",
    "Record",
    "Summary",
    "batches",
    "build_batch",
    "build_end_marker",
    "control_type",
    "read_end_marker",
    "records",
    "scan",
]
