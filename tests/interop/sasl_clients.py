"""A record to a broker and back, by each client there is, logged in."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka

from ottla.sync import Consumer, Producer
from tests.interop.sasl_kafka_python import with_provider

TIMEOUT_S = 20
VALUE = b"two apples"


class RefusedError(Exception):
    """The client could not log in; what it said."""


class Login(NamedTuple):
    """Who to log in as, and how."""

    bootstrap: str
    mechanism: str
    user: str = ""
    password: str = ""
    token: str = ""
    ca: str | None = None

    @property
    def protocol(self) -> str:
        return "SASL_PLAINTEXT" if self.ca is None else "SASL_SSL"


RoundTrip = Callable[[Login, str], bytes]
"""Sends VALUE to a topic, and reads the first record of it; RefusedError if the login fails."""


def _python_options(login: Login) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": login.protocol,
        "sasl_mechanism": login.mechanism,
    }
    if login.mechanism != "OAUTHBEARER":
        options |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return options


def by_ottla(login: Login, topic: str) -> bytes:
    from ottla.errors import AuthenticationFailedError

    options = {**_python_options(login), "ssl_cafile": login.ca}
    if login.mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = lambda: login.token
    try:
        with Producer(**options) as producer:
            producer.send(topic, VALUE).result(TIMEOUT_S)
        with Consumer(topic, auto_offset_reset="earliest", **options) as consumer:
            return next(iter(consumer)).value or b""
    except AuthenticationFailedError as error:
        raise RefusedError(str(error)) from error


def by_kafka_python(login: Login, topic: str) -> bytes:
    options = {**_python_options(login), "ssl_cafile": login.ca}
    if login.mechanism == "OAUTHBEARER":
        options["token"] = login.token
    sent = subprocess.run(
        [sys.executable, "-m", "tests.interop.sasl_kafka_python"],
        input=json.dumps({"options": options, "topic": topic, "value": VALUE.decode()}),
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
        check=False,
    )
    if sent.returncode:
        raise RefusedError(sent.stdout + sent.stderr)
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000, **with_provider(options)
    )
    try:
        value: bytes = next(iter(consumer)).value
        return value
    finally:
        consumer.close()


class _AiokafkaToken(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def by_aiokafka(login: Login, topic: str) -> bytes:
    from aiokafka.helpers import create_ssl_context

    async def story() -> bytes:
        options = _python_options(login)
        if login.ca is not None:
            options["ssl_context"] = create_ssl_context(cafile=login.ca)
        if login.mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = _AiokafkaToken(login.token)
        producer = aiokafka.AIOKafkaProducer(**options)
        try:
            await producer.start()
            await producer.send_and_wait(topic, VALUE)
        except aiokafka.errors.KafkaError as error:
            raise RefusedError(str(error)) from error
        finally:
            await producer.stop()
        async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
            value: bytes = record.value
            return value

    return asyncio.run(story())


def librdkafka_options(login: Login) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": login.protocol,
        "sasl.mechanisms": login.mechanism,
    }
    if login.ca is not None:
        options["ssl.ca.location"] = login.ca
    if login.mechanism != "OAUTHBEARER":
        options |= {"sasl.username": login.user, "sasl.password": login.password}
    return options


def by_confluent(login: Login, topic: str) -> bytes:
    refused: list[str] = []

    def note(error: Any) -> None:
        if error.code() == confluent_kafka.KafkaError._AUTHENTICATION:
            refused.append(error.str())

    options = {**librdkafka_options(login), "error_cb": note, "log_level": 0}
    if login.mechanism == "OAUTHBEARER":
        options["oauth_cb"] = lambda _: (login.token, time.time() + 300)
    producer = confluent_kafka.Producer(options)
    producer.produce(topic, VALUE)
    deadline = time.monotonic() + TIMEOUT_S
    while producer.flush(0.1) and time.monotonic() < deadline:
        if refused:
            producer.purge()
            producer.flush(1)
            raise RefusedError(refused[0])
    consumer = confluent_kafka.Consumer({**options, "group.id": "readers", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None
        return message.value() or b""
    finally:
        consumer.close()


@contextmanager
def issuing(token: str) -> Iterator[str]:
    """The address of a server that gives this token to everybody."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 300}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/token"
        finally:
            server.shutdown()
            thread.join()


def by_kcat(login: Login, topic: str) -> bytes:
    options = [word for name, value in librdkafka_options(login).items() for word in ("-X", f"{name}={value}")]
    sent = subprocess.run(
        ["kcat", "-P", "-t", topic, *options, "-X", "message.timeout.ms=3000"],
        input=VALUE + b"\n",
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if sent.returncode or b"uthentication" in sent.stderr:
        raise RefusedError(sent.stderr.decode())
    words = ["kcat", "-C", "-t", topic, *options, "-o", "beginning", "-c", "1", "-q"]
    return subprocess.run(words, capture_output=True, timeout=TIMEOUT_S, check=True).stdout.rstrip(b"\n")


CLIENTS: dict[str, RoundTrip] = {
    "ottla": by_ottla,
    "confluent": by_confluent,
    "kafka_python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "kcat": by_kcat,
}
