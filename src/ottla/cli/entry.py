"""Where the `ottla` command begins.

Typer declares all commands, explains them and says what is wrong with a command line. It takes a third of a broker's
start, though: `serve` with options that nothing has to be said about is read here, and anything else is left to it.
Tests hold both to the same outcome.
"""

import gc
import os
import sys
from pathlib import Path
from typing import Any

from ottla.cli.ending import INTERRUPTED

_REPEATABLE = {"--set": "overrides", "--listen": "listen", "--advertise": "advertise"}
_SINGLE = {"--data": "data", "--metrics": "metrics", "--log-format": "log_format", "--log-level": "log_level"}
_CHOICES = {"log_format": ("text", "json"), "log_level": ("debug", "info", "warning", "error")}


def read_serve(arguments: list[str]) -> dict[str, Any] | None:
    """What a broker is run with, by the names of parameters; None if Typer should look at the arguments.

    >>> read_serve(["serve", "--listen", "localhost:0", "--set=num.partitions=3"])
    {'listen': ['localhost:0'], 'overrides': ['num.partitions=3']}
    >>> read_serve(["serve", "--help"])
    """
    if arguments[:1] != ["serve"]:
        return None
    found: dict[str, Any] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        if argument.startswith("-"):
            option, has_value, value = argument.partition("=")
            if not has_value:
                value = next(rest, "")
            name = _REPEATABLE.get(option) or _SINGLE.get(option)
        else:
            name, option, value = "file", "", argument
        if name is None or not value or value.startswith("-"):
            return None
        if option in _REPEATABLE:
            found.setdefault(name, []).append(value)
        elif name in found or value not in _CHOICES.get(name, (value,)):
            return None
        else:
            found[name] = Path(value) if name in ("file", "data") else value
    file = found.get("file")
    if file is not None and not (file.is_file() and os.access(file, os.R_OK)):
        return None
    return found


def main() -> None:
    """Run the command that the arguments name."""
    call = read_serve(sys.argv[1:])
    if call is None:
        from ottla.cli.main import app

        app()
        return
    try:
        # What is made while modules load stays: there is no use in looking for garbage, now or later.
        gc.disable()
        from ottla.cli.serve import run

        gc.freeze()
        gc.enable()
        run(**call)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
