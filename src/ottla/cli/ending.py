"""How commands end. Exit codes: 0 fine, 1 failed with a message on stderr, 2 a mistake in the command line, 130
interrupted."""

from typing import NoReturn

import typer

FAILED, INTERRUPTED = 1, 130


def fail(message: str) -> NoReturn:
    """Say on stderr what went wrong and leave with code 1."""
    complain(message)
    raise typer.Exit(FAILED)


def complain(message: str) -> None:
    """Say on stderr what went wrong, and go on."""
    typer.echo(f"error: {message}", err=True)
