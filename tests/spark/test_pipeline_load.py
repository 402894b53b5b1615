"""What is wrong with a pipeline's file is said before Spark starts, with the key and what to write instead."""

import sys
from pathlib import Path

import pytest

from ottla.spark.pipeline.load import load
from ottla.spark.pipeline.section import PipelineError

GOOD = """
dead_letters = "rejected"
[source]
topics = ["orders", "payments"]
[source.decode]
schema = "id BIGINT"
[[step]]
name = "small"
sql = "SELECT value.id FROM input"
[[step]]
expect = "id < 10"
otherwise = "drop"
[[sink]]
parquet = "table"
[[sink]]
topic = "out"
input = "small"
[spark]
spark.sql.shuffle.partitions = 4
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "orders.toml"
    file.write_text(text)
    return file


def test_a_file_and_its_defaults(tmp_path: Path) -> None:
    spec = load(written(tmp_path, GOOD))
    assert spec.name == "orders"
    assert spec.checkpoint == str(tmp_path / ".ottla/orders")
    assert spec.source.options["subscribe"] == "orders,payments"
    assert spec.source.options["startingOffsets"] == "earliest"
    assert spec.source.decode is not None
    assert spec.source.decode.otherwise == "divert"
    assert [(step.name, step.input, step.otherwise) for step in spec.steps] == [
        ("small", "source", "fail"),
        ("step1", "small", "drop"),
    ]
    assert [(sink.name, sink.input, sink.target) for sink in spec.sinks] == [
        ("parquet0", "step1", str(tmp_path / "table")),
        ("topic1", "small", "out"),
    ]
    assert spec.sinks[1].options == {"kafka.bootstrap.servers": "localhost:9092"}
    assert spec.spark == {"spark.sql.shuffle.partitions": "4"}


def test_settings_go_before_what_the_file_says(tmp_path: Path) -> None:
    settings = {"source.bootstrap_servers": "broker:1", "sink.1.topic": "other", "source.topics": '["a"]'}
    spec = load(written(tmp_path, GOOD), settings)
    assert spec.source.bootstrap_servers == "broker:1"
    assert spec.sinks[1].target == "other"
    assert spec.sinks[1].options == {"kafka.bootstrap.servers": "broker:1"}
    assert spec.source.options["subscribe"] == "a"
    with pytest.raises(PipelineError, match=r"sink\.5 cannot be set: sink is a list of 2"):
        load(written(tmp_path, GOOD), {"sink.5.topic": "x"})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[source]", "[sauce]", r"sauce: there is no such key; did you mean source\?"),
        ("topics =", "topic =", r"source\.topic: there is no such key; did you mean topics\?"),
        ('topics = ["orders", "payments"]', "", "source must have one of topics, pattern; it has none of them"),
        ('topics = ["orders", "payments"]', "topics = 3", r"source\.topics is 3; it must be a text, or a list"),
        ("[source.decode]", "start = 'now'\n[source.decode]", r"source\.start is 'now'; it must be one of earliest"),
        ("[source.decode]", "bootstrap_servers = 'x:y'\n[source.decode]", "source: .*'x:y' is no address"),
        ("[source.decode]", "options = {minPartitons=3}\n[source.decode]", "did you mean minPartitions"),
        ('schema = "id BIGINT"', "", r"source\.decode must have one of schema, schema_file"),
        ('schema = "id BIGINT"', 'format = "xml"', r"source\.decode\.format is 'xml'; it must be one of json, avro"),
        ('schema = "id BIGINT"', 'schema = "{"\nformat = "avro"', r"source\.decode: the schema is not right"),
        ('schema = "id BIGINT"', 'schema_file = "no.avsc"', r"source\.decode\.schema_file is .*no\.avsc, which cannot"),
        ('dead_letters = "rejected"', "", None),
        ('otherwise = "drop"', 'otherwise = "ignore"', r"step\[1\]\.otherwise is 'ignore'; it must be one of drop"),
        ('sql = "SELECT', 'python = "SELECT', r'step\[0\]\.python is .*; write python = "module:function"'),
        ('sql = "SELECT value.id FROM input"', "", r"step\[0\] must have one of sql, python, expect"),
        ('name = "small"', 'name = "source"', r"step\[0\]\.name is 'source', which is taken"),
        ('input = "small"', 'input = "smal"', r"sink\[1\]\.input is 'smal'; before it there are source, small, step1"),
        ('parquet = "table"', 'parquet = "table"\nmode = "update"', r"sink\[0\]\.mode is 'update', but"),
        ('parquet = "table"', 'copy = "b:1"', r"sink\[0\]\.copy takes records as they are"),
        (
            'dead_letters = "rejected"',
            'trigger = "often"',
            r'trigger is .often.; it must be a time such as "10 seconds"',
        ),
        ("[[sink]]", "[[sunk]]", "sunk: there is no such key; did you mean sink"),
        ("[source]", "[source", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str | None) -> None:
    assert old in GOOD
    file = written(tmp_path, GOOD.replace(old, new))
    if message is None:
        decode = load(file).source.decode
        assert decode is not None
        assert decode.otherwise == "fail"
        return
    with pytest.raises(PipelineError, match=message):
        load(file)


def test_to_divert_there_must_be_a_topic(tmp_path: Path) -> None:
    text = GOOD.replace('dead_letters = "rejected"', "").replace('"drop"', '"divert"')
    with pytest.raises(PipelineError, match=r'step\[1\]\.otherwise is "divert", but there is no topic for it'):
        load(written(tmp_path, text))


def test_a_delta_table_without_its_package_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, GOOD.replace("parquet", "delta"))
    assert load(file).sinks[0].kind == "delta"
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(PipelineError, match=r"sink\[0\]\.delta needs .*pip install 'ottla\[delta\]'"):
        load(file)


@pytest.mark.parametrize("file", sorted(Path("examples/pipelines").glob("*.toml")), ids=lambda file: file.stem)
def test_the_examples_are_right(file: Path) -> None:
    assert load(file).sinks
