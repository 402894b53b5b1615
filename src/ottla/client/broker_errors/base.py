"""What all errors of brokers have in common."""

from typing import ClassVar

from ottla.wire.errors import ErrorCode, KafkaError


class BrokerError(KafkaError):
    """A broker answered with an error code; the subclasses are the codes.

    >>> from ottla.errors import UnknownTopicOrPartitionError
    >>> try:
    ...     raise UnknownTopicOrPartitionError("topic 'orders'")
    ... except BrokerError as error:
    ...     print(error.errno, error.retriable, error.advice, sep=", ")
    3, True, create the topic first, or check its name
    """

    code_of_class: ClassVar[ErrorCode]
    advice: str = ""
    """What to do; of the class, unless something else fits better."""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(self.code_of_class, message)
        if advice is not None:
            self.advice = advice

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message.rstrip('.')}; {self.advice}"
