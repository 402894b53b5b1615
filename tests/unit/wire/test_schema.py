import copy
import pickle
import subprocess
import sys

import pytest

from ottla.wire.api import MODULES, api_name, request, response
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.schema import Versions, schema_of, unknown_tags


def test_seventy_apis_have_three_hundred_request_versions_and_as_many_responses() -> None:
    assert len(MODULES) == 70
    for load in (request, response):
        assert sum(len(list(schema_of(load(key)).versions)) for key in MODULES) == 300


def test_request_and_response_of_an_api_agree_on_key_and_versions() -> None:
    for key in MODULES:
        asked, answered = schema_of(request(key)), schema_of(response(key))
        assert (asked.key, asked.versions, asked.flexible) == (key, answered.versions, answered.flexible), api_name(key)


def test_a_field_left_out_has_its_declared_default() -> None:
    made = FetchRequest()
    assert (made.replica_id, made.max_bytes, made.rack_id, made.topics) == (-1, 0x7FFFFFFF, "", [])


def test_two_instances_do_not_share_their_lists() -> None:
    FetchRequest().topics.append(FetchTopic())
    assert FetchRequest().topics == []


def test_an_unknown_field_name_is_refused() -> None:
    with pytest.raises(TypeError, match="fetch_ofset"):
        FetchPartition(fetch_ofset=1)  # type: ignore[call-arg]


def test_instances_compare_by_value() -> None:
    assert FetchPartition(partition=1) == FetchPartition(partition=1)
    assert FetchPartition(partition=1) != FetchPartition(partition=2)
    assert FetchPartition() != object()


def test_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(FetchPartition(partition=3, fetch_offset=9)) == "FetchPartition(partition=3, fetch_offset=9)"


def test_instances_can_be_copied_and_pickled() -> None:
    made = FetchRequest(topics=[FetchTopic(topic="a", partitions=[FetchPartition(partition=1)])])
    assert copy.deepcopy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made


def test_unknown_tags_of_a_fresh_instance_are_none_at_all() -> None:
    assert unknown_tags(FetchRequest()) == {}


def test_an_undeclared_class_has_no_schema() -> None:
    with pytest.raises(TypeError, match="declared"):
        schema_of(int)


def test_versions_know_what_they_hold() -> None:
    assert list(Versions.parse("2-4")) == [2, 3, 4]
    assert 7 in Versions.parse("7")
    assert 8 not in Versions.parse("7")
    assert repr(Versions.parse("none")) == "Versions(none)"


def test_metadata_v0_may_name_no_topics_by_null() -> None:
    field = next(field for field in schema_of(MetadataRequest).fields if field.name == "topics")
    assert 0 in field.nullable


def test_importing_ottla_loads_neither_the_wire_nor_any_library() -> None:
    heavy = "[m for m in sys.modules if m.split('.')[0] in ('pyarrow','uvloop','cramjam','rich') or 'ottla.' in m]"
    out = subprocess.run(
        [sys.executable, "-c", f"import sys, ottla; print({heavy})"], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
