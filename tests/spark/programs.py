"""Programs that have a Spark of their own."""

import subprocess
import sys

from tests.spark_crash.cluster import PROJECT, environment

PATIENCE_SECONDS = 600


def run(*words: str) -> str:
    """What a module, called with arguments, prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=PROJECT,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
