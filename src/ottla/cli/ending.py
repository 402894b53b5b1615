"""How commands end. Exit codes: 0 fine, 1 failed with a message on stderr, 2 a mistake in the command line, 130
interrupted."""

import sys
from typing import NoReturn

FAILED, INTERRUPTED = 1, 130


def fail(message: str) -> NoReturn:
    """Say on stderr what went wrong and leave with code 1."""
    import typer

    complain(message)
    raise typer.Exit(FAILED)


def complain(message: str) -> None:
    """Say on stderr what went wrong, and go on."""
    sys.stderr.write(f"error: {message}\n")
