"""Credentials of users in the metadata store.

| path | what |
|---|---|
| `/users` | a secret of the cluster, from which salts are made for users that there are not |
| `/users/NAME` | a user's credentials by mechanism |

Names are percent-encoded, since a user may be called anything.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.meta.encoding import decode_json, encode_json
from ottla.meta.store import Change, Conflict, Create, Delete, Entry, MetaStore, Set, StoreError, TooLargeError
from ottla.ports import Chance
from ottla.wire.errors import ErrorCode, KafkaError

ROOT = "/users"
SECRET_BYTES = 32
# Each attempt that fails means that another one succeeded.
_ATTEMPTS = 100

UserCredentials = Mapping[ScramMechanism, ScramCredential]
"""What there is of one user."""

Alter = Callable[[UserCredentials], UserCredentials]
"""From what there is to what shall be; called anew if somebody else was faster, so it must have no effects."""


class Credentials:
    """Users and what is kept of their passwords.

    >>> import asyncio
    >>> from ottla.meta.memory import open_memory
    >>> from ottla.ports import SystemChance
    >>> kept = ScramCredential(ScramMechanism.SCRAM_SHA_256, b"salt", b"stored", b"server", 4096)
    >>> async def main() -> None:
    ...     credentials = await Credentials.open(open_memory().connect(), SystemChance())
    ...     await credentials.alter("alice", lambda before: {kept.mechanism: kept})
    ...     print(await credentials.load())
    >>> asyncio.run(main())
    {'alice': {<ScramMechanism.SCRAM_SHA_256: 1>: ScramCredential(mechanism=<...SHA_256: 1>, iterations=4096)}}
    """

    def __init__(self, store: MetaStore, secret: bytes) -> None:
        self._store = store
        self.secret = secret
        """The same on every broker and after every start, and known to no client."""

    @classmethod
    async def open(cls, store: MetaStore, chance: Chance) -> Credentials:
        """The credentials in a store; a store that never had any gets its secret."""
        for _ in range(_ATTEMPTS):
            entry = await store.get(ROOT)
            if entry is not None:
                return cls(store, _bytes(decode_json(ROOT, entry.value)["secret"]))
            try:
                await store.commit(Create(ROOT, encode_json({"secret": _text(chance.secret(SECRET_BYTES))})))
            except Conflict:
                continue
        raise StoreError(f"{ROOT} cannot be made; the metadata store is overloaded")

    async def load(self) -> dict[str, UserCredentials]:
        """All users."""
        entries = await self._store.entries(ROOT)
        return dict(_decode(f"{ROOT}/{key}", entry) for key, entry in entries.items())

    async def alter(self, user: str, alter: Alter) -> UserCredentials:
        """Change what there is of a user, and return it; a user of whom nothing is left is gone."""
        path = _path(user)
        for _ in range(_ATTEMPTS):
            entry = await self._store.get(path)
            altered = alter({} if entry is None else _decode(path, entry)[1])
            try:
                await self._store.commit(*_changes(path, user, entry, altered))
            except Conflict:
                continue
            except TooLargeError as error:
                raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"it would take {error}") from error
            return altered
        raise StoreError(f"{path} was changed by others {_ATTEMPTS} times in a row; the metadata store is overloaded")


def _changes(path: str, user: str, entry: Entry | None, altered: UserCredentials) -> tuple[Change, ...]:
    if not altered:
        return () if entry is None else (Delete(path, entry.version),)
    value = encode_json({"name": user, "scram": {one.text: _fields(found) for one, found in sorted(altered.items())}})
    return (Create(path, value) if entry is None else Set(path, value, entry.version),)


def _path(user: str) -> str:
    """Where a user is kept.

    >>> _path("a/b"), _path("..")
    ('/users/=a%2Fb', '/users/=..')
    """
    return f"{ROOT}/={quote(user, safe='', errors='surrogatepass')}"


def _fields(credential: ScramCredential) -> dict[str, Any]:
    return {
        "salt": _text(credential.salt),
        "stored_key": _text(credential.stored_key),
        "server_key": _text(credential.server_key),
        "iterations": credential.iterations,
    }


def _decode(path: str, entry: Entry) -> tuple[str, UserCredentials]:
    fields = decode_json(path, entry.value)
    try:
        found = {}
        for name, kept in fields["scram"].items():
            mechanism = ScramMechanism[name.replace("-", "_")]
            salt, stored_key, server_key = (_bytes(kept[key]) for key in ("salt", "stored_key", "server_key"))
            found[mechanism] = ScramCredential(mechanism, salt, stored_key, server_key, int(kept["iterations"]))
        return str(fields["name"]), found
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not what it holds, since that is secret.
        raise StoreError(f"{path} holds something else than credentials") from None


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)
