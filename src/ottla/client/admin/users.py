"""Users that log in with SCRAM, and with PLAIN: what the cluster keeps of their passwords."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client.admin.failures import raise_failures
from ottla.client.admin.part import AdminPart, Answers, list_of, names_of, outcome
from ottla.client.checks import shown
from ottla.client.errors import check
from ottla.cluster.credential import LEAST_ITERATIONS, ScramMechanism
from ottla.net.sasl.scram import SALT_BYTES, salted_password
from ottla.wire.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.api.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
    UserName,
)
from ottla.wire.errors import KafkaError


class ScramCredentialInfo(NamedTuple):
    """A way in which a user can log in.

    >>> ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096).mechanism.text
    'SCRAM-SHA-256'
    """

    mechanism: ScramMechanism
    iterations: int
    """How often the password is hashed."""


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """Give a user a password, or another one. What is sent is not the password, but what hashing makes of it.

    >>> UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", "wonder")
    UserScramCredentialUpsertion(user='alice', mechanism=<ScramMechanism.SCRAM_SHA_512: 2>, iterations=4096)
    """

    user: str
    mechanism: ScramMechanism | str
    password: str | bytes = field(repr=False)
    iterations: int = LEAST_ITERATIONS
    """How often the password is hashed; brokers take 4096 to 16384."""
    salt: bytes | None = field(default=None, repr=False)
    """Made at random if not given, as is best."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", mechanism_of(self.mechanism))
        if not isinstance(self.password, str | bytes) or not self.password:
            raise ValueError("the password is empty, or neither a str nor bytes; give one")


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """Take a user's password away, for one mechanism.

    >>> UserScramCredentialDeletion("alice", "scram-sha-256").mechanism
    <ScramMechanism.SCRAM_SHA_256: 1>
    """

    user: str
    mechanism: ScramMechanism | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", mechanism_of(self.mechanism))


def mechanism_of(given: ScramMechanism | str) -> ScramMechanism:
    """A mechanism by its name, or as it is.

    >>> mechanism_of("PLAIN")
    Traceback (most recent call last):
    ValueError: mechanism is 'PLAIN'; it must be one of SCRAM-SHA-256, SCRAM-SHA-512
    """
    if isinstance(given, ScramMechanism):
        return given
    found = ScramMechanism.named(given.upper().replace("_", "-")) if isinstance(given, str) else None
    if found is None:
        known = ", ".join(one.text for one in ScramMechanism)
        raise ValueError(f"mechanism is {given!r}; it must be one of {known}")
    return found


Alteration = UserScramCredentialUpsertion | UserScramCredentialDeletion


class UserAdmin(AdminPart):
    """The methods that concern users."""

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, tuple[ScramCredentialInfo, ...]]:
        """How users can log in: those that are asked for, each of which must exist, or all.

        >>> alice = UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder")
        >>> run(lambda admin: admin.alter_user_scram_credentials([alice]))
        >>> run(lambda admin: admin.describe_user_scram_credentials())
        {'alice': (ScramCredentialInfo(mechanism=<ScramMechanism.SCRAM_SHA_256: 1>, iterations=4096),)}
        """
        wanted = None if users is None else names_of(users, "users")

        async def ask(names: list[str] | None) -> Answers[str, tuple[ScramCredentialInfo, ...]]:
            request = DescribeUserScramCredentialsRequest(
                users=None if names is None else [UserName(name=name) for name in names]
            )
            response = await (await self._cluster.any_broker()).request(request)
            check(response.error_code, response.error_message or "users")
            return {
                one.user: outcome(one.error_code, one.error_message, "user", one.user) or _infos(one)
                for one in response.results
            }

        if wanted is not None:
            return await self._each(wanted, ask)
        answers = await self._cluster.retrying(lambda: ask(None))
        raise_failures({user: answer for user, answer in answers.items() if isinstance(answer, KafkaError)})
        return {user: answer for user, answer in sorted(answers.items()) if not isinstance(answer, KafkaError)}

    async def alter_user_scram_credentials(self, alterations: Iterable[Alteration]) -> None:
        """Set and delete passwords. All changes of one user are made together or not at all.

        >>> alice = UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder", iterations=8192)
        >>> run(lambda admin: admin.alter_user_scram_credentials([alice]))
        >>> no_alice = UserScramCredentialDeletion("alice", "SCRAM-SHA-256")
        >>> run(lambda admin: admin.alter_user_scram_credentials([no_alice]))
        >>> run(lambda admin: admin.describe_user_scram_credentials())
        {}
        """
        asked = list_of(alterations, "alterations")
        by_user: dict[str, list[Alteration]] = {}
        for one in asked:
            if not isinstance(one, Alteration):
                raise TypeError(
                    f"alterations has {shown(one)}; give UserScramCredentialUpsertion and UserScramCredentialDeletion"
                )
            by_user.setdefault(one.user, []).append(one)
        salt = self._cluster.chance.secret(SALT_BYTES * len(asked))
        # Hashing takes milliseconds for each.
        upsertions = await asyncio.to_thread(_upsertions, asked, salt)

        async def ask(users: list[str]) -> Answers[str, None]:
            request = AlterUserScramCredentialsRequest(
                upsertions=[one for one in upsertions if one.name in users],
                deletions=[
                    ScramCredentialDeletion(name=one.user, mechanism=mechanism_of(one.mechanism))
                    for user in users
                    for one in by_user[user]
                    if isinstance(one, UserScramCredentialDeletion)
                ],
            )
            response = await (await self._cluster.controller()).request(request)
            return {one.user: outcome(one.error_code, one.error_message, "user", one.user) for one in response.results}

        await self._each(by_user, ask)


def _infos(result: DescribeUserScramCredentialsResult) -> tuple[ScramCredentialInfo, ...]:
    return tuple(
        ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations) for info in result.credential_infos
    )


def _upsertions(alterations: list[Alteration], salts: bytes) -> list[ScramCredentialUpsertion]:
    made = []
    for number, one in enumerate(alterations):
        if isinstance(one, UserScramCredentialUpsertion):
            salt = one.salt or salts[number * SALT_BYTES : (number + 1) * SALT_BYTES]
            mechanism = mechanism_of(one.mechanism)
            made.append(
                ScramCredentialUpsertion(
                    name=one.user,
                    mechanism=mechanism,
                    iterations=one.iterations,
                    salt=salt,
                    salted_password=salted_password(mechanism, one.password, salt, one.iterations),
                )
            )
    return made
