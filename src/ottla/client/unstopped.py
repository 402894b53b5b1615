"""A warning about clients that are thrown away while they run."""

from warnings import warn


def warn_unstopped(client: object, consequence: str = "") -> None:
    """Tell that a client is thrown away before it was stopped. Python shows it with `-X dev`, and pytest always."""
    name = type(client).__name__
    warn(
        f"{name} was not stopped{consequence}: use `async with {name}(...)`, or await its stop()",
        ResourceWarning,
        source=client,
        stacklevel=3,
    )
