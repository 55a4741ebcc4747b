"""API keys: the caller of a request, and its permissions (contract section 2).

A key is `spk_<id>_<secret>`: the id finds the row, and only a digest of the secret is stored, so the key is shown once.
Every request asks the database whether the key is valid, and so does each of its writes: a revocation works at once.
"""

import json
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from socialpub.core import commands
from socialpub.core.clock import parse_id, stamp
from socialpub.core.errors import Conflict, NotFound, OperatorError
from socialpub.core.secrets import crypto
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ApiKeyRow, ProfileRow
from socialpub.db.tables import access_rows, audit_log, counters, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers import registry
from socialpub.providers.registry import SPECIFIED
from socialpub.runtime import Runtime

SCOPES = ("read", "write")
ALL = "all"
"""The provider of a key that covers every network, including later ones (contract 11.2)."""
ID_LETTERS = 12
MAX_NAME_LENGTH = 100
MAX_POSTS_PER_DAY = 10_000


class KeyRefused(OperatorError):
    """A key that cannot be created. `field` is the parameter of `create` that is wrong."""

    def __init__(self, field: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.field = field


@dataclass(frozen=True, slots=True)
class Caller:
    """The key behind a request. `providers` and `profiles` limit its scope; None means no limit; both must hold.

    A key without providers covers the networks of the specification. Its `providers` are None only while the appliance
    has no other network.
    """

    key_id: str
    scope: str
    providers: frozenset[str] | None = None
    profiles: frozenset[str] | None = None
    name: str = field(default="", compare=False)
    posts_per_day: int | None = None
    approval: bool = False
    """Whether the owner must approve each post of the key (contract 10.3)."""

    @property
    def restricted(self) -> bool:
        """Whether a limit for agents applies: the key changes only its own posts and disconnects no profile."""
        return self.posts_per_day is not None or self.approval

    @property
    def limited(self) -> bool:
        return self.providers is not None or self.profiles is not None

    def covers(self, provider: str) -> bool:
        return self.providers is None or provider in self.providers

    def sees(self, provider: str, profile_id: str) -> bool:
        return self.covers(provider) and (self.profiles is None or profile_id in self.profiles)


OWNER = Caller("owner", "write")
"""The owner at the terminal: no key, and no limits."""


def list_extensions(rt: Runtime, caller: Caller | None = None) -> tuple[str, ...]:
    """Return the networks beyond the specification that the appliance has and the caller sees. None: any caller."""
    return tuple(
        name for name in registry.EXTENSIONS if name in rt.providers and (caller is None or caller.covers(name))
    )


def new_id() -> str:
    return secrets.token_hex(ID_LETTERS // 2)


def is_id(text: str) -> bool:
    return len(text) == ID_LETTERS and all(letter in "0123456789abcdef" for letter in text)


def create(
    rt: Runtime,
    tx: Database,
    name: str,
    scope: str = "write",
    providers: Sequence[str] | None = None,
    profiles: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    key_id: str | None = None,
    posts_per_day: int | None = None,
    approval: bool = False,
) -> str:
    """Create a key and return its only readable copy.

    `providers` and `profiles` limit the key; None or empty means no limit, but only `ALL` or its name covers a network
    beyond the specification. `posts_per_day` and `approval` limit the key's posts (contract 10.3). With a `key_id` of
    `new_id`, a repeated call raises Conflict and creates no second key. Raises KeyRefused.
    """
    name = name.strip()
    _check_limits(rt, name, scope, providers, posts_per_day, approval)
    if expires_at is not None and expires_at <= tx.now:
        raise KeyRefused("expires_at", "The key would already be expired.", "Give a time in the future.")
    limited_to = [_known_profile(tx, profile) for profile in profiles or ()]
    if not providers:
        _refuse_unseen(rt, limited_to, list_extensions(rt))
    key_id, secret = key_id or new_id(), crypto.new_api_secret()
    if tx.get(ApiKeyRow, key_id) is not None:
        raise Conflict(
            f"The key {key_id} already exists, and a key is shown only once. If you did not save the key, revoke it "
            "and create another key."
        )
    tx.insert(
        ApiKeyRow,
        {
            "id": key_id,
            "name": name,
            "scope": scope,
            "secret_hash": crypto.hash_api_secret(secret),
            "providers": _limit(providers),
            "profiles": _limit([profile.id for profile in limited_to]),
            "created_at": tx.stamp,
            "expires_at": None if expires_at is None else stamp(expires_at),
            "posts_per_day": posts_per_day,
            "approval": int(approval),
        },
    )
    audit_log.record(
        tx,
        AuditAction.KEY_CREATED,
        key_id,
        name,
        scope=scope,
        expires_at=None if expires_at is None else stamp(expires_at),
        posts_per_day=posts_per_day,
        approval=approval or None,
    )
    return f"spk_{key_id}_{secret}"


def _check_limits(
    rt: Runtime,
    name: str,
    scope: str,
    providers: Sequence[str] | None,
    posts_per_day: int | None,
    approval: bool,
) -> None:
    """Raise KeyRefused for a name or a limit that no key can have."""
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise KeyRefused(
            "name",
            "A key needs a name of 1 to 100 printable characters.",
            "Use the name of the script that will use the key.",
        )
    if scope not in SCOPES:
        raise KeyRefused("scope", f"There is no scope {scope!r}.", f"A key's scope is one of {', '.join(SCOPES)}.")
    networks = (*SPECIFIED, *list_extensions(rt))
    unknown = [name for name in providers or () if name not in rt.providers and name not in (*networks, ALL)]
    if unknown:
        raise KeyRefused("providers", f"There is no provider {unknown[0]!r}.", f"Providers are {', '.join(networks)}.")
    if posts_per_day is not None and not 1 <= posts_per_day <= MAX_POSTS_PER_DAY:
        raise KeyRefused(
            "posts_per_day",
            f"A key may publish 1 to {MAX_POSTS_PER_DAY:,} posts a day, not {posts_per_day:,}.",
            "To create a key that publishes nothing, use a key that may only read.",
        )
    if scope == "read" and (approval or posts_per_day is not None):
        raise KeyRefused(
            "approval" if approval else "posts_per_day",
            "A key that may only read publishes nothing.",
            "Remove the limit of its posts, or let the key write.",
        )


def list_all(db: Database) -> list[ApiKeyRow]:
    return access_rows.list_keys(db)


def get(db: Database, key_id: str) -> ApiKeyRow:
    row = db.get(ApiKeyRow, key_id)
    if row is None:
        raise NotFound("There is no API key with this id. Use an id from `list-keys`.")
    return row


def revoke(rt: Runtime, tx: Database, key_id: str) -> None:
    """Revoke a key. Revoking a key again changes nothing. Raises OperatorError for an unknown id."""
    row = tx.get(ApiKeyRow, key_id)
    if row is None:
        raise OperatorError(
            f"There is no key {key_id}.",
            f"`{commands.line('admin', 'list-keys')}` shows the ids: the part between spk_ and _.",
        )
    if row.revoked_at is None:
        tx.update(ApiKeyRow, key_id, revoked_at=tx.stamp)
        audit_log.record(tx, AuditAction.KEY_REVOKED, key_id, row.name)


def authenticate(rt: Runtime, token: str) -> Caller | None:
    """Return the caller of this key. None: the key is unknown, expired or revoked."""
    prefix, _, rest = token.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != "spk" or not secret or not secret.isascii():
        return None
    return find_caller(rt, rt.db, rt.stamp(), key_id, secret)


def find_caller(rt: Runtime, db: Database, now: str, key_id: str, secret: str | None = None) -> Caller | None:
    """Return the caller of the key with this id and, if given, this secret. None as in `authenticate`."""
    key = db.get(ApiKeyRow, key_id)
    if key is None or (secret is not None and not crypto.matches_hash(secret, key.secret_hash)):
        return None
    if key.state(now) != "active":
        return None
    # Lists are faster for a caller without a limit, so None covers every network of the appliance.
    providers = None if key.providers is None else frozenset(key.providers)
    if providers is None and (extensions := list_extensions(rt)):
        providers = frozenset(rt.providers).difference(extensions)
    elif providers is not None and ALL in providers:
        providers = None
    profiles = None if key.profiles is None else frozenset(key.profiles)
    return Caller(key.id, key.scope, providers, profiles, key.name, key.posts_per_day, key.approval)


def find_ended(db: Database, key_ids: Collection[str], now: datetime) -> set[str]:
    return set(key_ids) - access_rows.valid_keys(db, key_ids, stamp(now))


def _known_profile(tx: Database, text: str) -> ProfileRow:
    profile_id = parse_id(text)
    profile = None if profile_id is None else profile_rows.find(tx, profile_id)
    if profile is None:
        hint = f"`{commands.line('admin', 'list-profiles')}` shows the ids."
        raise KeyRefused("profiles", f"There is no profile {text}.", hint)
    return profile


def _refuse_unseen(rt: Runtime, profiles: Iterable[ProfileRow], extensions: Collection[str]) -> None:
    """Refuse a profile that a key without providers would not see."""
    for profile in profiles:
        if profile.provider in extensions:
            label = rt.providers[profile.provider].label
            raise KeyRefused(
                "profiles",
                f"A key sees “{profile.name}” only if the key names {label}.",
                f"Add the network {profile.provider} to the key.",
            )


def _limit(values: Sequence[str] | None) -> list[str] | None:
    return sorted(set(values)) if values else None


# --- keys that came with a restored backup, until the owner keeps or revokes them -------------------------------------
#
# A key that was revoked after the backup is valid again after the restore. The restore records the ids of all keys in
# the backup.


@dataclass(frozen=True, slots=True)
class CarriedRevocations:
    """The names of the keys that a rollback has changed."""

    revoked: tuple[str, ...]
    """Keys that are valid in the older rows, and revoked in the database in use."""
    gone: tuple[str, ...]
    """Valid keys that the older rows do not contain."""


def mark_restored(tx: Database) -> None:
    """Record every key of this database as a key of the backup."""
    _put(tx, [key.id for key in access_rows.unrevoked_keys(tx)])


def list_undecided(db: Database, now: str) -> list[ApiKeyRow]:
    """Return the valid keys of a restored backup that the owner has neither kept nor revoked, oldest first."""
    marked = _marked(db)
    if not marked:
        return []
    keys = access_rows.unrevoked_keys(db)
    return [key for key in keys if key.id in marked and (key.expires_at is None or key.expires_at > now)]


def keep_restored(rt: Runtime, tx: Database) -> list[ApiKeyRow]:
    """Keep these keys, and return them. They are no longer reported."""
    undecided = list_undecided(tx, tx.stamp)
    for key in undecided:
        audit_log.record(tx, AuditAction.KEY_KEPT, key.id, key.name)
    _put(tx, [])
    return undecided


def revoke_restored(rt: Runtime, tx: Database) -> list[ApiKeyRow]:
    """Revoke these keys, and return them."""
    revoked = list_undecided(tx, tx.stamp)
    for key in revoked:
        revoke(rt, tx, key.id)
    _put(tx, [])
    return revoked


def carry_revocations(tx: Database, in_use: Database) -> CarriedRevocations:
    """Revoke in these older rows the keys that the database in use has revoked. Keep its undecided keys.

    A key that the database in use does not contain becomes undecided, as after a restore.
    """
    revocations, undecided_there, revoked, open_ids = access_rows.revocations(in_use), _marked(in_use), [], []
    for key in access_rows.unrevoked_keys(tx):
        revoked_at = revocations.get(key.id)
        if revoked_at is not None:
            tx.update(ApiKeyRow, key.id, revoked_at=revoked_at)
            audit_log.record(tx, AuditAction.KEY_REVOKED, key.id, key.name)
            revoked.append(key.name)
        elif key.id not in revocations or key.id in undecided_there:
            open_ids.append(key.id)
    _put(tx, open_ids)
    held = access_rows.revocations(tx).keys()
    gone = [key.name for key in access_rows.unrevoked_keys(in_use) if key.id not in held]
    return CarriedRevocations(tuple(revoked), tuple(gone))


def _marked(db: Database) -> set[str]:
    return set(json.loads(appliance_state.get(db, appliance_state.RESTORED_KEYS) or "[]"))


def _put(tx: Database, key_ids: Iterable[str]) -> None:
    ids = sorted(key_ids)
    if ids:
        appliance_state.put(tx, appliance_state.RESTORED_KEYS, json.dumps(ids))
    else:
        appliance_state.remove(tx, appliance_state.RESTORED_KEYS)


# --- the uses of a key ------------------------------------------------------------------------------------------------


class LastUses:
    """The last use and the requests of each key, in memory: one write a minute instead of one per request."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._uses: dict[str, datetime] = {}
        self._requests: Counter[str] = Counter()

    def note(self, key_id: str) -> None:
        self._uses[key_id] = self._rt.clock.now()
        self._requests[key_id] += 1

    async def flush(self) -> None:
        """Store the uses. Keep them if the write fails."""
        uses, self._uses = self._uses, {}
        requests, self._requests = self._requests, Counter()
        if not uses:
            return
        try:
            await self._rt.write_soon(_record_uses, uses, requests)
        except Exception:
            self._uses = {**uses, **self._uses}
            self._requests += requests
            raise


def _record_uses(rt: Runtime, tx: Database, uses: dict[str, datetime], requests: Counter[str]) -> None:
    counters.add_usage(tx, counters.REQUESTS, requests)
    for key_id, at in uses.items():
        tx.update(ApiKeyRow, key_id, last_used_at=stamp(at))
