"""The `ottla` command and its subcommands."""

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup
from typer.main import get_group

from ottla import __version__


class _Commands(TyperGroup):
    """The commands here, and those that talk to a cluster: these bring the whole client along, for which a broker
    should not wait."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All of them."""
        return [*super().list_commands(ctx), *_of_clusters().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One by its name."""
        return super().get_command(ctx, cmd_name) or _of_clusters().get_command(ctx, cmd_name)


@cache
def _of_clusters() -> Any:
    from ottla.cli.commands import register

    others = typer.Typer()
    register(others)
    return get_group(others)


app = typer.Typer(
    name="ottla",
    cls=_Commands,
    help="A Kafka-compatible event streaming platform in Python.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, for programs.")] = False,
    records: Annotated[int, typer.Option(min=1, help="How many orders to send through a broker.")] = 1_000_000,
) -> None:
    """Explain the record formats, send a million orders through a broker and back, and run Spark over them."""
    from ottla.cli.demo import show

    show(as_json=json, records=records)


@app.command()
def serve(
    config: Annotated[
        Path | None, typer.Argument(help="Settings: TOML, or Kafka's server.properties.", exists=True, dir_okay=False)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting by Kafka's name; repeatable.")
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME://]HOST:PORT",
            help="Where to listen; repeatable. Port 0 finds a free one. SSL://, SASL_SSL:// and SASL_PLAINTEXT:// are "
            "secure, plain addresses are PLAINTEXT://.",
        ),
    ] = None,
    advertise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME://]HOST:PORT", help="What clients are told to connect to; repeatable, one for each listener."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where everything is kept.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where to answer /metrics for Prometheus, and /ready and /live."),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="How logs are written to stderr: for people, or for programs.")
    ] = "text",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="What is worth a line in the logs.")
    ] = "info",
) -> None:
    """Run a broker until SIGINT or SIGTERM; prints one line when it is ready."""
    from ottla.cli.serve import run

    run(
        *(config, settings or [], listen or [], advertise or [], data),
        metrics=metrics,
        log_format=log_format,
        log_level=log_level,
    )
