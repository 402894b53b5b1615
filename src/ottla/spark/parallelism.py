"""How many tasks can run at once."""

import os


def cores() -> int:
    """The cores of the machine where queries are planned: Spark does not tell a source how many it has itself.

    >>> cores() > 0
    True
    """
    return os.cpu_count() or 1
