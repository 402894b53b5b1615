"""The loads, on a real broker and on the process that is none, with few requests."""

import doctest
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.brokers import catalog, clients, peers, report, results
from bench.brokers.clients import EndToEnd, Librdkafka
from bench.brokers.line import Line, percentiles
from bench.brokers.peers import Ottla
from bench.brokers.plain import Mode, Plain, plain_connections
from bench.brokers.raw import call, connected, flood, one_by_one, pipeline
from bench.brokers.results import Report
from bench.brokers.run import compare
from bench.brokers.server import Server
from bench.brokers.small import Acknowledgement, Flood
from bench.brokers.throughput import Consume, Load, Produce, check_ends
from bench.brokers.whole import ColdStart, Crash, Memory

from ottla.record.compression import Codec

SCALE = 0.001
LINES: list[Line] = [
    Produce(Load(100), acks=1),
    Produce(Load(1_024, Codec.LZ4, 100), acks=-1),
    Consume(Load(1_024)),
    Consume(Load(100, Codec.LZ4, 100)),
    Consume(Load(1_024), readers=10),
    Flood("Metadata", 1),
    Flood("Produce", 64),
    Acknowledgement(),
    Librdkafka("produce", Load(100, Codec.LZ4)),
    Librdkafka("consume", Load(1_024)),
    EndToEnd(),
]
FRESH: list[Line] = [ColdStart(), Memory(), Crash()]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Ottla(tmp_path_factory.mktemp("bench") / "ottla") as found:
        yield found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    with Plain(tmp_path_factory.mktemp("bench") / "plain") as found:
        yield found


@pytest.mark.parametrize("module", [catalog, clients, peers, report, results])
def test_examples_in_the_documentation_hold(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried
    assert not failed


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_a_line_gives_all_its_figures(broker: Server, line: Line) -> None:
    values = line.run(broker, SCALE)
    assert set(values) == {figure.name for figure in line.figures}
    assert all(value >= 0 for value in values.values())


@pytest.mark.parametrize("line", [line for line in LINES + FRESH if line.limit_modes], ids=lambda line: line.name)
def test_the_limit_is_of_the_same_figures(plain: Plain, line: Line) -> None:
    for mode in line.limit_modes:
        assert set(line.limit(plain, mode, SCALE)) == {figure.name for figure in line.figures}


@pytest.mark.parametrize("line", FRESH, ids=lambda line: line.name)
def test_a_line_for_a_broker_of_its_own_gives_its_figure(tmp_path: Path, line: Line) -> None:
    server = Ottla(tmp_path / "fresh")
    try:
        (value,) = line.run(server, SCALE).values()
    finally:
        server.close()
    assert value > 0
    assert not server.folder.exists()


def test_every_line_has_a_name_of_its_own_and_quick_ones_are_among_them() -> None:
    names = [line.name for line in catalog.LINES]
    assert len(set(names)) == len(names)
    assert set(catalog.QUICK) <= set(names)
    with pytest.raises(ValueError, match="no line is called produce/7"):
        catalog.chosen(["produce/7"])


def test_a_record_that_is_missing_at_the_end_is_noticed(broker: Server) -> None:
    topic = broker.new_topic()
    with pytest.raises(RuntimeError, match="has 0 of 1 records"):
        check_ends(broker, topic, 1, at_least=1)


def test_replies_of_another_size_are_noticed(plain: Plain) -> None:
    with (
        plain_connections(plain.address, 10, 30, Mode.SOCKETS) as (connection,),
        pytest.raises(RuntimeError, match="not like the first"),
    ):
        pipeline(connection, [bytes(10)], count=1, reply_bytes=20, window=1)


def test_each_request_is_answered_once_however_many_are_under_way(plain: Plain) -> None:
    with plain_connections(plain.address, 10, 20, Mode.FILE, count=3) as connections:
        assert flood(connections, bytes(10), count=1_000, reply_bytes=20, window=7) > 0
    with plain_connections(plain.address, 10, 20, Mode.SOCKETS) as (connection,):
        assert len(one_by_one(connection, bytes(10), count=50, reply_bytes=20)) == 50


def test_a_broker_that_closes_the_connection_is_an_error(broker: Server) -> None:
    with connected(broker.address) as (connection,), pytest.raises(ConnectionError):
        # No frame is that large.
        call(connection, b"\x7f\xff\xff\xff")


def test_percentiles_are_of_the_sorted_times() -> None:
    assert percentiles([number / 1e6 for number in range(1_000, 0, -1)]) == {
        "p50": pytest.approx(501),
        "p99": pytest.approx(991),
        "p99.9": pytest.approx(1_000),
    }


class Refuses(Flood):
    """A line that one contender fails."""

    def run(self, server: Server, scale: float) -> dict[str, float]:
        raise RuntimeError("a long story\nit does not work")


def test_a_failure_is_told_and_the_next_line_is_measured(tmp_path: Path) -> None:
    told: list[str] = []
    saved: list[Report] = []
    found = compare(
        [Refuses("Metadata", 1), Flood("Metadata", 1)],
        [Ottla],
        tmp_path,
        2,
        SCALE,
        told.append,
        saved.append,
        lambda: "the one there is",
    )
    refused, _, measured, _ = found.results
    assert refused.values == {"Ottla": [None, None]}
    assert found.failures == [f"{refused.title}: Ottla: it does not work"] * 3
    assert all(value is not None and value > 0 for value in measured.values["Ottla"])
    assert f"{measured.title}: Ottla" in told
    assert [len(each.results) for each in saved] == [2, 4]
    assert found.machine["network"] == "the one there is"
    assert list(tmp_path.iterdir()) == []


class Unbuilt(Ottla):
    """A contender whose compiler has its reasons."""

    title = "Unbuilt"

    @classmethod
    def build(cls) -> None:
        raise RuntimeError("error: no such crate")


def test_who_cannot_be_built_takes_no_part_and_the_others_do(tmp_path: Path) -> None:
    found = compare([Flood("Metadata", 1)], [Ottla, Unbuilt], tmp_path, 1, SCALE, str, lambda report: None, str)
    assert found.failures == ["Unbuilt takes no part, for it could not be built: error: no such crate"]
    assert [list(result.values) for result in found.results] == [["Ottla"], ["Ottla"]]
