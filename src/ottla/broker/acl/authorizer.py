"""Decides who may do what, by rules, super users and what holds where there is no rule.

Decisions are remembered until the rules change, so that a busy client costs a look-up for each topic of a request.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from ottla.broker.acl.matching import IN_NO_NAME, Rules
from ottla.cluster.acl import ACLOperation, Acls, ResourceType
from ottla.config.broker import BrokerConfig
from ottla.wire.errors import ErrorCode, KafkaError

MOST_DECISIONS = 20_000
"""Remembered at a time, whatever clients ask for."""

LONGEST_REMEMBERED = 300
"""Characters of a name. No topic has more; of other things there is no end to what a client may name."""

REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}

log = logging.getLogger("ottla.authorizer")


class Client(Protocol):
    """Whoever wants to do something."""

    @property
    def host(self) -> str:
        """The address that he calls from."""
        ...

    @property
    def principal(self) -> str:
        """Who he is, as rules name him."""
        ...

    @property
    def identity(self) -> Mapping[str, str | None]:
        """Who he is, as structured logs have it."""
        ...


class Somebody(NamedTuple):
    """Somebody who wanted to do something, and may not be connected any more."""

    host: str
    principal: str

    @property
    def identity(self) -> Mapping[str, str | None]:
        """Who he is, as structured logs have it."""
        return {"address": self.host, "principal": self.principal, "client_id": None}


_Question = tuple[str, str, ACLOperation, ResourceType, str]


class _Known(NamedTuple):
    """The rules, and what follows from them as far as anybody asked; replaced as one when the rules change."""

    rules: Rules
    decisions: dict[_Question, bool]
    told: set[_Question]
    """Refusals that are in the log already."""


class Authorizer:
    """Allows and refuses. Threads other than the event loop's may ask too.

    >>> authorizer = Authorizer({}, super_users=["User:root"])
    >>> root, alice = (Somebody("10.0.0.1", f"User:{name}") for name in ("root", "alice"))
    >>> authorizer.allows(root, ACLOperation.READ, ResourceType.TOPIC, "orders")
    True
    >>> authorizer.check(alice, ACLOperation.READ, ResourceType.TOPIC, "orders")
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: TOPIC_AUTHORIZATION_FAILED: User:alice may not READ topic 'orders' from 10.0.0.1
    """

    def __init__(self, acls: Acls, *, super_users: Iterable[str] = (), allow_if_no_rule: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_rule = allow_if_no_rule
        self.take(acls)

    @classmethod
    def of(cls, config: BrokerConfig, acls: Acls) -> "Authorizer | None":
        """What a broker's settings ask for; None where everybody may do everything."""
        if not config.authorizer_class_name:
            if config.super_users or acls:
                log.warning(
                    "%s, but authorizer.class.name is not set: everybody who gets in may do everything; "
                    "set authorizer.class.name = ottla to have rules of access decide",
                    "super.users is set" if config.super_users else "there are rules of access",
                )
            return None
        super_users, allow_if_no_rule = config.super_user_principals(), config.allow_everyone_if_no_acl_found
        if not (acls or super_users or allow_if_no_rule):
            log.warning(
                "there are neither rules of access nor super users: nobody may do anything, and nobody make the first "
                "rule; set super.users = User:NAME"
            )
        return cls(acls, super_users=super_users, allow_if_no_rule=allow_if_no_rule)

    def take(self, acls: Acls) -> None:
        """Decide by these rules from now on."""
        self._known = _Known(Rules(acls), {}, set())

    def allows(self, who: Client, operation: ACLOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether somebody may do something to a resource."""
        known = self._known
        question = (who.principal, who.host, operation, resource_type, name)
        decision = known.decisions.get(question)
        if decision is None:
            decision = self._decide(known.rules, question)
            if len(name) <= LONGEST_REMEMBERED:
                _remember(known, question, decision)
        return decision

    def _decide(self, rules: Rules, question: _Question) -> bool:
        if question[0] in self._super_users:
            return True
        decision = rules.decide(*question)
        return self._allow_if_no_rule if decision is None else decision

    def allows_some(self, who: Client, operation: ACLOperation, resource_type: ResourceType) -> bool:
        """Whether there could be a resource of a type to which somebody may do something."""
        known = self._known
        # No resource has an empty name, so that the answer can be remembered under it.
        question = (who.principal, who.host, operation, resource_type, "")
        decision = known.decisions.get(question)
        if decision is None:
            decision = self._decide(known.rules, (*question[:4], IN_NO_NAME)) or known.rules.decide_some(*question[:4])
            _remember(known, question, decision)
        return decision

    def check(self, who: Client, operation: ACLOperation, resource_type: ResourceType, name: str) -> None:
        """The KafkaError of that type of resource if somebody may not do something; each kind of it is logged once."""
        if not self.allows(who, operation, resource_type, name):
            raise self.refusal(who, operation, resource_type, name)

    def refusal(self, who: Client, operation: ACLOperation, resource_type: ResourceType, name: str) -> KafkaError:
        """The error for somebody who may not do something."""
        kind = resource_type.name.replace("_", " ").lower()
        shown = name if len(name) <= LONGEST_REMEMBERED else name[:LONGEST_REMEMBERED] + "..."
        message = f"{printable(who.principal)} may not {operation.name} {kind} {shown!r} from {who.host}"
        told = self._known.told
        question = (who.principal, who.host, operation, resource_type, shown)
        if question not in told:
            if len(told) >= MOST_DECISIONS:
                told.clear()
            told.add(question)
            log.info("%s; this is told once until rules of access change", message, extra=who.identity)
        return KafkaError(REFUSALS[resource_type], message)


def printable(principal: str) -> str:
    """A principal as logs show it: one with line breaks in its name would make lines of its own.

    >>> printable("User:alice"), printable("User:a\\nb")
    ('User:alice', "'User:a\\\\nb'")
    """
    return principal if principal.isprintable() else repr(principal)


def _remember(known: _Known, question: _Question, decision: bool) -> None:
    if len(known.decisions) >= MOST_DECISIONS:
        known.decisions.clear()
    known.decisions[question] = decision
