"""The record classes of aiokafka and kafka-python behind one interface; they share an ancestor, and most names."""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import aiokafka.codec
import aiokafka.record.default_records
import aiokafka.record.legacy_records
import aiokafka.record.memory_records
import pytest

from ottla.record import Codec, Record

from .samples import OLD_CODECS

with warnings.catch_warnings():
    # kafka-python reads its definitions, at import, with functions that Python 3.11 and 3.12 call deprecated.
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    import kafka.codec
    import kafka.record.default_records
    import kafka.record.legacy_records
    import kafka.record.memory_records

BATCH_SIZE = 1 << 22


class PythonClient(NamedTuple):
    """A client's builders and its reader."""

    name: str
    batch_builder: Any
    message_set_builder: Any
    reader: Any
    codecs: Any

    def build_batch(
        self,
        originals: Iterable[Record],
        codec: Codec,
        *,
        transactional: bool = False,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """A batch as the client would produce it. It knows of no other base offset than 0."""
        builder = self.batch_builder(
            magic=2,
            compression_type=codec,
            is_transactional=transactional,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            batch_size=BATCH_SIZE,
        )
        for record in originals:
            headers = list(record.headers)
            added = builder.append(record.offset, record.timestamp, record.key, record.value, headers=headers)
            assert added is not None
        return bytes(builder.build())

    def build_message_set(self, originals: Iterable[Record], magic: int, codec: Codec) -> bytes:
        """A message set as the client would produce it."""
        builder = self.message_set_builder(magic, codec, BATCH_SIZE)
        for record in originals:
            assert builder.append(record.offset, record.timestamp, record.key, record.value) is not None
        return bytes(builder.build())

    def batches(self, run: bytes) -> list[Any]:
        """The client's view of each batch, or of each message of an old set, all with the right checksum."""
        reader = self.reader(run)
        found = []
        while reader.has_next():
            found.append(reader.next_batch())
            assert found[-1].validate_crc()
        return found

    def read(self, run: bytes) -> list[Record]:
        """The records of a run in any format."""
        return [self.record(record) for batch in self.batches(run) for record in batch]

    @staticmethod
    def record(theirs: Any) -> Record:
        """A record of the client's as one of ours."""
        timestamp = -1 if theirs.timestamp is None else theirs.timestamp
        return Record(theirs.offset, timestamp, theirs.key, theirs.value, theirs.headers or ())


AIOKAFKA = PythonClient(
    "aiokafka",
    aiokafka.record.default_records.DefaultRecordBatchBuilder,
    aiokafka.record.legacy_records.LegacyRecordBatchBuilder,
    aiokafka.record.memory_records.MemoryRecords,
    aiokafka.codec,
)
KAFKA_PYTHON = PythonClient(
    "kafka-python",
    kafka.record.default_records.DefaultRecordBatchBuilder,
    kafka.record.legacy_records.LegacyRecordBatchBuilder,
    kafka.record.memory_records.MemoryRecords,
    kafka.codec,
)

each_client = pytest.mark.parametrize("client", [AIOKAFKA, KAFKA_PYTHON], ids=lambda client: client.name)
each_old_format_of_each_client = pytest.mark.parametrize(
    ("client", "magic", "codec"),
    [
        pytest.param(client, magic, codec, id=f"{client.name}-magic {magic}-{codec.name.lower()}")
        for client in (AIOKAFKA, KAFKA_PYTHON)
        for magic in (0, 1)
        for codec in OLD_CODECS
        # aiokafka neither writes nor reads the lz4 of magic 0, with its checksum that is not lz4's.
        if not (client is AIOKAFKA and magic == 0 and codec is Codec.LZ4)
    ],
)
