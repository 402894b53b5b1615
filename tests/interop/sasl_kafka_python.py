"""Sends a record with kafka-python, in a process of its own: a producer that cannot log in leaves its sockets open.

Reads the options, the topic and the value as JSON from standard input; exits with 1 and says why if it fails.
"""

import json
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


def main() -> None:
    given = json.load(sys.stdin)
    try:
        # It goes on trying for this long, whatever the broker says.
        producer = kafka.KafkaProducer(**with_provider(given["options"]), bootstrap_timeout_ms=1500)
        producer.send(given["topic"], given["value"].encode()).get(TIMEOUT_S)
        producer.close()
    except kafka.errors.KafkaError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
