"""A member of a classic group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.wire.embedded import decode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.embedded.offsets_topic import MemberMetadata
from ottla.wire.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Member:
    """Who it is, how long it may be silent, what it can do and what it was given.

    >>> member = Member("m-1", None, "m", "/10.0.0.1", 10_000, 60_000, {"range": b"r", "sticky": b"s"})
    >>> member.metadata("sticky"), member.is_static
    (b's', False)
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Mapping[str, bytes] = field(default_factory=dict)
    """What it can do, the most preferred first, with what it says about itself to the leader in each case.

    At most one is written down, so after loading this may be less than the member said, or nothing: not known.
    """
    subscription: bytes = b""
    """What was written down of the above: the metadata under the protocol that the group agreed on."""
    assignment: bytes = b""
    # What `topics` has found, which is asked about every topic of the group, over and over.
    _topics: list[frozenset[str] | None] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def is_static(self) -> bool:
        """Whether it has a name of its own that outlives the member id."""
        return self.instance_id is not None

    def metadata(self, protocol: str | None) -> bytes:
        """What the leader is told about it under that protocol."""
        return self.protocols.get(protocol, self.subscription) if protocol is not None else self.subscription

    def says(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether these are its protocols: the same, in the same order, with the same metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def topics(self) -> frozenset[str] | None:
        """What a consumer is subscribed to, or None if that cannot be read."""
        if not self._topics:
            self._topics.append(self._read_topics())
        return self._topics[0]

    def _read_topics(self) -> frozenset[str] | None:
        try:
            return frozenset(
                topic
                for metadata in self.protocols.values() or (self.subscription,)
                for topic in decode_versioned(ConsumerProtocolSubscription, metadata, from_the_future=True).topics
            )
        except ProtocolError:
            return None

    def written(self, protocol: str, assignment: bytes) -> MemberMetadata:
        """The member as it is written down under the protocol that the group agreed on."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    @classmethod
    def read(cls, written: MemberMetadata, protocol: str | None, before: "Member | None") -> "Member":
        """A member as it was written down.

        What it said besides is kept from `before` where that agrees with what is written: it does in normal running,
        and does not where `before` is from an older record of a log that is being loaded.
        """
        said = before.protocols if before is not None else {}
        if protocol is None:
            protocols = said if written.subscription in said.values() else {}
        else:
            protocols = said if said.get(protocol) == written.subscription else {protocol: written.subscription}
        return cls(
            member_id=written.member_id,
            instance_id=written.group_instance_id,
            client_id=written.client_id,
            client_host=written.client_host,
            session_timeout_ms=written.session_timeout,
            # Version 0 of the record has none; its members had no other timeout than the session's.
            rebalance_timeout_ms=written.rebalance_timeout
            if written.rebalance_timeout >= 0
            else written.session_timeout,
            protocols=protocols,
            subscription=written.subscription,
            assignment=written.assignment,
        )
