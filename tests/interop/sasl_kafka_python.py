"""Sends a record with kafka-python, in a process of its own: a producer that cannot log in leaves its sockets open.

Reads the options, the topic and the value as JSON from standard input; exits with 1 and says why if it fails.
"""

import json
import logging
import os
import sys
from typing import Any

import kafka
from kafka.net.sasl.oauth import AbstractTokenProvider

TIMEOUT_S = 20


class Token(AbstractTokenProvider):  # type: ignore[misc]
    """A token that is there already."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def with_provider(options: dict[str, Any]) -> dict[str, Any]:
    """Options in which a token stands for what gives it."""
    token = options.pop("token", None)
    return options if token is None else {**options, "sasl_oauth_token_provider": Token(token)}


class GiveUp(logging.Handler):
    """Ends the program when the broker turns it away: by itself it would go on trying, whatever the broker says."""

    def emit(self, record: logging.LogRecord) -> None:
        """Told of by the client."""
        said = record.getMessage()
        if said.startswith("Bootstrap connection to "):
            print(said, flush=True)
            os._exit(1)


def main() -> None:
    given = json.load(sys.stdin)
    logging.getLogger("kafka.net.manager").addHandler(GiveUp())
    try:
        producer = kafka.KafkaProducer(**with_provider(given["options"]), bootstrap_timeout_ms=TIMEOUT_S * 1000)
        producer.send(given["topic"], given["value"].encode()).get(TIMEOUT_S)
        producer.close()
    except kafka.errors.KafkaError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
