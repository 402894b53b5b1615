"""The `ottla` command and its subcommands."""

from typing import Annotated

import typer

from ottla import __version__

app = typer.Typer(
    name="ottla",
    help="A Kafka-compatible event streaming platform in Python.",
    no_args_is_help=True,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ottla {__version__}")
        raise typer.Exit


@app.callback()
def ottla(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, help="Print the version.")] = False,
) -> None:
    """A Kafka-compatible event streaming platform in Python."""


@app.command()
def demo(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per field, for programs.")] = False,
) -> None:
    """Encode a produce request in each record format, explain it field by field, and decode it."""
    from ottla.cli.demo import show

    show(as_json=json)
