"""From the options of `ottla acl`, which are those of kafka-acls.sh, to rules and filters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Literal

import typer

from ottla.client.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.cluster.acl import CLUSTER_NAME, WILDCARD
from ottla.wire.errors import KafkaError

PatternType = Literal["literal", "prefixed", "match", "any"]

_OF_TOPIC = "ALL READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"
_OF_CLUSTER = "ALL CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE"
_SENSIBLE = {
    ResourceType.TOPIC: _OF_TOPIC,
    ResourceType.GROUP: "ALL READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceType.CLUSTER: _OF_CLUSTER,
    ResourceType.TRANSACTIONAL_ID: "ALL WRITE DESCRIBE TWO_PHASE_COMMIT",
    ResourceType.DELEGATION_TOKEN: "ALL DESCRIBE",
    ResourceType.USER: "ALL CREATE_TOKENS DESCRIBE_TOKENS",
}
"""What is ever asked of resources of a type; rules about anything else have no effect."""


Names = list[str] | None


@dataclass(frozen=True)
class Resources:
    """Options that say which resources a command is about."""

    topic: Annotated[Names, typer.Option("--topic", metavar="NAME", help="A topic, or '*' for all; repeatable.")] = None
    group: Annotated[Names, typer.Option("--group", metavar="ID", help="A group, or '*' for all; repeatable.")] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster.")] = False
    transactional_id: Annotated[
        Names, typer.Option("--transactional-id", metavar="ID", help="A transactional id; repeatable.")
    ] = None
    delegation_token: Annotated[
        Names, typer.Option("--delegation-token", metavar="ID", help="A delegation token; repeatable.")
    ] = None
    user_principal: Annotated[
        Names, typer.Option("--user-principal", metavar="USER", help="A user as a resource; repeatable.")
    ] = None
    pattern_type: Annotated[
        PatternType,
        typer.Option(
            "--resource-pattern-type",
            help="`prefixed`: all whose names begin so. To choose among rules also `match` (all that concern the "
            "resource) and `any`.",
        ),
    ] = "literal"

    def named(self) -> list[tuple[ResourceType, str]]:
        """Types and names."""
        by_type = {
            ResourceType.TOPIC: self.topic,
            ResourceType.GROUP: self.group,
            ResourceType.CLUSTER: [CLUSTER_NAME] if self.cluster else [],
            ResourceType.TRANSACTIONAL_ID: self.transactional_id,
            ResourceType.DELEGATION_TOKEN: self.delegation_token,
            ResourceType.USER: self.user_principal,
        }
        return [(kind, name) for kind, names in by_type.items() for name in names or ()]

    def patterns(self) -> list[ResourcePattern]:
        """The same as rules have them."""
        if self.pattern_type not in ("literal", "prefixed"):
            message = f"{self.pattern_type!r} chooses among rules; a rule itself is literal or prefixed"
            raise typer.BadParameter(message, param_hint="--resource-pattern-type")
        for name in self.topic or ():
            _check_topic(name, self.pattern_type)
        return [ResourcePattern(kind, name, self._pattern_of(kind)) for kind, name in self.named()]

    def filters(self) -> list[ResourcePatternFilter]:
        """The same as filters have them; one for everything if nothing is named."""
        found = [ResourcePatternFilter(kind, name, self._pattern_of(kind)) for kind, name in self.named()]
        return found or [ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)]

    def _pattern_of(self, kind: ResourceType) -> ACLResourcePatternType:
        # A cluster has one name, of which nothing is a prefix.
        is_whole = kind is ResourceType.CLUSTER and self.pattern_type == "prefixed"
        return ACLResourcePatternType["LITERAL" if is_whole else self.pattern_type.upper()]


@dataclass(frozen=True)
class People:
    """Options that say who may and who may not, and from where."""

    allow_principal: Annotated[
        Names,
        typer.Option("--allow-principal", metavar="User:NAME", help="Who may; 'User:*' is everybody; repeatable."),
    ] = None
    deny_principal: Annotated[
        Names,
        typer.Option("--deny-principal", metavar="User:NAME", help="Who may not, whatever is allowed; repeatable."),
    ] = None
    allow_host: Annotated[
        Names, typer.Option("--allow-host", metavar="IP", help="From where; any if not given; repeatable.")
    ] = None
    deny_host: Annotated[
        Names, typer.Option("--deny-host", metavar="IP", help="From where not; any if not given; repeatable.")
    ] = None

    def each(self) -> Iterator[tuple[str, str, ACLPermissionType]]:
        """Principal, host and permission of each rule that follows."""
        for permission, principals, hosts in (
            (ACLPermissionType.ALLOW, self.allow_principal, self.allow_host),
            (ACLPermissionType.DENY, self.deny_principal, self.deny_host),
        ):
            if hosts and not principals:
                word = permission.name.lower()
                raise typer.BadParameter(f"of whom? give --{word}-principal too", param_hint=f"--{word}-host")
            for principal in principals or ():
                for host in hosts or [WILDCARD]:
                    yield principal, host, permission


@dataclass(frozen=True)
class Roles:
    """Options that say in one word what producers and consumers need."""

    producer: Annotated[bool, typer.Option("--producer", help="All that a producer for --topic needs.")] = False
    consumer: Annotated[bool, typer.Option("--consumer", help="All that a consumer of --topic in --group needs.")] = (
        False
    )
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="With --producer: idempotent writes, which brokers before 2.8 ask for.")
    ] = False

    def operations(self, resources: Resources) -> dict[ResourceType, set[ACLOperation]]:
        """Operations by the type of resource."""
        found: dict[ResourceType, set[ACLOperation]] = {}

        def add(kind: ResourceType, *operations: ACLOperation) -> None:
            found.setdefault(kind, set()).update(operations)

        if self.idempotent and not self.producer:
            raise typer.BadParameter("it goes with --producer; give that too", param_hint="--idempotent")
        if self.producer:
            if not resources.topic:
                raise typer.BadParameter("a producer writes to topics; give --topic", param_hint="--producer")
            add(ResourceType.TOPIC, ACLOperation.WRITE, ACLOperation.DESCRIBE, ACLOperation.CREATE)
            add(ResourceType.TRANSACTIONAL_ID, ACLOperation.WRITE, ACLOperation.DESCRIBE)
            if self.idempotent:
                add(ResourceType.CLUSTER, ACLOperation.IDEMPOTENT_WRITE)
        if self.consumer:
            if not resources.topic or not resources.group:
                message = "a consumer reads topics in a group; give --topic and --group"
                raise typer.BadParameter(message, param_hint="--consumer")
            add(ResourceType.TOPIC, ACLOperation.READ, ACLOperation.DESCRIBE)
            add(ResourceType.GROUP, ACLOperation.READ)
        return found


def rules_of(resources: Resources, people: People, operations: Sequence[str], roles: Roles) -> list[ACL]:
    """All rules that a command line stands for."""
    by_role = roles.operations(resources)
    if by_role and operations:
        raise typer.BadParameter("--producer and --consumer say what may be done", param_hint="--operation")
    patterns = resources.patterns()
    if ResourceType.CLUSTER in by_role and not resources.cluster:
        patterns.append(ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME))
    if not patterns:
        raise typer.BadParameter("about what? give --topic, --group, --cluster, --transactional-id or another resource")
    persons = list(people.each())
    for _, host, permission in persons:
        _check_host(host, f"--{permission.name.lower()}-host")
    if not persons:
        raise typer.BadParameter("who? give --allow-principal or --deny-principal, as in --allow-principal User:alice")
    rules = [
        ACL(principal, host, operation, permission, pattern)
        for pattern in patterns
        for operation in _operations(pattern.resource_type, operations, by_role)
        for principal, host, permission in persons
    ]
    for rule in rules:
        try:
            rule.check()
        except KafkaError as error:
            raise typer.BadParameter(error.message) from None
    return rules


def _check_topic(name: str, pattern_type: str) -> None:
    """Refuse what fits no topic, since none has a star in its name, and what looks as if it allowed or denied much."""
    if WILDCARD not in name or (name, pattern_type) == (WILDCARD, "literal"):
        return
    beginning = name.partition(WILDCARD)[0]
    message = f"no topic has a star in its name, and {name!r} stands for none; "
    if beginning:
        message += f"for all that begin with {beginning!r} write --topic {beginning} --resource-pattern-type prefixed"
    else:
        message += "for all topics write --topic '*' --resource-pattern-type literal"
    raise typer.BadParameter(message, param_hint="--topic")


def _check_host(host: str, option: str) -> None:
    """Refuse what no client comes from: names are not looked up, and networks are not known."""
    try:
        if host != WILDCARD:
            ip_address(host)
    except ValueError:
        message = f"{host!r} is no address; give one as the broker sees it, such as 10.0.0.7, or leave it out for any"
        raise typer.BadParameter(message, param_hint=option) from None


def filters_of(
    resources: Resources, people: People, operations: Sequence[str], roles: Roles, *, principals: Sequence[str] = ()
) -> list[ACLFilter]:
    """Filters for the rules that a command line stands for; what it leaves open is any."""
    by_role = roles.operations(resources)
    persons: list[tuple[str | None, str | None, ACLPermissionType]] = [*people.each()]
    persons += [(principal, None, ACLPermissionType.ANY) for principal in principals]
    for principal, _, _ in persons:
        # There is no rule of such a principal, and nobody would notice.
        if principal is not None and ":" not in principal:
            raise typer.BadParameter(f"principal {principal!r}: write it with its kind, as in User:{principal}")
    return [
        ACLFilter(principal, host, operation, permission, pattern)
        for pattern in resources.filters()
        for operation in _operations(pattern.resource_type, operations or ["ANY"], by_role)
        for principal, host, permission in persons or [(None, None, ACLPermissionType.ANY)]
    ]


def _operations(
    kind: ResourceType, given: Sequence[str], by_role: dict[ResourceType, set[ACLOperation]]
) -> list[ACLOperation]:
    if by_role:
        return sorted(by_role.get(kind, ()))
    return [_operation(kind, word) for word in given or ["ALL"]]


def _operation(kind: ResourceType, word: str) -> ACLOperation:
    """`Read`, `read`, `ALTER_CONFIGS`, `AlterConfigs` and `alter-configs` are all understood."""
    wanted = word.replace("_", "").replace("-", "").lower()
    found = next((one for one in ACLOperation if one.name.replace("_", "").lower() == wanted), None)
    sensible = _SENSIBLE.get(kind, "").split()
    if found is None or (sensible and found is not ACLOperation.ANY and found.name not in sensible):
        offered = ", ".join(sensible or [one.name for one in ACLOperation][2:])
        of_what = f" of a {kind.name.lower().replace('_', ' ')}" if sensible else ""
        raise typer.BadParameter(f"{word!r} is no operation{of_what}; those are {offered}", param_hint="--operation")
    return found
