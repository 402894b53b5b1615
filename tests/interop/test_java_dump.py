"""Kafka's dump tool, and Kafka's own log, on the files that Ottla writes."""

import json
import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.record import Codec, Record
from ottla.testing import TestBroker
from tests.java import skip_without_maven

from . import confluent
from .java_tools import OPEN_LOG, JavaTools
from .samples import NOW_MS

pytestmark = [pytest.mark.maven, skip_without_maven("Kafka's dump tool looked at nothing that was written")]

TOPIC = "dumped"
PER_CODEC = 100
LINES = [f"n:{n}\tkey-{n}\t{f'value {n} ' * 10}\n" for n in range(PER_CODEC * len(Codec))]
SMALL = {"segment.bytes": "8192", "index.interval.bytes": "512", "segment.index.bytes": "4096"}


class Written(NamedTuple):
    """The folder of a partition that a broker wrote and closed, and the topic's id."""

    folder: Path
    topic_id: str

    def files(self, ending: str) -> list[Path]:
        return sorted(self.folder.glob(f"*{ending}"))


@pytest.fixture(scope="module")
def written(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Small segments with batches of every codec, by five idempotent producers."""
    root = tmp_path_factory.mktemp("data")
    with TestBroker(folder=str(root)) as broker:
        admin = create(broker, TOPIC, SMALL)
        (described,) = admin.describe_topics(TopicCollection([TOPIC])).values()
        # Java's ids are in the alphabet for addresses.
        topic_id = str(described.result(10).topic_id).replace("+", "-").replace("/", "_")
        for number, codec in enumerate(Codec):
            options = ["--bootstrap-server", broker.bootstrap_servers, "--topic", TOPIC]
            options += ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
            options += ["--command-property", "batch.size=2000", "--compression-codec", codec.name.lower()]
            part = LINES[number * PER_CODEC : (number + 1) * PER_CODEC]
            tools.run("kafka-console-producer", *options, stdin="".join(part))
    return Written(root / f"{TOPIC}-0", topic_id)


def create(broker: TestBroker, topic: str, config: dict[str, str]) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (made,) = admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values()
    made.result(10)
    return admin


def dump(tools: JavaTools, file: Path, *options: str) -> str:
    return tools.run("kafka-dump-log", "--files", str(file), *options)


def test_the_log_is_dumped_record_by_record(tools: JavaTools, written: Written) -> None:
    segments = written.files(".log")
    assert len(segments) > 2
    found = []
    codecs = set()
    for segment in segments:
        base = int(segment.stem)
        options = ("--deep-iteration", "--print-data-log")
        status, printed, complaints = tools.try_run("kafka-dump-log", "--files", str(segment), *options)
        # It takes any segment but the first of all for one with a hole before it.
        hole = f"Non-consecutive offsets in {segment}\n  -1 is followed by {base}\n"
        assert (status, complaints) == (0, hole if base else "")
        assert f"Log starting offset: {base}" in printed
        assert "isvalid: false" not in printed
        codecs |= set(re.findall(r"compresscodec: (\w+)", printed))
        record = re.compile(r"\| offset: (\d+) .* headerKeys: \[n\] key: key-(\d+) payload: (.*\n)")
        found += [f"{offset}\tn:{n}\tkey-{n}\t{value}" for offset, n, value in record.findall(printed)]
    assert found == [f"{offset}\t{line}" for offset, line in enumerate(LINES)]
    assert codecs == {codec.name.lower() for codec in Codec}


@pytest.mark.parametrize("ending", [".index", ".timeindex"])
@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", "--deep-iteration"])
def test_the_indexes_are_sound(tools: JavaTools, written: Written, ending: str, option: str) -> None:
    files = written.files(ending)
    assert len(files) == len(written.files(".log"))
    for file in files:
        printed = dump(tools, file, option)
        if option == "--index-sanity-check":
            assert printed == f"Dumping {file}\n{file} passed sanity check.\n"
        elif option == "--verify-index-only":
            assert printed == f"Dumping {file}\n"
        else:
            assert ("offset: " in printed) == (file.stat().st_size > 0)
    assert sum(file.stat().st_size for file in files) > 0


def test_the_snapshots_of_producers_are_dumped(tools: JavaTools, written: Written) -> None:
    last = written.files(".snapshot")[-1]
    assert int(last.stem) == len(LINES)
    printed = dump(tools, last)
    assert re.findall(r"lastSequence: (\d+) lastOffset: (\d+)", printed) == [
        (str(PER_CODEC - 1), str(PER_CODEC * (number + 1) - 1)) for number in range(len(Codec))
    ]


def test_kafka_s_own_log_opens_the_folder(tools: JavaTools, written: Written) -> None:
    before = {path.name: path.read_bytes() for path in written.folder.iterdir()}
    found = json.loads(tools.run(OPEN_LOG, str(written.folder)))
    assert found["topic_id"] == written.topic_id
    assert (found["start"], found["end"]) == (0, len(LINES))
    assert found["segments"] == [int(segment.stem) for segment in written.files(".log")]
    assert found["epochs"] == [[0, 0]]
    assert [(epoch, last_sequence) for _, epoch, last_sequence in found["producers"]] == [(0, PER_CODEC - 1)] * len(
        Codec
    )
    assert found["offsets"] == list(range(len(LINES)))
    # It found nothing to mend: what was there is as it was.
    kept = {name: data for name, data in before.items() if name.endswith((".log", ".metadata", "checkpoint"))}
    assert {name: (written.folder / name).read_bytes() for name in kept} == kept


def test_kafka_s_own_log_opens_a_folder_after_compaction(tools: JavaTools, tmp_path: Path, topic: str) -> None:
    config = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "0"}
    originals = [Record(n, NOW_MS + n, b"%d" % (n % 7), b"value %d " % n * 10) for n in range(1000)]
    folder = tmp_path / f"{topic}-0"
    with TestBroker({"log.cleaner.backoff.ms": "50"}, folder=str(tmp_path)) as broker:
        create(broker, topic, config)
        address = (broker.host, broker.port)
        confluent.write(address, topic, originals, Codec.NONE, batch_num_messages=20, enable_idempotence=True)
        deadline = time.monotonic() + 15
        while (folder / f"{0:020}.log").stat().st_size > int(SMALL["segment.bytes"]) // 2:
            assert time.monotonic() < deadline, "nothing was compacted"
            time.sleep(0.05)
    found = json.loads(tools.run(OPEN_LOG, str(folder)))
    assert (found["start"], found["end"]) == (0, len(originals))
    assert len(found["offsets"]) < len(originals)
    assert found["offsets"] == sorted(found["offsets"])
    assert found["offsets"][-7:] == [record.offset for record in originals[-7:]]
    for file in folder.glob("*.*index"):
        empty = file.suffix == ".index" and file.stat().st_size == 0
        verdict = "is empty" if empty else "passed sanity check"
        assert dump(tools, file, "--index-sanity-check") == f"Dumping {file}\n{file} {verdict}.\n"
