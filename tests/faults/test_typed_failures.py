"""What can be wrong with a broker or an address: each is an exception of a certain type, soon, that says what to do."""

import re
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import (
    BrokerUnreachableError,
    ClusterAuthorizationFailedError,
    KafkaError,
    MessageSizeTooLargeError,
    RequestTimedOutError,
    SecurityProtocolError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    error_of,
)
from ottla.client.producer import Producer
from ottla.client.table import read_table
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode
from tests.peers.ports import ReservedPort

from . import Action, FaultProxy, Passage, edit_reply
from .history import Witness
from .stories import IMPATIENT, PARTITIONS, explained, run

Client = Callable[..., Coroutine[Any, Any, object]]
TOPIC = "typed"
PATIENT: dict[str, Any] = {**IMPATIENT, "request_timeout_ms": 120_000}
"""So that what is told within `SOON_S` was not told because a request took too long."""
SOON_S = 20.0


async def start_producer(address: str, **options: Any) -> None:
    async with Producer(bootstrap_servers=address, **{**PATIENT, **options}):
        pass


async def start_consumer(address: str, **options: Any) -> None:
    async with Consumer(TOPIC, bootstrap_servers=address, **{**PATIENT, **options}):
        pass


async def start_admin(address: str, **options: Any) -> None:
    async with Admin(address, **{**PATIENT, **options}):
        pass


async def start_table(address: str, **options: Any) -> None:
    await read_table(TOPIC, bootstrap_servers=address, **{**PATIENT, **options})


every_client = pytest.mark.parametrize(
    "client", [start_producer, start_consumer, start_admin, start_table], ids=lambda client: client.__name__
)


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something that listens and is no broker; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def serve() -> None:
        # It ends when the socket is shut down.
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                taken.append(client)
                with suppress(OSError):
                    answer(client)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for client in taken:
            client.close()


def say(data: bytes) -> Callable[[socket.socket], None]:
    """Answer whatever is asked with these bytes, and close."""

    def answer(client: socket.socket) -> None:
        client.recv(1 << 16)
        client.sendall(data)
        client.close()

    return answer


HINT = "see whether a broker runs there, and whether the address is right"


@every_client
def test_nobody_listens(client: Client) -> None:
    with (
        closing(ReservedPort("127.0.0.1")) as nobody,
        pytest.raises(BrokerUnreachableError, match=f"cannot connect to .*:{nobody.number}.*; {HINT}"),
    ):
        run(client(f"127.0.0.1:{nobody.number}"), SOON_S)


@every_client
def test_a_name_that_is_none(client: Client) -> None:
    with pytest.raises(BrokerUnreachableError, match=f"no-such-host.invalid:9092.*; {HINT}"):
        run(client("no-such-host.invalid:9092"), SOON_S)


@every_client
def test_one_who_listens_and_never_answers(client: Client) -> None:
    with (
        serving(lambda client: None) as address,
        pytest.raises(BrokerUnreachableError, match=f"no connection to {address} within 300 ms; {HINT}"),
    ):
        run(client(address, request_timeout_ms=300), SOON_S)


@every_client
def test_one_who_closes_at_once(client: Client) -> None:
    with (
        serving(lambda client: client.close()) as address,
        pytest.raises(BrokerUnreachableError, match=f"{address} closed the connection.*; {HINT}"),
    ):
        run(client(address), SOON_S)


@every_client
@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        b"\x00\x00\x00\x01x",
        b"\x00\x00\x00\x08\x00\x00\x00\x01\xff\xff\xff\xff",
        b"\xff" * 100,
    ],
    ids=["http", "too short", "nonsense", "ones"],
)
def test_one_who_speaks_another_language(client: Client, data: bytes) -> None:
    with serving(say(data)) as address, pytest.raises(KafkaError) as caught:
        run(client(address), SOON_S)
    assert isinstance(caught.value, BrokerUnreachableError), repr(caught.value)
    assert HINT in str(caught.value)


@every_client
def test_one_who_speaks_tls(client: Client) -> None:
    with (
        serving(say(b"\x15\x03\x03\x00\x02\x02\x46")) as address,
        pytest.raises(SecurityProtocolError, match=f"{address} speaks TLS; set security_protocol to"),
    ):
        run(client(address), SOON_S)


# A broker that is one.


@pytest.fixture(scope="session")
def topic(witness: Witness) -> str:
    witness.create(TOPIC, PARTITIONS)
    witness.write(TOPIC, [b"one", b"two", b"three"], PARTITIONS)
    return TOPIC


