"""`ottla produce` and `ottla consume`: kcat's habits."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from io import BytesIO
from typing import Any

import pytest

from ottla.cli.formats import json_writer, read_json, text_writer
from ottla.cli.produce import _lines
from ottla.client.types import ConsumerRecord
from ottla.record import Batch, Codec, Record, batches, records
from tests.unit.client.fake_broker import FakeBroker

from .conftest import Ottla
from .interrupts import LISTEN_TO_INTERRUPTS

NOW_MS = 1_700_000_000_000


def stored(broker: FakeBroker, topic: str) -> list[Record]:
    found: list[Record] = []
    for log in broker.topics[topic].logs:
        for batch in batches(b"".join(log)):
            assert isinstance(batch, Batch)
            found += records(batch)
    return found


def test_lines_become_records_and_come_back(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t")
    text = "first\n\nthird, with ünïcode\nlast without an end".encode()
    assert ottla("produce", "t", stdin=text).exit_code == 0
    assert [record.value for record in stored(broker, "t")] == text.split(b"\n")
    assert {record.key for record in stored(broker, "t")} == {None}
    consumed = ottla("consume", "t", "--exit-at-end")
    assert consumed.exit_code == 0
    assert consumed.stdout_bytes == text + b"\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_is_told_in_a_line(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t")
    assert ottla("produce", "t", stdin=b"a\nb\n").exit_code == 0
    with open("/dev/full", "wb") as full:
        consumed = subprocess.run(
            [sys.executable, "-m", "ottla", "consume", "t", "--exit-at-end", "-b", broker.bootstrap],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    complaint = "error: reading the input or writing the output failed: No space left on device\n"
    assert (consumed.returncode, consumed.stderr) == (1, complaint)


def test_keys_headers_partition_codec_and_acks(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t", 3)
    words = ("-K", r"\t", "-H", "a=1", "-H", "b", "-p", "2", "-z", "zstd", "--acks", "1")
    assert ottla("produce", "t", *words, stdin=b"k1\tv1\nno key\n\tempty key\n").exit_code == 0
    assert [(record.key, record.value) for record in stored(broker, "t")] == [
        (b"k1", b"v1"),
        (None, b"no key"),
        (b"", b"empty key"),
    ]
    assert stored(broker, "t")[0].headers == (("a", b"1"), ("b", None))
    assert Batch(broker.topics["t"].logs[2][0]).codec is Codec.ZSTD
    assert broker.topics["t"].logs[:2] == [[], []]


def test_empty_values_can_be_tombstones(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t")
    assert ottla("produce", "t", "-K", ":", "-Z", stdin=b"k:\n:v\n").exit_code == 0
    assert [(record.key, record.value) for record in stored(broker, "t")] == [(b"k", None), (None, b"v")]


def test_json_goes_round(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("a", 2)
    lines = [
        {"key": "k", "value": "v", "headers": {"h": "1"}, "partition": 1, "timestamp": NOW_MS},
        {"value": {"any": ["json", None]}, "partition": 0, "timestamp": NOW_MS + 1},
        {"key": "tombstone", "partition": 0, "timestamp": NOW_MS + 2},
        {"key": {"base64": "/w=="}, "value": {"base64": "AP8="}, "partition": 0, "timestamp": NOW_MS + 3},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert ottla("produce", "a", "--json", stdin=text).exit_code == 0
    printed = ottla("consume", "a", "-e", "--json").stdout
    shown = [json.loads(line) for line in printed.splitlines()]
    assert shown[0] == {
        "topic": "a",
        "partition": 0,
        "offset": 0,
        "timestamp": NOW_MS + 1,
        "timestamp_type": "create",
        "headers": [],
        "key": None,
        "value": '{"any": ["json", null]}',
    }
    assert shown[2]["key"] == {"base64": "/w=="}
    broker.create("b", 2)
    assert ottla("produce", "b", "--json", stdin=printed.encode()).exit_code == 0
    assert stored(broker, "b") == stored(broker, "a")


def test_a_line_that_is_no_json_is_named(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t")
    result = ottla("produce", "t", "--json", stdin=b'{"value": "fine"}\n{"value": \n')
    assert result.exit_code == 1
    assert result.stderr.startswith("error: line 2: no JSON: ")
    assert [record.value for record in stored(broker, "t")] == [b"fine"]


def test_a_misspelt_value_is_refused_and_no_tombstone(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t")
    result = ottla("produce", "t", "--json", stdin=b'{"value": "fine"}\n{"valu": "x"}\n')
    assert result.exit_code == 1
    assert result.stderr.startswith("error: line 2: 'valu' is unknown; did you mean 'value'")
    assert [record.value for record in stored(broker, "t")] == [b"fine"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[]", "must be an object"),
        (b'{"headers": 1}', "headers must be"),
        (b'{"headers": [["a"]]}', "headers must be"),
        (b'{"partition": "0"}', "partition must be a whole number"),
        (b'{"timestamp": true}', "timestamp must be a whole number"),
        (b'{"value": {"base64": "?"}}', "no base64"),
        (b'{"Key": "k", "value": "v"}', "'Key' is unknown; did you mean 'key'"),
        (b'{"value": "v", "colour": "red"}', "'colour' is unknown; there are key, value, headers"),
    ],
)
def test_json_that_makes_no_record_is_refused_with_the_reason(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_json(line)


def test_where_to_begin_and_when_to_stop(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t")
    for number in range(5):
        line = json.dumps({"value": f"v{number}", "timestamp": NOW_MS + 1000 * number})
        assert ottla("produce", "t", "--json", stdin=line.encode()).exit_code == 0

    def consumed(*words: str) -> list[str]:
        result = ottla("consume", "t", *words)
        assert result.exit_code == 0, result.stderr
        return result.stdout.split()

    assert consumed("-e") == ["v0", "v1", "v2", "v3", "v4"]
    assert consumed("-e", "--from", "3") == ["v3", "v4"]
    assert consumed("-e", "--from=-2") == ["v3", "v4"]
    assert consumed("-e", "--from=-99") == ["v0", "v1", "v2", "v3", "v4"]
    assert consumed("-e", "--from", f"@{NOW_MS + 2500}") == ["v3", "v4"]
    assert consumed("-e", "--from", f"@{NOW_MS + 9999999}") == []
    assert consumed("-e", "--from", "end") == []
    assert consumed("--count", "2") == ["v0", "v1"]
    assert consumed("--count", "1", "--from", "4") == ["v4"]
    assert consumed("-e", "--count", "3") == ["v0", "v1", "v2"]
    failed = ottla("consume", "t", "-c", "1", "--from", "17")
    assert (failed.exit_code, failed.stderr) == (1, "error: OFFSET_OUT_OF_RANGE: t-0 at offset 17\n")


def test_chosen_partitions_alone_are_read(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t", 3)
    for number in range(3):
        ottla("produce", "t", "-p", str(number), stdin=b"%d\n" % number)
    assert sorted(ottla("consume", "t", "-e").stdout.split()) == ["0", "1", "2"]
    assert sorted(ottla("consume", "t", "-e", "-p", "0", "-p", "2").stdout.split()) == ["0", "2"]
    failed = ottla("consume", "t", "-e", "-p", "3")
    assert failed.exit_code == 1
    assert "has partitions 0 to 2, not 3" in failed.stderr


def test_a_topic_that_does_not_exist_is_not_created_by_reading(ottla: Ottla, broker: FakeBroker) -> None:
    result = ottla("consume", "nope", "-e")
    assert (result.exit_code, result.stderr) == (1, "error: UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'nope'\n")
    assert broker.topics == {}


def test_every_token_of_a_format() -> None:
    record = ConsumerRecord("topic", 3, 17, NOW_MS, 0, b"key", b"value", [("a", b"1"), ("b", None)])
    written = text_writer(r"%t %p %o %T %k %K %s %S %h 100%% \x41\\")(record)
    assert written == b"topic 3 17 %d key 3 value 5 a=1,b= 100%% A\\" % NOW_MS
    null = record._replace(key=None, value=None)
    assert text_writer("%K%S|%k%s|")(null) == b"-1-1||"
    assert text_writer("%R%s")(record) == b"\0\0\0\5value"
    assert text_writer("%R")(null) == b"\xff\xff\xff\xff"


def test_a_record_of_the_oldest_format_has_no_timestamp_to_give_back() -> None:
    line = json_writer(ConsumerRecord("t", 0, 0, -1, -1, None, b"v", ()))
    assert json.loads(line)["timestamp_type"] == "none"
    assert read_json(line).timestamp_ms is None


PROGRAM = (
    LISTEN_TO_INTERRUPTS
    + "import typer; from ottla.cli.commands import register; app = typer.Typer(); register(app); app()"
)


def start(broker: FakeBroker, *words: str, unbuffered: str = "", **options: Any) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"OTTLA_BOOTSTRAP": broker.bootstrap, "PYTHONUNBUFFERED": unbuffered}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_a_reader_that_has_enough_ends_the_command_quietly(broker: FakeBroker, ottla: Ottla) -> None:
    broker.create("t")
    # More than fits into a pipe.
    ottla("produce", "t", stdin=b"line\n" + (b"x" * 100_000 + b"\n") * 100)
    with start(broker, "consume", "t") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"line\n"
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait(20) == 0


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_slow_reader_gets_every_byte(broker: FakeBroker, ottla: Ottla, unbuffered: str) -> None:
    broker.create("t")
    text = (b"x" * 100_000 + b"\n") * 20
    ottla("produce", "t", stdin=text)
    with start(broker, "consume", "t", "-e", unbuffered=unbuffered) as command:
        assert command.stdout is not None
        assert command.stdout.read() == text
        assert command.wait(20) == 0


def test_an_interrupt_ends_the_command_without_a_traceback(broker: FakeBroker, ottla: Ottla) -> None:
    broker.create("t")
    ottla("produce", "t", stdin=b"line\n")
    with start(broker, "consume", "t") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"line\n"
        command.send_signal(signal.SIGINT)
        assert command.stderr.read() == b""
        assert command.wait(20) == 130


def test_a_line_that_is_typed_is_sent_at_once(broker: FakeBroker) -> None:
    broker.create("t")
    with (
        start(broker, "produce", "t", stdin=subprocess.PIPE) as producing,
        start(broker, "consume", "t", stdin=subprocess.DEVNULL) as consuming,
    ):
        assert producing.stdin is not None
        assert consuming.stdout is not None
        for number in range(3):
            producing.stdin.write(b"%d\n" % number)
            producing.stdin.flush()
            assert consuming.stdout.readline() == b"%d\n" % number
        producing.stdin.close()
        assert producing.wait(20) == 0
        consuming.send_signal(signal.SIGINT)
        assert consuming.wait(20) == 130


def test_a_producer_at_a_terminal_can_be_interrupted(broker: FakeBroker) -> None:
    broker.create("t")
    with start(broker, "produce", "t", stdin=subprocess.PIPE) as producing:
        assert producing.stdin is not None
        assert producing.stderr is not None
        producing.stdin.write(b"sent\npart of a line")
        producing.stdin.flush()
        while not broker.topics["t"].logs[0]:
            assert producing.poll() is None
        producing.send_signal(signal.SIGINT)
        assert producing.wait(20) == 130
        assert producing.stderr.read() == b""
    assert [record.value for record in stored(broker, "t")] == [b"sent"]


def test_many_lines_stay_in_order_within_a_partition(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("t", 2)
    text = b"".join(b"%d:%d\n" % (number % 10, number) for number in range(50_000))
    assert ottla("produce", "t", "-K", ":", "-z", "lz4", stdin=text).exit_code == 0
    found = stored(broker, "t")
    assert len(found) == 50_000
    for key in range(10):
        values = [int(record.value or b"") for record in found if record.key == b"%d" % key]
        assert values == list(range(key, 50_000, 10))


def test_of_a_stream_that_was_closed_there_are_no_more_lines() -> None:
    stream = BytesIO(b"one\n")
    stream.close()

    async def read() -> list[list[bytes]]:
        return [list(lines) async for lines in _lines(stream)]

    assert asyncio.run(asyncio.wait_for(read(), 30)) == []


def test_a_stream_that_cannot_be_read_is_told() -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    async def read() -> None:
        async for _ in _lines(Broken()):
            pass

    with pytest.raises(OSError, match="Input/output error"):
        asyncio.run(asyncio.wait_for(read(), 30))
