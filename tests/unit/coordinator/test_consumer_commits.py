"""Who may commit and fetch offsets in a group of the consumer protocol."""

from ottla.wire.errors import ErrorCode, KafkaError

from .consumer_world import Consumer, ConsumerWorld


def commit(world: ConsumerWorld, member_id: str, epoch: int, version: int = 9) -> ErrorCode:
    try:
        world.group.check_commit(world.now_ms, version, member_id, None, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def fetch(world: ConsumerWorld, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        world.group.check_fetch(member_id, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_member_commits_and_fetches_in_its_epoch() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    assert commit(world, "a", a.epoch) is ErrorCode.NONE
    assert commit(world, "a", a.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "a", a.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "nobody", a.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(world, "a", a.epoch) is ErrorCode.NONE
    assert fetch(world, "a", a.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(world, "nobody", a.epoch) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_to_give_something_up_may_still_commit_for_it() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    Consumer(world, "b").join()
    a.beat()
    assert commit(world, "a", a.epoch) is ErrorCode.NONE


def test_a_simple_consumer_commits_only_while_the_group_is_empty() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    assert commit(world, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    a.leave()
    assert commit(world, "", -1) is ErrorCode.NONE


def test_tools_fetch_at_any_time() -> None:
    world = ConsumerWorld()
    Consumer(world, "a").join()
    assert fetch(world, None, -1) is ErrorCode.NONE
    assert fetch(world, "", -1) is ErrorCode.NONE


def test_versions_that_cannot_say_an_epoch_are_refused() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    assert commit(world, "a", a.epoch, version=8) is ErrorCode.UNSUPPORTED_VERSION
