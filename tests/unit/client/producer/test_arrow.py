"""What can be sent as a table, and what not."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ottla.client.errors import UnknownTopicOrPartitionError
from ottla.client.producer import Producer
from ottla.client.table import read_table
from ottla.testing import TestBroker

HEADERS = [[], [{"key": "trace", "value": b"a1"}], []]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with TestBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("[", "-").replace("]", "")


def send(servers: str, table: Any, topic: str | None = None, **options: Any) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            await (await producer.send_arrow(table, topic, **options))

    asyncio.run(story())


def read(servers: str, topic: str, columns: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = asyncio.run(read_table(topic, bootstrap_servers=servers, columns=columns)).to_pylist()
    return rows


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_a_data_frame_is_sent_as_a_table_is(servers: str, topic: str, frame: Any) -> None:
    columns = {"key": ["a", "", "c"], "value": ["one", "two", None], "headers": HEADERS}
    send(servers, frame(columns), topic)
    assert read(servers, topic, ["key", "value", "headers"]) == [
        {"key": b"a", "value": b"one", "headers": []},
        {"key": b"", "value": b"two", "headers": [{"key": "trace", "value": b"a1"}]},
        {"key": b"c", "value": None, "headers": []},
    ]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_categories_are_sent_as_what_they_stand_for(servers: str, topic: str, frame: Any) -> None:
    kind = pl.Categorical if frame is pl.DataFrame else "category"
    series: Any = pl.Series if frame is pl.DataFrame else pd.Series
    column = series(["b", "a", None, "b"], dtype=kind)
    send(servers, frame({"key": ["k"] * 4, "value": column}), topic)
    assert read(servers, topic, ["value"]) == [{"value": value} for value in (b"b", b"a", None, b"b")]


def test_headers_of_polars_that_are_none_are_refused_by_name(servers: str, topic: str) -> None:
    with pytest.raises(ValueError, match=r"column 'headers' is of type .*; give large_list<.*, or what can be cast"):
        send(servers, pl.DataFrame({"value": ["one"], "headers": [["trace"]]}), topic)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_rows_of_a_data_frame_go_to_the_topics_that_it_names(servers: str, topic: str, frame: Any) -> None:
    names = [f"{topic}-1", f"{topic}-2", f"{topic}-1"]
    send(servers, frame({"topic": names, "value": ["one", "two", "three"], "headers": HEADERS}))
    assert read(servers, f"{topic}-1", ["value"]) == [{"value": b"one"}, {"value": b"three"}]
    assert read(servers, f"{topic}-2", ["value", "headers"]) == [{"value": b"two", "headers": HEADERS[1]}]


def test_how_pandas_numbers_rows_is_no_column_of_theirs(servers: str, topic: str) -> None:
    frame = pd.DataFrame({"value": ["one", "two", "three"]})
    send(servers, frame.iloc[[0, 2]], topic)
    assert read(servers, topic, ["value"]) == [{"value": b"one"}, {"value": b"three"}]


@pytest.mark.parametrize("method", ["to_pandas", "to_polars"])
def test_what_was_read_into_a_data_frame_can_be_sent_on(servers: str, topic: str, method: str) -> None:
    send(servers, pa.table({"value": ["one", "two"]}), topic)
    table = asyncio.run(read_table(topic, bootstrap_servers=servers))
    frame = table.to_pandas() if method == "to_pandas" else pl.from_arrow(table)
    send(servers, frame, f"{topic}-copy")
    columns = ["value", "headers", "timestamp"]
    assert read(servers, f"{topic}-copy", columns) == read(servers, topic, columns)


@pytest.mark.parametrize("given", ["two apples", [b"one"], {"value": [b"one"]}, None], ids=str)
def test_what_is_no_table_is_refused(servers: str, topic: str, given: Any) -> None:
    with pytest.raises(TypeError, match=r"^table is .*; give a pyarrow Table, or a DataFrame of pandas or polars"):
        send(servers, given, topic)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"valu": ["one"]}, "the table has no column 'value', but valu"),
        (
            {"value": ["one"], "ky": ["a"]},
            "has a column 'ky'; columns may be value, key, timestamp, headers, topic, partition",
        ),
        ({"value": [1]}, "the table cannot be sent: column 'value' is of type int64, which cannot be read as binary"),
        ({"value": ["one"], "partition": ["first"]}, "column 'partition' is of type string; give integers"),
        (
            {"value": ["one"], "partition": [2**40]},
            "column 'partition' is of type int64; .*: Integer value 1099511627776",
        ),
        ({"value": ["one"], "headers": [["a"]]}, "the table cannot be sent: column 'headers' is of type list"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_columns_that_cannot_be_sent_are_named(
    servers: str, topic: str, columns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        send(servers, pa.table(columns), topic)
    assert caught.type is ValueError


def test_a_topic_is_a_name(servers: str) -> None:
    with pytest.raises(TypeError, match="topic is 5, an int; give the name of one topic"):
        send(servers, pa.table({"value": ["one"], "topic": [5]}))


def test_advice_for_partitions_of_another_topic_is_to_leave_out_the_column(servers: str, topic: str) -> None:
    table = pa.table({"value": ["one"], "partition": [3]})
    with pytest.raises(
        UnknownTopicOrPartitionError,
        match=r"has partitions 0 to 0, not 3; leave out the column, as in table.drop_columns\(\['partition'\]\)",
    ):
        send(servers, table, topic)
    send(servers, table.drop_columns(["partition"]), topic)
    assert read(servers, topic, ["value"]) == [{"value": b"one"}]


def test_a_partition_for_all_rows_is_a_number_of_one_that_is_there(servers: str, topic: str) -> None:
    table = pa.table({"value": ["one"]})
    with pytest.raises(TypeError, match="partition is '0', a str; give an int"):
        send(servers, table, topic, partition="0")
    with pytest.raises(UnknownTopicOrPartitionError, match="has partitions 0 to 0, not 99; name one of these"):
        send(servers, table, topic, partition=99)
