"""The commands that talk to a cluster, put together."""

import typer

from ottla.cli import config, group, pipeline, topic
from ottla.cli.consume import consume
from ottla.cli.produce import produce


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(topic.app, name="topic")
    app.add_typer(group.app, name="group")
    app.add_typer(config.app, name="config")
    app.add_typer(pipeline.app, name="pipeline")
    app.command("produce")(produce)
    app.command("consume")(consume)
