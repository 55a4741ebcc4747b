"""The account data of a profile: handle, name, picture, and what the account may post, as its network reports them.

The data is fetched when the owner asks for it, after the network refused a post for being too long, and once a week.
A fetch that fails changes nothing and is tried again later. X bills each fetch as the read of a user.
"""

from collections.abc import Collection
from datetime import timedelta

from socialpub.accounts import profiles, questions, rate_limits
from socialpub.core import clock, logging
from socialpub.db import appliance_state
from socialpub.db.connection import Tx
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import profile_rows, waits
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Withdrawn
from socialpub.providers.errors import ProviderError
from socialpub.providers.oauth import Identity
from socialpub.providers.provider import Provider
from socialpub.runtime import Runtime

FETCHED_EVERY = timedelta(days=7)
RETRY_SECONDS = 3600.0
ENDPOINT = "account"
"""Under this name the next fetch waits in `not_before`."""

log = logging.get_logger("socialpub.accounts")


def fetch(rt: Runtime, profile_id: str) -> list[str]:
    """Fetch the account data now, and return what changed as sentences.

    Asks the network, so not from the event loop. Raises NotFound, and as `questions.ask` does.
    """
    profile = profiles.get(rt.reader, profile_id)
    oauth = rt.providers[profile.provider].oauth
    identity = questions.ask(rt, profile, lambda http, token: oauth.identify(http, token, profile.scopes))
    return rt.write(_store, profile_id, identity)


def keep_current(rt: Runtime, held: Collection[str]) -> str | None:
    """Fetch the account data of the profile that has waited longest, if one is due; return its id.

    `held` are the networks that refuse this app for now: they are not asked. A paused appliance fetches nothing.
    """
    if appliance_state.paused_at(rt.reader):
        return None
    resting = waits.profiles_waiting(rt.reader, (waits.ANY_ENDPOINT, ENDPOINT), rt.stamp())
    due = profile_rows.account_data_due(rt.reader, clock.stamp(rt.now() - FETCHED_EVERY))
    profile_id = next((str(row.id) for row in due if row.provider not in held and row.id not in resting), None)
    if profile_id is None:
        return None
    try:
        changes = fetch(rt, profile_id)
    except Withdrawn:
        return None
    except ProviderError as error:
        seconds = max(RETRY_SECONDS, rate_limits.named_wait(error) or 0.0)
        rt.write(rate_limits.begin_for, profile_id, ENDPOINT, seconds, error.message)
        log.info("account data could not be fetched and is fetched later", profile=profile_id, why=error.message)
        return profile_id
    if not changes:
        # The network refuses what its own data allows: each refused post would cost a fetch.
        rt.write(rate_limits.begin_for, profile_id, ENDPOINT, RETRY_SECONDS, "The account data has not changed.")
    log.info("account data was fetched", profile=profile_id, changes=len(changes))
    return profile_id


def _store(rt: Runtime, tx: Tx, profile_id: str, identity: Identity) -> list[str]:
    known = profiles.get(tx, profile_id)
    if known.status is ProfileStatus.DISCONNECTED:
        return []
    if identity.account_id != known.account_id:
        # Data of another account never replaces what is known of this one.
        profile_rows.update(tx, profile_id, account_read_at=tx.stamp)
        log.warning("the tokens of a profile belong to another account", profile=profile_id)
        return []
    columns = profiles.account_columns(identity, known, tx.stamp)
    profile_rows.update(tx, profile_id, **columns, updated_at=tx.stamp)
    return _changes(rt.providers[known.provider], known, profiles.get(tx, profile_id))


def _changes(provider: Provider, before: Profile, now: Profile) -> list[str]:
    """Return what is different, as sentences."""
    found = []
    if now.username != before.username and now.username:
        found.append(f"The handle is @{now.username} now.")
    if before.account_name not in (None, now.account_name):
        found.append(f"The account is called “{now.account_name}” now.")
    former = dict(provider.account_facts(before.facts))
    for label, value in provider.account_facts(now.facts):
        if former.get(label) != value:
            found.append(f"{label}: {value} (before: {former.get(label, 'not known')}).")
    return found
