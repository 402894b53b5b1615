"""Other people's brokers, and what is done to all of them while they take turns."""

from pathlib import Path

import pytest
from bench.brokers.clients import Librdkafka, PerfTool
from bench.brokers.peers import Kafka4, Mock, Nisshi, Ottla
from bench.brokers.raw import call, connected
from bench.brokers.small import Acknowledgement, one_record
from bench.brokers.throughput import Consume, Load, Produce, first_produced
from bench.brokers.whole import Crash, Memory

from ottla.record.compression import Codec
from tests.java.program import skip_without_maven

SCALE = 0.001


def test_the_mock_cluster_takes_part_where_nothing_old_is_read(tmp_path: Path) -> None:
    assert not Consume(Load(100)).suits(Mock)
    assert not Produce(Load(100, partitions=100), acks=1).suits(Mock)
    assert not PerfTool("produce", Load(100)).suits(Mock)
    with Mock(tmp_path / "mock") as mock:
        assert Produce(Load(100), acks=1).run(mock, SCALE)["rate"] > 0
        assert Acknowledgement().run(mock, SCALE)["p50"] > 0


def test_nisshi_takes_part_where_batches_may_change_and_gigabytes_are_not_written_first() -> None:
    assert Produce(Load(100, partitions=100), acks=1).suits(Nisshi)
    assert Librdkafka("consume", Load(100)).suits(Nisshi)
    assert Memory().suits(Nisshi)
    assert not Consume(Load(100)).suits(Nisshi)
    assert not Crash().suits(Nisshi)
    assert Crash().suits(Ottla)


@pytest.mark.maven
@pytest.mark.slow
@skip_without_maven("Kafka is not seen to take part in the benchmark")
def test_kafka_takes_part_and_goes_on_after_a_pause(tmp_path: Path) -> None:
    with Kafka4(tmp_path / "kafka") as kafka:
        assert Produce(Load(1_024, Codec.LZ4, 100), acks=-1).run(kafka, SCALE)["rate"] > 0
        kafka.pause()
        kafka.resume()
        assert Consume(Load(100)).run(kafka, SCALE)["rate"] > 0
        assert PerfTool("produce", Load(100)).run(kafka, SCALE)["rate"] > 0
        assert kafka.cpu_seconds() > 0.1
        assert kafka.resident_bytes() > 50e6


def test_a_broker_that_is_paused_does_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    with Ottla(tmp_path / "ottla") as broker:
        request = one_record(broker.new_topic())
        with connected(broker.address) as (connection,):
            first_produced(connection, [request])
            broker.pause()
            before = broker.cpu_seconds()
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                call(connection, request)
            assert broker.cpu_seconds() == before
            broker.resume()
            connection.settimeout(30)
            assert connection.recv(1)


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    class Wrong(Ottla):
        def command(self) -> list[str]:
            return [*super().command(), "--set", "no.such.setting=1"]

    with pytest.raises(RuntimeError, match=r"no\.such\.setting"), Wrong(tmp_path / "wrong"):
        pass
    assert not (tmp_path / "wrong").exists()
