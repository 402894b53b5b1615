"""Other people's clients, and Ottla's, over TLS: each writes and reads, or says that it cannot connect."""

import asyncio
import json
import shutil
import ssl
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import aiokafka
import aiokafka.errors
import aiokafka.helpers
import confluent_kafka
import kafka
import pytest

from ottla import Consumer, Producer
from ottla.errors import KafkaError

PATIENCE_S = 30.0
GIVE_UP_MS = 1_000


@dataclass(frozen=True)
class Credentials:
    """The files that a client is given."""

    authority: str
    certificate: str | None = None
    key: str | None = None
    revoked: str | None = None


class TlsClient(ABC):
    """A client of some library."""

    name: str

    @abstractmethod
    def write(self, address: str, files: Credentials, topic: str, values: list[bytes]) -> None:
        """Write records to partition 0, and return when they are acknowledged."""

    @abstractmethod
    def read(self, address: str, files: Credentials, topic: str, count: int) -> list[bytes]:
        """The first records of partition 0."""

    @abstractmethod
    def refusal(self, address: str, files: Credentials) -> str:
        """What it says when it cannot connect; fails if it can."""


class Ottla(TlsClient):
    name = "ottla"

    def _options(self, address: str, files: Credentials) -> dict[str, Any]:
        return {
            "bootstrap_servers": address,
            "security_protocol": "SSL",
            "ssl_cafile": files.authority,
            "ssl_certfile": files.certificate,
            "ssl_keyfile": files.key,
            "ssl_crlfile": files.revoked,
        }

    def write(self, address: str, files: Credentials, topic: str, values: list[bytes]) -> None:
        async def story() -> None:
            async with Producer(**self._options(address, files)) as producer:
                for value in values:
                    await producer.send(topic, value, partition=0)

        asyncio.run(story())

    def read(self, address: str, files: Credentials, topic: str, count: int) -> list[bytes]:
        async def story() -> list[bytes]:
            found: list[bytes] = []
            options = self._options(address, files)
            async with Consumer(topic, auto_offset_reset="earliest", **options) as consumer:
                async for record in consumer:
                    found.append(record.value)
                    if len(found) == count:
                        break
            return found

        return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    def refusal(self, address: str, files: Credentials) -> str:
        async def story() -> None:
            async with Producer(**self._options(address, files)):
                pass

        with pytest.raises(KafkaError) as caught:
            asyncio.run(story())
        return f"{type(caught.value).__name__}: {caught.value}"


class Librdkafka(TlsClient):
    name = "confluent-kafka"

    def _config(self, address: str, files: Credentials) -> dict[str, Any]:
        found = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": files.authority,
            "ssl.certificate.location": files.certificate,
            "ssl.key.location": files.key,
            "ssl.crl.location": files.revoked,
        }
        return {name: value for name, value in found.items() if value is not None}

    def write(self, address: str, files: Credentials, topic: str, values: list[bytes]) -> None:
        producer = confluent_kafka.Producer(self._config(address, files))
        outcomes: list[Any] = []

        def note(error: Any, message: Any) -> None:
            outcomes.append(error)

        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=note)
            producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0
        assert outcomes == [None] * len(values)

    def read(self, address: str, files: Credentials, topic: str, count: int) -> list[bytes]:
        consumer = confluent_kafka.Consumer({**self._config(address, files), "group.id": "readers"})
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        until = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < until:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found.append(message.value() or b"")
        consumer.close()
        return found

    def refusal(self, address: str, files: Credentials) -> str:
        told = threading.Event()
        said: list[str] = []

        def note(error: Any) -> None:
            said.append(error.str())
            told.set()

        producer = confluent_kafka.Producer({**self._config(address, files), "error_cb": note})
        until = time.monotonic() + PATIENCE_S
        while not told.is_set() and time.monotonic() < until:
            producer.poll(0.1)
        with pytest.raises(confluent_kafka.KafkaException):
            producer.list_topics(timeout=0.3)
        return said[0]


