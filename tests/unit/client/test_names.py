"""The tables of docs/client.md, which map names of aiokafka and kafka-python to Ottla's, hold against the libraries."""

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from kafka.admin import KafkaAdminClient
from kafka.consumer.fetcher import ConsumerRecord as KafkaConsumerRecord
from kafka.producer.future import RecordMetadata as KafkaRecordMetadata

import ottla
from ottla import errors

GUIDE = (Path(__file__).parents[3] / "docs" / "client.md").read_text()


class Row(NamedTuple):
    ottla: list[str]
    aiokafka: list[str]
    kafka_python: list[str]
    remark: str


def table(title: str) -> list[Row]:
    section = GUIDE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [Row(_names(own), _names(one), _names(other), remark) for own, one, other, remark in cells]


def options(client: Any) -> set[str]:
    if hasattr(client, "DEFAULT_CONFIG"):
        positional = {"topics"} if client is kafka.KafkaConsumer else set()
        return set(client.DEFAULT_CONFIG) | positional
    return set(inspect.signature(client).parameters)


def methods(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_") and not name.isupper()}


def fields(record: Any) -> set[str]:
    return set(getattr(record, "_fields", ()) or record.__dataclass_fields__)


def members(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - {"count", "index"}


CLIENTS = {
    "producer": (ottla.Producer, aiokafka.AIOKafkaProducer, kafka.KafkaProducer),
    "consumer": (ottla.Consumer, aiokafka.AIOKafkaConsumer, kafka.KafkaConsumer),
    "admin client": (ottla.Admin, AIOKafkaAdminClient, KafkaAdminClient),
}
TABLES: dict[str, tuple[set[str], ...]] = {
    **{f"Options of the {name}": tuple(map(options, kinds)) for name, kinds in CLIENTS.items()},
    **{f"Methods of the {name}": tuple(map(methods, kinds)) for name, kinds in CLIENTS.items()},
    "Fields of a record": (
        members(ottla.ConsumerRecord),
        fields(aiokafka.ConsumerRecord),
        fields(KafkaConsumerRecord),
    ),
    "Fields of a record's metadata": (
        members(ottla.RecordMetadata),
        fields(aiokafka.structs.RecordMetadata),
        fields(KafkaRecordMetadata),
    ),
}


@pytest.mark.parametrize("title", TABLES)
def test_a_table_has_every_name_of_each_library_and_no_other(title: str) -> None:
    rows = table(title)
    for column, there in zip(("ottla", "aiokafka", "kafka_python"), TABLES[title], strict=True):
        listed = [name for row in rows for name in getattr(row, column)]
        assert set(listed) == there, column
    assert not _twice(name for row in rows for name in row.ottla)


@pytest.mark.parametrize("title", [*TABLES, "Classes", "Exceptions"])
def test_what_ottla_does_not_have_says_why(title: str) -> None:
    assert [row for row in table(title) if not row.ottla and not row.remark] == []


@pytest.mark.parametrize(
    ("module", "column"), [(aiokafka.errors, "aiokafka"), (kafka.errors, "kafka_python")], ids=["aiokafka", "kafka"]
)
def test_every_exception_has_its_like_here(module: Any, column: str) -> None:
    listed = {name: row for row in table("Exceptions") for name in getattr(row, column)}
    assert all(isinstance(getattr(module, name), type) for name in listed)
    for name, kind in vars(module).items():
        if not (isinstance(kind, type) and issubclass(kind, module.KafkaError)) or name in listed:
            continue
        if not hasattr(errors, name):
            # The words above the table are about those.
            number: int = kind.errno  # type: ignore[attr-defined]
            assert type(errors.error_of(number, "")) is ottla.KafkaError, name


def test_exceptions_with_a_number_are_mapped_to_the_class_of_that_number() -> None:
    for module, column in ((aiokafka.errors, "aiokafka"), (kafka.errors, "kafka_python")):
        for row in table("Exceptions"):
            for name in getattr(row, column):
                number = getattr(getattr(module, name), "errno", None)
                if row.ottla and isinstance(number, int):
                    assert type(errors.error_of(number, "")).__name__ in row.ottla


def test_the_exceptions_of_the_table_exist() -> None:
    for row in table("Exceptions"):
        assert all(name in errors.__all__ for name in row.ottla)


@pytest.mark.parametrize("name", CLIENTS)
def test_the_table_of_options_has_all_of_them_with_their_defaults(name: str) -> None:
    section = GUIDE.split("\n## Options and their defaults\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "` |" in line]
    kind = name.split()[0]
    listed = {option.strip("`"): default for option, of, default, meaning in rows if of in ("all", kind) and meaning}
    parameters = inspect.signature(CLIENTS[name][0]).parameters
    assert listed.keys() == parameters.keys()
    for option, default in listed.items():
        if default != "–":
            assert eval(default.strip("`"), {}) == parameters[option].default, option
        else:
            assert parameters[option].kind is inspect.Parameter.VAR_POSITIONAL


def test_the_classes_of_the_table_exist() -> None:
    homes = {
        "ottla": [ottla],
        "aiokafka": [aiokafka, aiokafka.admin, aiokafka.structs],
        "kafka_python": [kafka, kafka.admin],
    }
    for row in table("Classes"):
        for column, modules in homes.items():
            for name in getattr(row, column):
                assert any(inspect.isclass(getattr(module, name, None)) for module in modules), name
    listed = {name for row in table("Classes") for name in row.ottla}
    assert {"Producer", "Consumer", "Admin"} < listed


def _names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def _twice(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
