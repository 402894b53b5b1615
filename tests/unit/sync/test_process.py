"""What concerns a whole process is tried in one of its own: how it ends, and how it is forked."""

import subprocess
import sys
from textwrap import dedent

import pytest

from ottla.sync import read_table


def run(script: str, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-W", "always", "-c", dedent(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    # Python 3.12 and later warn of any fork in a process with threads.
    noise = [line for line in done.stderr.splitlines() if "multi-threaded" not in line and "os.fork()" not in line]
    assert noise == []
    return done.stdout


def values_of(servers: str, topic: str) -> list[bytes]:
    found: list[bytes] = read_table(topic, bootstrap_servers=servers, columns=["value"])["value"].to_pylist()
    return found


def test_a_program_that_ends_without_stopping_its_clients_loses_nothing_and_says_nothing(
    servers: str, topic: str
) -> None:
    script = """
        import sys
        from ottla.sync import Admin, Consumer, Producer

        _, servers, topic = sys.argv
        admin = Admin(servers).start()
        consumer = Consumer(topic, bootstrap_servers=servers, group_id="readers").start()
        producer = Producer(bootstrap_servers=servers, linger_ms=60_000).start()
        for number in range(100):
            producer.send(topic, b"%d" % number)
    """
    run(script, servers, topic)
    assert values_of(servers, topic) == [b"%d" % number for number in range(100)]


def test_a_program_that_ends_by_an_exception_ends_its_clients_too(servers: str, topic: str) -> None:
    script = """
        import sys
        from ottla.sync import Consumer

        _, servers, topic = sys.argv
        consumer = Consumer(topic, bootstrap_servers=servers, group_id="readers").start()
        sys.exit(3)
    """
    run(script, servers, topic, code=3)


def test_a_program_whose_clients_are_stopped_leaves_no_thread_running(servers: str, topic: str) -> None:
    script = """
        import atexit, sys, threading

        # Functions that are registered first are called last.
        atexit.register(lambda: print([thread.name for thread in threading.enumerate()]))
        from ottla.sync import Producer

        _, servers, topic = sys.argv
        with Producer(bootstrap_servers=servers) as producer:
            producer.send(topic, b"")
    """
    assert run(script, servers, topic) == "['MainThread']\n"


FORK = """
    import os, sys
    from ottla.errors import ClientClosedError
    from ottla.sync import Producer

    _, servers, topic, end = sys.argv

    def child(inherited):
        for call in (lambda: inherited.send(topic, b"not mine").get(), lambda: inherited.partitions_for(topic)):
            try:
                call()
            except ClientClosedError as error:
                assert "forked" in str(error), error
            else:
                raise AssertionError("a child must not use what is its parent's")
        inherited.stop()
        with Producer(bootstrap_servers=servers) as own:
            own.send_and_wait(topic, b"child")

    with Producer(bootstrap_servers=servers) as producer:
        producer.send_and_wait(topic, b"parent")
        pid = os.fork()
        if not pid:
            child(producer)
            del producer
            sys.stdout.flush()
            os._exit(0) if end == "at once" else sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        producer.send_and_wait(topic, b"parent again")
"""


@pytest.mark.parametrize("end", ["at once", "tidily"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_process_that_was_forked_gets_a_loop_of_its_own_and_leaves_its_parents_alone(
    servers: str, topic: str, end: str
) -> None:
    topic = topic.replace(" ", "-")
    run(FORK, servers, topic, end)
    assert values_of(servers, topic) == [b"parent", b"child", b"parent again"]
