"""What 002 says under "Wildcard Subscription"."""

import re

from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, settle
from tests.broker.consumer_design.line import Line


def test_an_empty_list_of_topics_asks_for_all_of_them_with_their_partitions(line: Line) -> None:
    line.create_topic("orders-eu", 2)
    line.create_topic("orders-us", 3)
    answer = line.call(MetadataRequest(topics=[]), 0)
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {"t": 4, "orders-eu": 2, "orders-us": 3}


def test_a_classic_consumer_filters_topics_itself_and_joins_again_when_there_are_others(
    company: Company, line: Line
) -> None:
    line.create_topic("orders-eu", 2)

    def matching() -> tuple[str, ...]:
        names = [topic.name for topic in line.call(MetadataRequest(topics=[]), 0).topics]
        return tuple(sorted(name for name in names if re.fullmatch("orders-.*", name)))

    members = [company.classic(topics=matching()) for _ in range(2)]
    generation = settle(members, all_of(2, "orders-eu"))
    line.create_topic("orders-us", 2)
    follower = members[1]
    assert not follower.leads
    follower.topics = matching()
    follower.begin_join()
    assert settle(members, all_of(2, "orders-eu") + all_of(2, "orders-us")) > generation


@both_protocols
def test_another_subscription_starts_a_rebalance_and_the_same_one_does_not(
    company: Company, line: Line, kind: str
) -> None:
    line.create_topic("more", 2)
    members = company.settled(kind, 2)
    generation = members[0].generation
    changing = members[1]
    if kind == "classic":
        changing.begin_join()  # type: ignore[union-attr]
        assert changing.take_answer() is ErrorCode.NONE
        changing.begin_sync()  # type: ignore[union-attr]
        assert changing.take_answer() is ErrorCode.NONE
        assert settle(members, all_of(4)) == generation
        changing.topics = ("t", "more")  # type: ignore[union-attr]
        changing.begin_join()  # type: ignore[union-attr]
    else:
        changing.close()
        assert settle(members, all_of(4)) == generation, "it tells everything again, and that is nothing new"
        changing.says["subscribed_topic_names"] = ["t", "more"]  # type: ignore[union-attr]
        changing.close()
    assert settle(members, all_of(4) + all_of(2, "more")) > generation


def test_in_the_consumer_protocol_the_broker_resolves_regular_expressions(company: Company, line: Line) -> None:
    line.create_topic("orders-eu", 2)
    line.create_topic("old-orders", 2)
    says = {"subscribed_topic_names": [], "subscribed_topic_regex": "orders-.*"}
    members = [company.consumer(**says), company.consumer(**says)]
    epoch = settle(members, all_of(2, "orders-eu"))
    line.create_topic("orders-us", 2)
    assert settle(members, all_of(2, "orders-eu") + all_of(2, "orders-us")) > epoch, "without a word of the members"


def test_a_regular_expression_never_finds_the_brokers_own_topics(company: Company) -> None:
    member = company.consumer(subscribed_topic_names=[], subscribed_topic_regex=".*")
    settle([member], all_of(4))
