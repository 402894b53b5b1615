"""Quotas: who is measured by what, and how long a pause has to be."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker import quota
from ottla.broker.quota import Meter, Quotas
from ottla.cluster.quota import QuotaEntity, check_quota, quota_entity
from ottla.meta.memory import open_memory
from ottla.meta.quotas import QuotaStore
from ottla.wire.api.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.api.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.errors import ErrorCode, KafkaError

from .small_broker import SmallBroker

RATE = "producer_byte_rate"
USER, CLIENT, BOTH = ["user"], ["client-id"], ["client-id", "user"]


class _Clock:
    def __init__(self) -> None:
        self.time_s = 100.0

    def now_ms(self) -> int:
        return int(self.time_s * 1000)

    def monotonic(self) -> float:
        return self.time_s


def _quotas(limits: dict[QuotaEntity, float], clock: _Clock | None = None) -> Quotas:
    quotas = Quotas(QuotaStore(open_memory().connect()), clock or _Clock(), windows=11, window_s=1)

    async def fill() -> None:
        for entity, limit in limits.items():
            key = "connection_creation_rate" if entity[0][0] == "ip" else RATE
            await quotas.alter(entity, lambda before, key=key, limit=limit: {key: limit})  # type: ignore[misc]

    asyncio.run(fill())
    return quotas


PRECEDENCE: list[tuple[QuotaEntity, tuple[str, str, str]]] = [
    ((("client-id", "app"), ("user", "alice")), (RATE, "alice", "app")),
    ((("client-id", None), ("user", "alice")), (RATE, "alice", "app")),
    ((("user", "alice"),), (RATE, "alice", "")),
    ((("client-id", "app"), ("user", None)), (RATE, "alice", "app")),
    ((("client-id", None), ("user", None)), (RATE, "alice", "app")),
    ((("user", None),), (RATE, "alice", "")),
    ((("client-id", "app"),), (RATE, "", "app")),
    ((("client-id", None),), (RATE, "", "app")),
]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_more_precise_quota_wins_as_in_kafka(first: int) -> None:
    quotas = _quotas({entity: float(number + 1) for number, (entity, _) in enumerate(PRECEDENCE) if number >= first})
    assert quotas.limit(RATE, "alice", "app") == (first + 1.0, PRECEDENCE[first][1])


def test_what_is_set_for_others_does_not_matter() -> None:
    quotas = _quotas({(("user", "bob"),): 1.0, (("client-id", "other"),): 2.0})
    assert quotas.limit(RATE, "alice", "app") is None
    assert quotas.active


def test_nothing_is_measured_once_the_last_quota_is_gone() -> None:
    quotas = _quotas({(("user", "bob"),): 1.0})
    asyncio.run(quotas.alter((("user", "bob"),), lambda before: {}))
    assert not quotas.active
    assert quotas.limits == {}


@pytest.mark.parametrize("amount", [7.0, 700.0, 70_000.0])
def test_pauses_bring_the_rate_to_the_limit(amount: float) -> None:
    meter, limit, now_s, used = Meter(10.0), 1000.0, 0.0, 0.0
    while now_s < 1000:
        used += amount
        now_s += 0.001 + meter.add(amount, limit, now_s)
    # At the start everybody has saved ten seconds' worth.
    assert (used - 10 * limit) / now_s == pytest.approx(limit, rel=0.02)


def test_what_was_saved_may_be_used_at_once_and_is_saved_again() -> None:
    meter = Meter(10.0)
    assert meter.add(10_000, 1000, 0.0) == 0
    assert meter.add(1_000, 1000, 0.5) == 0.5
    assert meter.add(10_000, 1000, 11.0) == 0


def test_a_limit_that_changes_holds_from_then_on() -> None:
    meter = Meter(10.0)
    assert meter.add(10_000, 1000, 0.0) == 0
    assert meter.add(0, 100, 0.0) == 90


def test_an_address_that_connects_too_often_is_turned_away_until_it_has_waited() -> None:
    clock = _Clock()
    quotas = _quotas({(("ip", None),): 1.0, (("ip", "10.0.0.9"),): 1000.0}, clock)
    too_often = "clients connect from there more often than its quota allows"
    assert [quotas.refusal("10.0.0.1") for _ in range(11)] == [None] * 10 + [too_often]
    assert not any(quotas.refusal("10.0.0.9") for _ in range(100))
    assert not quotas.active, "requests need not be measured"
    clock.time_s += 11
    assert not quotas.refusal("10.0.0.1")


def test_all_addresses_together_connect_no_more_often_than_they_may() -> None:
    clock = _Clock()
    quotas = _quotas({(("ip", "10.0.0.9"),): 0.1}, clock)
    quotas.limit_connections(2)
    assert quotas.refusal("10.0.0.9") is None
    # Who is turned away for his own limit uses up nothing of the others'.
    assert all("its quota" in (quotas.refusal("10.0.0.9") or "") for _ in range(50))
    assert not any(quotas.refusal(f"10.0.1.{number}") for number in range(19))
    assert quotas.refusal("10.0.0.1") == "clients connect more often than max.connection.creation.rate allows"
    clock.time_s += 0.5
    assert [quotas.refusal("10.0.0.1") is None for _ in range(2)] == [True, False]
    quotas.limit_connections(quota.NO_BOUND)
    assert not any(quotas.refusal("10.0.0.1") for _ in range(100))


def test_a_rate_of_nothing_lets_nobody_in() -> None:
    quotas = _quotas({})
    quotas.limit_connections(0)
    assert quotas.refusal("10.0.0.1") is not None


def test_made_up_addresses_and_client_ids_take_no_more_than_the_places_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quota, "MOST_METERS", 10)
    quotas = _quotas({(("ip", None),): 1.0})
    for number in range(100):
        quotas.refusal(f"10.0.0.{number}")
    assert len(quotas._addresses) == 10


def test_strangers_do_not_push_out_what_users_have_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "MOST_METERS", 10)
    everybody: QuotaEntity = (("client-id", None), ("user", None))
    quotas = _quotas({everybody: 100.0, (("ip", None),): 1.0})
    assert quotas._measure(RATE, "alice", "app", 1500, 100.0) == 5.0
    for number in range(100):
        quotas.refusal(f"10.0.0.{number}")
        quotas._measure(RATE, "ANONYMOUS", f"made-up-{number}", 1, 100.0)
    assert len(quotas._nobodies) == 10
    assert quotas._measure(RATE, "alice", "app", 0, 100.0) == 5.0, "it is remembered"


def test_a_client_id_is_measured_once_whoever_has_it() -> None:
    quotas = _quotas({(("client-id", "app"),): 100.0})
    pauses = [quotas._measure(RATE, user, "app", 500, 100.0) for user in ("ANONYMOUS", "alice", "ANONYMOUS", "bob")]
    assert pauses == [0.0, 0.0, 5.0, 10.0]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([], "for a user, a client-id, both, or an ip"),
        ([("ip", "10.0.0.1"), ("user", "a")], "both, or an ip"),
        ([("group", "a")], "both, or an ip"),
        ([("user", "a"), ("user", "b")], "both, or an ip"),
        ([("user", "")], "1 to 1000 characters"),
        ([("ip", "somewhere")], "is no address"),
    ],
)
def test_entities_that_there_are_not_are_refused(parts: list[tuple[str, str | None]], complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint):
        quota_entity(parts)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_limits_that_make_no_sense_are_refused(value: float) -> None:
    with pytest.raises(KafkaError, match="a limit is above 0"):
        check_quota((("user", "a"),), RATE, value)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallBroker]:
    with SmallBroker(tmp_path, {}) as running:
        yield running


def _alter(small: SmallBroker, *entries: EntryData, validate_only: bool = False) -> list[ErrorCode]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return [ErrorCode(entry.error_code) for entry in small.ask(request, 1).entries]


def _entry(parts: dict[str, str | None], **limits: float | None) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()],
    )


def _described(small: SmallBroker, *components: tuple[str, int, str | None], strict: bool = False) -> list[list[str]]:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    found = small.ask(DescribeClientQuotasRequest(components=asked, strict=strict), 1)
    assert found.error_code == ErrorCode.NONE
    return [[f"{part.entity_type}={part.entity_name}" for part in entry.entity] for entry in found.entries]


def test_quotas_are_set_changed_removed_and_described(small: SmallBroker) -> None:
    alice: dict[str, str | None] = {"user": "alice"}
    assert _alter(small, _entry(alice, producer_byte_rate=10.0, consumer_byte_rate=20.0)) == [ErrorCode.NONE]
    assert _alter(small, _entry(alice, producer_byte_rate=None, request_percentage=5.0)) == [ErrorCode.NONE]
    (entry,) = small.ask(DescribeClientQuotasRequest(), 0).entries
    assert [(value.key, value.value) for value in entry.values] == [
        ("consumer_byte_rate", 20.0),
        ("request_percentage", 5.0),
    ]
    assert _alter(small, _entry(alice, consumer_byte_rate=None, request_percentage=None)) == [ErrorCode.NONE]
    assert _described(small) == []


def test_what_is_only_checked_changes_nothing(small: SmallBroker) -> None:
    assert _alter(small, _entry({"user": "alice"}, producer_byte_rate=10.0), validate_only=True) == [ErrorCode.NONE]
    assert _described(small) == []


def test_one_bad_entry_does_not_keep_the_others_back(small: SmallBroker) -> None:
    codes = _alter(
        small,
        _entry({"user": "alice"}, producer_byte_rate=10.0),
        _entry({"user": "bob"}, producer_byte_rate=-1.0),
        _entry({"user": "carol"}, connection_creation_rate=1.0),
        _entry({"user": "alice"}, producer_byte_rate=11.0),
        _entry({"ip": "10.0.0.1"}, connection_creation_rate=1.0),
    )
    bad = ErrorCode.INVALID_REQUEST
    assert codes == [ErrorCode.NONE, bad, bad, bad, ErrorCode.NONE]
    assert _described(small) == [["ip=10.0.0.1"], ["user=alice"]]


@pytest.mark.parametrize(("given", "kept"), [("0:0:0:0:0:0:0:1", "::1"), ("::ffff:10.0.0.1", "10.0.0.1")])
def test_an_address_is_the_same_in_all_its_forms(small: SmallBroker, given: str, kept: str) -> None:
    assert _alter(small, _entry({"ip": given}, connection_creation_rate=1.0)) == [ErrorCode.NONE]
    assert _described(small, ("ip", 0, given)) == _described(small, ("ip", 0, kept)) == [[f"ip={kept}"]]
    assert any(small.broker.quotas.refusal(kept) for _ in range(30))
    assert _alter(small, _entry({"ip": given}, connection_creation_rate=None)) == [ErrorCode.NONE]
    assert _described(small) == []


def test_descriptions_match_by_name_by_default_and_by_type(small: SmallBroker) -> None:
    for parts in ({"user": "alice"}, {"user": None}, {"user": "alice", "client-id": "app"}, {"client-id": "app"}):
        _alter(small, _entry(parts, producer_byte_rate=10.0))  # type: ignore[arg-type]
    both = ["client-id=app", "user=alice"]
    assert _described(small, ("user", 0, "alice")) == [both, ["user=alice"]]
    assert _described(small, ("user", 0, "alice"), strict=True) == [["user=alice"]]
    assert _described(small, ("user", 1, None)) == [["user=None"]]
    assert _described(small, ("user", 2, None), strict=True) == [["user=None"], ["user=alice"]]
    assert _described(small, ("user", 2, None), ("client-id", 0, "app")) == [both]
    assert len(_described(small)) == 4


@pytest.mark.parametrize(
    "components",
    [
        [ComponentData(entity_type="group", match="a")],
        [ComponentData(entity_type="user", match="a"), ComponentData(entity_type="user", match="b")],
        [ComponentData(entity_type="user", match_type=7, match=None)],
        [ComponentData(entity_type="user", match_type=0, match=None)],
        [ComponentData(entity_type="user", match="a"), ComponentData(entity_type="ip", match="b")],
    ],
)
def test_questions_that_make_no_sense_are_refused(small: SmallBroker, components: list[ComponentData]) -> None:
    answer = small.ask(DescribeClientQuotasRequest(components=components), 1)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.entries is None
