"""There are no tests in here, and where Spark is not installed nothing of it can be imported."""

collect_ignore_glob = ["*.py"]