def test_garbage_in_the_middle_of_a_conversation_is_got_over(proxy: FaultProxy, topic: str) -> None:
    """A reply that makes no sense is as good as none: what was asked may have been done, and is asked again."""
    garbage = Action("garbage", on_reply=lambda exchange, frame: Passage(frame[:8] + b"\xff" * (len(frame) - 8)))
    for api in ("Metadata", "InitProducerId", "Produce"):
        proxy.calm()
        rule = proxy.on(api, garbage)

        async def story() -> None:
            async with Producer(bootstrap_servers=proxy.bootstrap_servers, **IMPATIENT) as producer:
                await producer.send_and_wait(topic, b"sent")

        with explained(proxy):
            run(story())
        rule.wait()


@pytest.fixture(scope="session")
def strict() -> Iterator[TestBroker]:
    with TestBroker({"auto.create.topics.enable": "false", "message.max.bytes": "1000"}) as broker:
        Witness(broker.bootstrap_servers).create(TOPIC, PARTITIONS)
        yield broker


def test_a_topic_that_is_not_there(strict: TestBroker) -> None:
    address = strict.bootstrap_servers

    async def send() -> None:
        async with Producer(bootstrap_servers=address, **IMPATIENT) as producer:
            await producer.send("nowhere", b"value")

    for story in (send(), read_table("nowhere", bootstrap_servers=address, **IMPATIENT)):
        with pytest.raises(UnknownTopicOrPartitionError, match="'nowhere'; create the topic first, or check its name"):
            run(story, SOON_S)


def test_a_partition_that_is_not_there(strict: TestBroker) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=strict.bootstrap_servers, **IMPATIENT) as producer:
            await producer.send(TOPIC, b"value", partition=7)

    with pytest.raises((KafkaError, ValueError), match="7"):
        run(send(), SOON_S)


def test_a_record_that_is_too_large_for_the_broker(strict: TestBroker) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=strict.bootstrap_servers, **IMPATIENT) as producer:
            with pytest.raises(MessageSizeTooLargeError, match=r"max\.message\.bytes|max_request_size"):
                await producer.send_and_wait(TOPIC, b"v" * 2000)
            # The next one goes.
            await producer.send_and_wait(TOPIC, b"v")

    run(send(), SOON_S)


def test_a_record_that_is_too_large_for_the_producer(strict: TestBroker) -> None:
    async def send() -> None:
        options = {**IMPATIENT, "max_request_size": 10_000, "batch_size": 10_000}
        async with Producer(bootstrap_servers=strict.bootstrap_servers, **options) as producer:
            with pytest.raises(MessageSizeTooLargeError, match="above max_request_size = 10000; "):
                await producer.send(TOPIC, b"v" * 20_000)

    run(send(), SOON_S)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailedError),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, KafkaError),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
@pytest.mark.parametrize("who", ["producer", "consumer", "table"])
def test_a_topic_that_one_may_not_see(
    proxy: FaultProxy, topic: str, who: str, code: ErrorCode, kind: type[KafkaError]
) -> None:
    def forbid(response: Any) -> None:
        for described in response.topics:
            described.error_code, described.partitions = int(code), []

    async def story() -> None:
        address = proxy.bootstrap_servers
        if who == "producer":
            async with Producer(bootstrap_servers=address, **IMPATIENT) as producer:
                await producer.send(topic, b"value")
        elif who == "consumer":
            async with Consumer(topic, bootstrap_servers=address, **IMPATIENT) as consumer:
                await consumer.getone()
        else:
            await read_table(topic, bootstrap_servers=address, **IMPATIENT)

    proxy.on("Metadata", edit_reply(forbid), times=None)
    with explained(proxy), pytest.raises(kind, match=rf"^{code.name}: .*'{topic}'.*; \w+") as caught:
        run(story(), SOON_S)
    assert caught.value.code is code


def test_an_identity_that_one_may_not_have(proxy: FaultProxy) -> None:
    def forbid(response: Any) -> None:
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    proxy.on("InitProducerId", edit_reply(forbid))
    with pytest.raises(ClusterAuthorizationFailedError, match=r"^CLUSTER_AUTHORIZATION_FAILED: .*; "):
        run(start_producer(proxy.bootstrap_servers))


def test_a_flush_that_takes_too_long(proxy: FaultProxy, topic: str) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=proxy.bootstrap_servers, **IMPATIENT) as producer:
            await producer.send_and_wait(topic, b"value")
            proxy.freeze()
            await producer.send(topic, b"value")
            try:
                with pytest.raises(RequestTimedOutError, match="1 records were not acknowledged within 50 ms"):
                    await producer.flush(timeout_ms=50)
            finally:
                proxy.thaw()

    run(story())


def test_every_message_is_a_sentence_of_its_own() -> None:
    """Codes that reach users in the tests above have classes with advice."""
    for code in ErrorCode:
        error = error_of(code, "topic 'orders'")
        if type(error) is not KafkaError and hasattr(error, "advice"):
            assert re.fullmatch(rf"{code.name}: topic 'orders'; \w.*", str(error)), str(error)
