"""Quotas: how much users, clients and addresses may use."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from ottla.client.admin.part import AdminPart, Answers
from ottla.client.checks import shown
from ottla.client.errors import check, error_of
from ottla.cluster.quota import CLIENT_ID, IP, USER, QuotaEntity, quota_entity
from ottla.wire.api.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.api.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.errors import KafkaError

EXACT, DEFAULT = 0, 1


class QuotaDefault(Enum):
    """`QuotaDefault.DEFAULT` as a name: all that have no quota of their own.

    >>> ClientQuotaEntity(user=QuotaDefault.DEFAULT).parts
    (('user', None),)
    """

    DEFAULT = "default"


QuotaName = str | Literal[QuotaDefault.DEFAULT] | None


@dataclass(frozen=True, slots=True)
class ClientQuotaEntity:
    """Whom a quota is for: a user, a client id, both together, or an address.

    >>> ClientQuotaEntity(user="alice", client_id=QuotaDefault.DEFAULT)
    ClientQuotaEntity(user='alice', client_id=<QuotaDefault.DEFAULT: 'default'>, ip=None)
    """

    user: QuotaName = None
    client_id: QuotaName = None
    ip: QuotaName = None

    def __post_init__(self) -> None:
        try:
            quota_entity(self.parts)
        except KafkaError as error:
            raise ValueError(error.message) from None

    @property
    def parts(self) -> QuotaEntity:
        """Types and names, as they are sent; None is a default.

        >>> ClientQuotaEntity(user="alice", client_id="reports").parts
        (('client-id', 'reports'), ('user', 'alice'))
        """
        named = ((CLIENT_ID, self.client_id), (IP, self.ip), (USER, self.user))
        return tuple(
            (kind, None if isinstance(name, QuotaDefault) else name) for kind, name in named if name is not None
        )

    def __str__(self) -> str:
        """In words.

        >>> print(ClientQuotaEntity(user="alice", client_id=QuotaDefault.DEFAULT))
        client-id (default), user 'alice'
        """
        return ", ".join(f"{kind} {'(default)' if name is None else repr(name)}" for kind, name in self.parts)

    @classmethod
    def of(cls, parts: Mapping[str, str | None]) -> "ClientQuotaEntity":
        """An entity as it is received.

        >>> ClientQuotaEntity.of({"user": "alice"})
        ClientQuotaEntity(user='alice', client_id=None, ip=None)
        """

        def name(kind: str) -> QuotaName:
            return None if kind not in parts else parts[kind] or QuotaDefault.DEFAULT

        return cls(name(USER), name(CLIENT_ID), name(IP))


class QuotaAdmin(AdminPart):
    """The methods that concern quotas."""

    async def describe_client_quotas(
        self, entity: ClientQuotaEntity | None = None, *, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas that are set: all, or those of entities that have what is asked for.

        With `strict`, of entities that have nothing besides: a user alone, and not the user with a client id.

        >>> alice = ClientQuotaEntity(user="alice")
        >>> run(lambda admin: admin.alter_client_quotas({alice: {"producer_byte_rate": 1_000_000}}))
        >>> run(lambda admin: admin.describe_client_quotas(alice))[alice]
        {'producer_byte_rate': 1000000.0}
        """
        components = [
            ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
            for kind, name in (() if entity is None else entity.parts)
        ]

        async def attempt() -> dict[ClientQuotaEntity, dict[str, float]]:
            request = DescribeClientQuotasRequest(components=components, strict=strict)
            response = await (await self._cluster.any_broker()).request(request)
            check(response.error_code, response.error_message or "quotas")
            return {
                ClientQuotaEntity.of({part.entity_type: part.entity_name for part in entry.entity}): {
                    limit.key: limit.value for limit in entry.values
                }
                for entry in response.entries or ()
            }

        return await self._cluster.retrying(attempt)

    async def alter_client_quotas(
        self, quotas: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> None:
        """Set quotas, and remove those whose value is None. What is not mentioned stays.

        `producer_byte_rate` and `consumer_byte_rate` are bytes a second, `request_percentage` is a share of the
        broker's time; an address has `connection_creation_rate`.

        >>> anybody = ClientQuotaEntity(client_id=QuotaDefault.DEFAULT)
        >>> run(lambda admin: admin.alter_client_quotas({anybody: {"request_percentage": 50}}))
        >>> run(lambda admin: admin.alter_client_quotas({anybody: {"request_percentage": None}}))
        >>> run(lambda admin: admin.describe_client_quotas())
        {}
        """
        for entity in quotas:
            if not isinstance(entity, ClientQuotaEntity):
                raise TypeError(f"quotas has {shown(entity)}; give ClientQuotaEntity(user=...) and its like")

        async def ask(entities: list[ClientQuotaEntity]) -> Answers[ClientQuotaEntity, None]:
            request = AlterClientQuotasRequest(
                entries=[_entry(entity, quotas[entity]) for entity in entities], validate_only=validate_only
            )
            response = await (await self._cluster.controller()).request(request)
            return {
                entity: _outcome(result.error_code, result.error_message, entity)
                for entity, result in zip(entities, response.entries, strict=False)
            }

        await self._each(quotas, ask)


def _outcome(code: int, message: str | None, entity: ClientQuotaEntity) -> KafkaError | None:
    return error_of(code, f"quotas of {entity}" + (f": {message}" if message else "")) if code else None


def _entry(entity: ClientQuotaEntity, limits: Mapping[str, float | None]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()],
    )
