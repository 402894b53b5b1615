"""Taking a record into the open batch of its partition: all that `send` does for most records."""

from typing import TYPE_CHECKING

from ottla.client.producer._taking_types import Headers, Untaken
from ottla.native import load_compiled

if TYPE_CHECKING or load_compiled("ottla.client.producer._taking") is None:
    from ottla.client.producer._taking_twin import Receipt, Taker
else:
    from ottla.client.producer._taking import Receipt, Taker

__all__ = ["Headers", "Receipt", "Taker", "Untaken"]
