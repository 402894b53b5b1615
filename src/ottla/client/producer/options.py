"""What a producer can be told, checked."""

import logging
from dataclasses import dataclass

from ottla.client.checks import check_flag, check_number, check_numbers, shown
from ottla.client.options import ClientOptions
from ottla.client.producer.idempotence import REMEMBERED
from ottla.record.compression import Codec, compress
from ottla.wire.errors import EncodeError

log = logging.getLogger(__name__)

ACKS = {"all": -1, -1: -1, 0: 0, 1: 1, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions(ClientOptions):
    """The options of a producer. The names are those of other Python clients.

    >>> ProducerOptions(acks=1).idempotent
    False
    >>> ProducerOptions(acks=2)
    Traceback (most recent call last):
    ValueError: acks is 2; it must be 'all', 1 or 0
    """

    acks: int | str = "all"
    enable_idempotence: bool | None = None
    compression_type: str | None = None
    compression_level: int | None = None
    linger_ms: float = 0
    batch_size: int = 256 * 1024
    max_request_size: int = 1024 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    max_in_flight_requests_per_connection: int = REMEMBERED

    def __post_init__(self) -> None:
        super(ProducerOptions, self).__post_init__()
        if not isinstance(self.acks, (int, str)):
            raise TypeError(f"acks is {shown(self.acks)}; give 'all', 1 or 0")
        if self.acks not in ACKS:
            raise ValueError(f"acks is {self.acks!r}; it must be 'all', 1 or 0")
        check_numbers(self, _LEAST)
        if self.batch_size > self.max_request_size:
            raise ValueError(f"batch_size is {self.batch_size}, above max_request_size = {self.max_request_size}")
        names = [codec.name.lower() for codec in Codec if codec]
        if self.compression_type not in (None, "none", *names):
            raise ValueError(f"compression_type is {self.compression_type!r}; it must be None or one of {names}")
        if self.compression_level is not None:
            check_number("compression_level", self.compression_level)
        try:
            compress(self.codec, b"", self.compression_level)
        except EncodeError as error:
            raise ValueError(f"compression_level is {self.compression_level}: {error}") from None
        if self.enable_idempotence is not None:
            check_flag("enable_idempotence", self.enable_idempotence)
        if self.enable_idempotence and not self._allows_idempotence:
            raise ValueError(
                f"enable_idempotence needs acks='all' and at most {REMEMBERED} requests in flight; acks is "
                f"{self.acks!r}, max_in_flight_requests_per_connection is {self.max_in_flight_requests_per_connection}"
            )
        if self.enable_idempotence is None and self.required_acks == -1 and not self._allows_idempotence:
            log.warning(
                "max_in_flight_requests_per_connection is %d: above %d records may be stored twice or out of order if "
                "they are sent again; say enable_idempotence=False if that is meant",
                self.max_in_flight_requests_per_connection,
                REMEMBERED,
            )

    @property
    def codec(self) -> Codec:
        """How batches are compressed."""
        return Codec[(self.compression_type or "none").upper()]

    @property
    def required_acks(self) -> int:
        """`acks` as it is on the wire."""
        return ACKS[self.acks]

    @property
    def idempotent(self) -> bool:
        """Whether to number batches: unless told otherwise, wherever the other options let it."""
        return self._allows_idempotence if self.enable_idempotence is None else self.enable_idempotence

    @property
    def _allows_idempotence(self) -> bool:
        return self.required_acks == -1 and self.max_in_flight_requests_per_connection <= REMEMBERED


_LEAST: dict[str, float] = {
    "linger_ms": 0.0,
    "batch_size": 1,
    "max_request_size": 1,
    "buffer_memory": 1,
    "max_block_ms": 0,
    "delivery_timeout_ms": 1,
    "max_in_flight_requests_per_connection": 1,
}