class Kcat(TlsClient):
    name = "kcat"

    def _command(self, mode: str, address: str, files: Credentials, *words: str) -> list[str]:
        config = Librdkafka()._config(address, files)
        return ["kcat", mode, *[word for name, value in config.items() for word in ("-X", f"{name}={value}")], *words]

    def write(self, address: str, files: Credentials, topic: str, values: list[bytes]) -> None:
        command = self._command("-P", address, files, "-t", topic, "-p", "0")
        subprocess.run(command, input=b"\n".join(values), check=True, timeout=PATIENCE_S)

    def read(self, address: str, files: Credentials, topic: str, count: int) -> list[bytes]:
        command = self._command("-C", address, files, "-t", topic, "-p", "0", "-c", str(count), "-e", "-q")
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S).stdout.splitlines()

    def refusal(self, address: str, files: Credentials) -> str:
        command = self._command("-L", address, files, "-m", "2")
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S)
        assert done.returncode != 0
        return done.stderr.decode()


_KAFKA_PYTHON = f"""
import json, sys, kafka, kafka.errors
try:
    kafka.KafkaProducer(bootstrap_timeout_ms={GIVE_UP_MS}, **json.loads(sys.argv[1]))
except kafka.errors.KafkaError as error:
    print(repr(error))
else:
    sys.exit("it could connect")
"""


class KafkaPython(TlsClient):
    name = "kafka-python"

    def _options(self, address: str, files: Credentials) -> dict[str, Any]:
        return {
            "bootstrap_servers": address,
            "security_protocol": "SSL",
            "ssl_cafile": files.authority,
            "ssl_certfile": files.certificate,
            "ssl_keyfile": files.key,
            "ssl_crlfile": files.revoked,
        }

    def write(self, address: str, files: Credentials, topic: str, values: list[bytes]) -> None:
        producer = kafka.KafkaProducer(**self._options(address, files))
        futures = [producer.send(topic, value, partition=0) for value in values]
        for future in futures:
            future.get(timeout=PATIENCE_S)
        producer.close()

    def read(self, address: str, files: Credentials, topic: str, count: int) -> list[bytes]:
        consumer = kafka.KafkaConsumer(consumer_timeout_ms=PATIENCE_S * 1000, **self._options(address, files))
        place = kafka.TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        found = [next(consumer).value for _ in range(count)]
        consumer.close()
        return found

    def refusal(self, address: str, files: Credentials) -> str:
        # In a process of its own: a producer that could not be made leaves its sockets to the garbage collector.
        words = [sys.executable, "-c", _KAFKA_PYTHON, json.dumps(self._options(address, files))]
        done = subprocess.run(words, capture_output=True, timeout=PATIENCE_S, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Aiokafka(TlsClient):
    name = "aiokafka"

    def _options(self, address: str, files: Credentials) -> dict[str, Any]:
        context = aiokafka.helpers.create_ssl_context(
            cafile=files.authority, certfile=files.certificate, keyfile=files.key
        )
        if files.revoked is not None:
            context.load_verify_locations(files.revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        # Its helper leaves host names unchecked.
        context.check_hostname = True
        return {"bootstrap_servers": address, "security_protocol": "SSL", "ssl_context": context}

    def write(self, address: str, files: Credentials, topic: str, values: list[bytes]) -> None:
        async def story() -> None:
            async with aiokafka.AIOKafkaProducer(**self._options(address, files)) as producer:
                for value in values:
                    await producer.send(topic, value, partition=0)
                await producer.flush()

        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    def read(self, address: str, files: Credentials, topic: str, count: int) -> list[bytes]:
        async def story() -> list[bytes]:
            options = self._options(address, files)
            async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
                return [(await consumer.getone()).value for _ in range(count)]

        return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    def refusal(self, address: str, files: Credentials) -> str:
        async def story() -> None:
            producer = aiokafka.AIOKafkaProducer(**self._options(address, files))
            try:
                await producer.start()
            finally:
                await producer.stop()

        with pytest.raises(aiokafka.errors.KafkaError) as caught:
            asyncio.run(story())
        return str(caught.value)


ALL: list[TlsClient] = [Ottla(), Librdkafka(), Aiokafka(), KafkaPython(), Kcat()]
NO_KCAT = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
each_client = pytest.mark.parametrize(
    "client",
    [pytest.param(one, id=one.name, marks=[NO_KCAT] if one.name == "kcat" else []) for one in ALL],
)
