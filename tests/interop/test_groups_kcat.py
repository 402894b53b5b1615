"""Groups of kcat, which is another librdkafka: two share a topic, and whoever comes later goes on from there."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ottla.testing import TestBroker

from .group_story import GROUP, PATIENCE_S, SETTINGS, TOPIC, write

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


class Kcat:
    """`kcat -G`, whose output goes to a file."""

    def __init__(self, broker: TestBroker, output: Path) -> None:
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [
                    *("kcat", "-b", broker.bootstrap_servers, "-u", "-q"),
                    *("-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=200"),
                    *("-X", "heartbeat.interval.ms=200", "-X", "session.timeout.ms=6000"),
                    *("-G", GROUP, TOPIC),
                ],
                stdout=file,
                stderr=subprocess.DEVNULL,
            )

    def seen(self) -> list[bytes]:
        """What it has read so far."""
        return self._output.read_bytes().split()

    def wait_for(self, wanted: set[bytes]) -> None:
        """Return when it has read all of this."""
        deadline = time.monotonic() + PATIENCE_S
        while not wanted <= set(self.seen()):
            assert time.monotonic() < deadline, len(self.seen())
            assert self._process.poll() is None, "kcat has ended"
            time.sleep(0.05)

    def stop(self) -> None:
        """Interrupt it: it commits and leaves the group."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)


def test_kcat_members_come_and_go_and_nothing_is_lost_or_read_twice(tmp_path: Path) -> None:
    with TestBroker(SETTINGS) as broker:
        first_values = write(broker, "first", 200)
        first = Kcat(broker, tmp_path / "first")
        first.wait_for(first_values)

        second = Kcat(broker, tmp_path / "second")
        rounds = 0
        shared: set[bytes] = set()
        while not second.seen():
            # Until the second has its share, the first reads what comes.
            assert rounds < 100
            rounds += 1
            shared |= write(broker, f"shared-{rounds}", 8)
            time.sleep(0.2)
        first.stop()
        last_values = write(broker, "last", 40)
        second.wait_for(last_values)
        second.stop()
        seen = first.seen() + second.seen()
        assert sorted(seen) == sorted(first_values | shared | last_values)

        broker.stop()
        broker.start()
        third = Kcat(broker, tmp_path / "third")
        third_values = write(broker, "third", 40)
        third.wait_for(third_values)
        third.stop()
        assert sorted(third.seen()) == sorted(third_values)
