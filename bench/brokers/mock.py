"""librdkafka's mock cluster in a process of its own: `python -m bench.brokers.mock FILE` writes its port to a file."""

import signal
import sys
from pathlib import Path

from confluent_kafka import Producer


def main() -> None:
    """Run until a signal comes."""
    client = Producer({"test.mock.num.brokers": 1})
    (broker,) = client.list_topics(timeout=30).brokers.values()
    # Whoever waits for the file finds it whole.
    target = Path(sys.argv[1])
    partial = target.with_suffix(".partial")
    partial.write_text(str(broker.port))
    partial.rename(target)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
