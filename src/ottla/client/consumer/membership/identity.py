"""Who a member is in the eyes of its group, and what the kinds of membership have in common."""

from contextvars import ContextVar
from typing import NamedTuple, Protocol


class Identity(NamedTuple):
    """What a member says of itself in its requests. A consumer that is in no group's assignment says this:

    >>> Identity()
    Identity(member_id='', generation=-1, instance_id=None)
    """

    member_id: str = ""
    generation: int = -1
    """The generation of the group, or the epoch of the member with the protocol `consumer`."""
    instance_id: str | None = None

    @property
    def is_member(self) -> bool:
        """Whether the group has taken the member in."""
        return self.generation >= 0


class Membership(Protocol):
    """Being in a group, from joining to leaving. The partitions that it gives and takes go through `Handover`."""

    failure: BaseException | None
    """Why it has ended for good, if it has."""

    @property
    def identity(self) -> Identity:
        """Who the member is now."""
        ...

    def start(self) -> None:
        """Begin to join."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """The subscription has changed."""
        ...

    def doubt(self, identity: Identity, code: int) -> None:
        """The coordinator has refused something of the member that had this identity."""
        ...

    async def settled(self, since: Identity) -> None:
        """Wait until the member that had this identity is in its group again, perhaps under another one."""
        ...

    async def renewed(self, since: Identity) -> None:
        """Wait until the member knows its new identity, if it is about to get one. No handover is waited for."""
        ...

    async def close(self, *, reason: str, is_lost: bool = False) -> None:
        """Give the partitions back and leave. They are lost if the group may have given them away already."""
        ...


in_listener: ContextVar[bool] = ContextVar("in_listener", default=False)
"""Whether a listener of the user is running: a rebalance that waits for him must not be waited for by him."""
