"""The commands that talk to a cluster, put together."""

import typer

from ottla.cli import acl, config, group, pipeline, quota, topic, user
from ottla.cli.consume import consume
from ottla.cli.produce import produce
from ottla.cli.security import secure
from ottla.cli.top import top


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(topic.app, name="topic")
    app.add_typer(group.app, name="group")
    app.add_typer(config.app, name="config")
    app.add_typer(acl.app, name="acl")
    app.add_typer(user.app, name="user")
    app.add_typer(quota.app, name="quota")
    app.add_typer(pipeline.app, name="pipeline")
    app.command("produce")(produce)
    app.command("consume")(consume)
    app.command("top")(top)
    secure(app)
