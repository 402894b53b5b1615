"""What the synchronous clients have in common."""

import inspect
import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ottla.client.errors import ClientClosedError
from ottla.sync.loop import Background, background
from ottla.wire.errors import KafkaError

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


class Face(ABC):
    """The synchronous face of a client, which lives on the event loop."""

    _background: Background | None = None
    """Where it runs, while it runs."""

    def start(self) -> Self:
        """Connect. `with` does it. Raises if no broker can be reached.

        >>> admin = Admin(broker.bootstrap_servers).start()
        >>> admin.list_topics()
        []
        >>> admin.stop()
        """
        if self._background is None:
            found = background()
            found.call(self._start_client, found)
            found.remember(self, partial(self._stop_client, is_finished=False))
            self._background = found
        return self

    def stop(self) -> None:
        """Finish what is under way, and disconnect. `with` does it.

        >>> producer.stop()
        >>> producer.send("orders", b"two apples")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.ClientClosedError: the producer does not run; use it in `with ...
        """
        self._leave(is_finished=sys.exc_info()[1] is None)

    def _leave(self, *, is_finished: bool) -> None:
        found = self._background
        if found is None:
            return
        # A child that was forked has nothing to stop: the connections are its parent's.
        try:
            if found.is_alive:
                found.forget(self)
                found.call(self._stop_client, is_finished=is_finished)
        finally:
            self._background = None

    def close(self) -> None:
        """The same as `stop`.

        >>> consumer.close()
        """
        self.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leave(is_finished=error is None)
        except KafkaError as failure:
            # What went wrong first is what the caller should see.
            if error is None:
                raise
            log.warning("a client did not end well: %s", failure)

    @abstractmethod
    async def _start_client(self, background: Background) -> None:
        """Start the client, on the event loop."""

    @abstractmethod
    async def _stop_client(self, *, is_finished: bool) -> None:
        """Stop it; `is_finished` unless the user was interrupted in what he did."""

    @property
    def _running(self) -> Background:
        if self._background is None:
            raise self._not_running()
        return self._background

    def _not_running(self) -> ClientClosedError:
        name = type(self).__name__
        return ClientClosedError(f"the {name.lower()} does not run; use it in `with {name}(...)`, or start() it")

    def _call(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._running.call(function, *args, **kwargs)

    def _ask(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._background is None:
            return function(*args, **kwargs)
        return self._background.ask(function, *args, **kwargs)


def takes_arguments_of(
    client: Callable[P, object],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Give an `__init__` the parameters of another class, for type checkers, editors and `help` alike."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        signature = inspect.signature(client)
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [itself, *signature.parameters.values()]
        setattr(init, "__signature__", signature.replace(parameters=parameters, return_annotation=None))  # noqa: B010
        return init

    return decorate
