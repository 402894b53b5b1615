"""Subscriptions by regular expression. RE2 takes time in proportion to the text, whatever the expression."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.cluster.names import is_internal
from ottla.wire.errors import ErrorCode, KafkaError

LONGEST_EXPRESSION = 10_000
LARGEST_PROGRAM = 1_000
"""Steps of a compiled expression, about one for each letter and class in it, repetitions written out."""
_MOST_MEMORY_BYTES = 8 << 20


class TopicPattern:
    """A regular expression in RE2's syntax, and the topics that match it as a whole.

    >>> TopicPattern("orders-.*").topics({"orders-eu": 1, "old-orders-eu": 2, "__consumer_offsets": 3})
    frozenset({'orders-eu'})
    >>> TopicPattern("orders-(").topics({})
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: INVALID_REGULAR_EXPRESSION: 'orders-(' is no regular expression: missing ): orders-(
    """

    def __init__(self, expression: str, may_see: Callable[[str], bool] | None = None) -> None:
        self.may_see = may_see
        """Whether those who subscribed by it may know of a topic; None where everybody may know of all."""
        self._matches = _compiled(expression)
        self._found: frozenset[str] = frozenset()
        # The picture of the cluster that was searched last. The next one shares nearly all of it, so only what is new
        # in it is looked at.
        self._seen: Mapping[str, Any] = {}

    def topics(self, names: Mapping[str, Any]) -> frozenset[str]:
        """Those of the names that match and may be seen; never the broker's own topics."""
        if names is not self._seen:
            still = [name for name in self._found if name in names]
            new = [
                name
                for name in names.keys() - self._seen.keys()
                if not is_internal(name) and self._matches(name.encode()) is not None
            ]
            if new or len(still) < len(self._found):
                self._found = frozenset((*still, *new))
            self._seen = names
        return self._found if self.may_see is None else frozenset(filter(self.may_see, self._found))


def _compiled(expression: str) -> Any:
    # Here, for it takes memory that most brokers never need. There are machines for which nobody has built it; all else
    # works there.
    try:
        import re2  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        message = "this broker takes no regular expressions: google-re2 is not installed there; subscribe to names"
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
    if len(expression) > LONGEST_EXPRESSION:
        raise _invalid(expression, f"{len(expression)} characters are more than {LONGEST_EXPRESSION}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY_BYTES
    options.never_capture = True
    # Topic names are ASCII; a class of letters is one step then, not one for each length of a letter in UTF-8.
    options.encoding = re2.Options.Encoding.LATIN1
    try:
        compiled = re2.compile(expression.encode(), options)
    except re2.error as error:
        reason = error.args[0]
        raise _invalid(expression, reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from None
    if compiled.programsize > LARGEST_PROGRAM:
        raise _invalid(expression, f"it takes {compiled.programsize} steps, more than {LARGEST_PROGRAM}")
    return compiled.fullmatch


def _invalid(expression: str, reason: str) -> KafkaError:
    shown = expression if len(expression) <= 100 else expression[:100] + "..."
    message = f"{shown!r} is no regular expression: {reason[:200]}"
    return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
