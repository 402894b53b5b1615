"""ConsumerGroupDescribe: a group as tools see it."""

from ottla.cluster.image import ClusterImage
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.consumer.partitions import NONE, Partitions
from ottla.coordinator.group.consumer.state import GroupState
from ottla.wire.api import consumer_group_describe as api

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(state: GroupState, image: ClusterImage, assignor_name: str) -> api.DescribedGroup:
    """Everything about a group."""
    members = [
        _member(member, state.targets.get(member_id, NONE), image) for member_id, member in state.members.items()
    ]
    return api.DescribedGroup(
        group_id=state.group_id,
        group_state=state.state.value,
        group_epoch=state.epoch,
        assignment_epoch=state.assignment_epoch,
        assignor_name=assignor_name,
        members=members,
    )


def _member(member: Member, target: Partitions, image: ClusterImage) -> api.Member:
    profile = member.profile
    return api.Member(
        member_id=member.member_id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=member.current.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.topics),
        subscribed_topic_regex=profile.regex,
        assignment=_assignment(member.current.assigned, image),
        target_assignment=_assignment(target, image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, image: ClusterImage) -> api.Assignment:
    found = [(image.topic_by_id(topic_id), indexes) for topic_id, indexes in partitions.items()]
    return api.Assignment(
        topic_partitions=[
            api.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=list(indexes))
            for topic, indexes in found
            if topic is not None
        ]
    )
