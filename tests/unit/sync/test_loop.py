import asyncio
import signal
import sys
import threading

import pytest

from ottla.errors import ClientClosedError, IllegalStateError
from ottla.sync.loop import Background, background


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_all_clients_of_a_process_share_one_loop() -> None:
    assert background() is background()
    assert background().call(double, 4) == 8


def test_an_exception_comes_back_to_the_caller() -> None:
    async def fail() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        background().call(fail)


def test_it_works_in_a_thread_that_has_a_running_loop_of_its_own_as_notebooks_do() -> None:
    async def cell() -> int:
        return background().call(double, 21)

    assert asyncio.run(cell()) == 42


def test_a_plain_function_runs_on_the_thread_of_the_loop() -> None:
    assert background().ask(threading.get_ident) != threading.get_ident()


def test_a_callback_that_would_wait_for_itself_is_told_so() -> None:
    with pytest.raises(IllegalStateError, match="would wait for itself"):
        background().ask(lambda: background().call(double, 1))


def test_an_interrupt_cancels_the_call_and_is_raised() -> None:
    was_cancelled = threading.Event()

    async def wait_for_ever() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            was_cancelled.set()
            raise

    # Whoever runs the tests may have a handler of his own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            background().call(wait_for_ever)
    finally:
        signal.signal(signal.SIGINT, before)
    assert was_cancelled.is_set()


def test_closing_stops_the_clients_that_were_left_open_and_ends_the_thread() -> None:
    own = Background()
    stopped: list[str] = []

    async def stop_well() -> None:
        stopped.append("well")

    async def stop_badly() -> None:
        stopped.append("badly")
        raise ClientClosedError("it broke")

    own.remember("a", stop_well)
    own.remember("b", stop_badly)
    own.remember("c", stop_well)
    own.forget("c")
    own.close()
    assert sorted(stopped) == ["badly", "well"]
    assert not own.is_alive
    with pytest.raises(ClientClosedError, match="forked"):
        own.call(double, 1)
    own.close()


def test_it_runs_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    own = Background()
    assert isinstance(own.loop, asyncio.BaseEventLoop)
    assert own.call(double, 4) == 8
    own.close()


def test_what_still_runs_when_the_loop_is_closed_is_cancelled() -> None:
    own = Background()
    ends: list[str] = []

    async def leave_something_running() -> None:
        async def last() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ends.append("cancelled")

        own.left = asyncio.ensure_future(last())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    own.call(leave_something_running)
    own.close()
    assert ends == ["cancelled"]
