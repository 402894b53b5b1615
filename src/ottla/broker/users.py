"""The users of the cluster, and whether a password is right."""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ottla.broker.turns import Turns
from ottla.cluster.credential import LEAST_ITERATIONS, ScramCredential, ScramMechanism
from ottla.meta.credentials import Alter, Credentials, UserCredentials
from ottla.meta.store import MetaStore
from ottla.net.sasl.scram import SALT_BYTES, matches
from ottla.ports import Chance

T = TypeVar("T")

_Checked = tuple[ScramCredential, str | None]
"""What a password is checked against: what is kept of it, and what the settings give."""

_NOBODY: Mapping[ScramMechanism, ScramCredential] = {}


class Users:
    """What is kept of users' passwords, at hand without asking the store.

    Whoever asks after a user that does not exist is answered as if there were one, with a password that nobody knows:
    strangers cannot find out who is a user.
    """

    def __init__(self, store: MetaStore, chance: Chance) -> None:
        self._store = store
        self._chance = chance
        self._kept: Credentials | None = None
        self._users: dict[str, UserCredentials] = {}
        self._shapes: dict[ScramMechanism, list[tuple[int, int]]] = {}
        """How long salts are, and how many iterations there are: what strangers see of a credential."""

    async def load(self) -> None:
        """Read all users from the store; to be done before anybody logs in."""
        self._kept = await Credentials.open(self._store, self._chance)
        self._users = await self._kept.load()
        self._find_shapes()

    @property
    def names(self) -> list[str]:
        """All users, in order."""
        return sorted(self._users)

    def credentials(self, user: str) -> UserCredentials:
        """What there is of a user; nothing if there is no such user."""
        return self._users.get(user, _NOBODY)

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """A user's credential for a mechanism, or one that no password fits and that looks like any other."""
        return self.credentials(user).get(mechanism) or self._made_up(mechanism, user)

    async def alter(self, user: str, alter: Alter) -> None:
        """Change what there is of a user."""
        assert self._kept is not None, "users are loaded before they are changed"
        altered = await self._kept.alter(user, alter)
        if altered:
            self._users[user] = altered
        else:
            self._users.pop(user, None)
        self._find_shapes()

    def _find_shapes(self) -> None:
        found: dict[ScramMechanism, set[tuple[int, int]]] = {}
        for credentials in self._users.values():
            for mechanism, one in credentials.items():
                found.setdefault(mechanism, set()).add((len(one.salt), one.iterations))
        self._shapes = {mechanism: sorted(shapes) for mechanism, shapes in found.items()}

    def _made_up(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        assert self._kept is not None, "users are loaded before anybody logs in"
        name = f"{mechanism.text}:{user}".encode(errors="surrogatepass")
        shape, stored_key, server_key = (
            hmac.digest(self._kept.secret, what + name, mechanism.hash_name)
            for what in (b"shape:", b"stored:", b"server:")
        )
        # Tools make salts of different lengths: one that no user has would tell.
        shapes = self._shapes.get(mechanism) or [(SALT_BYTES, LEAST_ITERATIONS)]
        salt_bytes, iterations = shapes[int.from_bytes(shape[:4], "big") % len(shapes)]
        salt = hashlib.pbkdf2_hmac(mechanism.hash_name, self._kept.secret, b"salt:" + name, 1, salt_bytes)
        return ScramCredential(mechanism, salt, stored_key, server_key, iterations)


class Passwords:
    """Checks passwords that come in clear, one at a time, in a thread: it takes milliseconds, as it must.

    One thread, so that strangers who try passwords take one processor at most. Addresses take turns, and whoever was
    right before does not stand in line.
    """

    def __init__(self, users: Users, chance: Chance) -> None:
        self._users = users
        self._key = chance.secret(32)
        self._proven: dict[str, tuple[_Checked, bytes]] = {}
        """By user: what his password was checked against, and a seal of the password that was right."""
        self._turns = Turns()
        self._thread = ThreadPoolExecutor(1, "ottla-passwords")

    async def check(self, user: str, password: str, given: Mapping[str, str], host: str) -> bool:
        """Whether this is the password of a user, who is among those that the settings give, or has credentials.

        FullLineError if too many from the same address wait for an answer.
        """
        clear = password.encode(errors="surrogatepass")
        seal = hmac.digest(self._key, clear, "sha256")
        if self._is_proven(user, (self._credential(user), given.get(user)), seal):
            return True
        async with self._turns.turn(host):
            # Only now: while it waited, the user may have been deleted, or another may have shown the same password.
            credential = self._credential(user)
            # Each listener may give a user a password of its own, so what was right at one need not be at another.
            checked = (credential, given.get(user))
            if self._is_proven(user, checked, seal):
                return True
            is_given = user in given and hmac.compare_digest(given[user].encode(), clear)
            # Also where the answer is known by now, so that it takes as long.
            is_kept = await self._run(credential, password)
            # Whoever was deleted meanwhile, or was given another password, has none of these any more.
            is_right = is_given or (is_kept and self._credential(user) == credential)
            if is_right:
                self._proven[user] = (checked, seal)
            return is_right

    def _is_proven(self, user: str, checked: _Checked, seal: bytes) -> bool:
        known, proof = self._proven.get(user, (None, b""))
        return known == checked and hmac.compare_digest(proof, seal)

    def _credential(self, user: str) -> ScramCredential:
        found = self._users.credentials(user)
        return next(iter(found.values()), None) or self._users.credential(ScramMechanism.SCRAM_SHA_256, user)

    async def _run(self, credential: ScramCredential, password: str) -> bool:
        return await asyncio.get_running_loop().run_in_executor(self._thread, matches, credential, password)

    def close(self) -> None:
        """Let go of the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)
