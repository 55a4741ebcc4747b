"""Profiles: the accounts that the appliance publishes to (contract section 3).

An account has at most one connected profile. Nothing is saved before the network has identified the account. After
`disconnect`, the tokens are used only for their revocation.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from socialpub.core import units
from socialpub.core.errors import FieldError, InvalidRequest, NotFound, OperatorError, Unavailable
from socialpub.core.validation import MAX_LABEL_LENGTH, is_label, to_label
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import audit_log, delivery_rows, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers import options as option_tables
from socialpub.providers.auth import Identity
from socialpub.providers.options import Options
from socialpub.providers.registry import EXTENSIONS
from socialpub.runtime import CausedTask, Runtime


def find_not_enabled(rt: Runtime) -> list[OperatorError]:
    """Return an error for each network that is not enabled and still has connected profiles."""
    connected = Counter(row.provider for row in profile_rows.list_all(rt.db) if row.is_connected)
    sentences = []
    for name, provider in rt.providers.items():
        if name in EXTENSIONS and connected[name] and not getattr(rt.settings.providers, name).is_set_up:
            are = units.count(connected[name], "profile of it is", "profiles of it are")
            message = f"{provider.label} is not enabled, but {are} connected."
            remedy = f"Set enabled = true in [providers.{name}], or disconnect all profiles of {provider.label}."
            sentences.append(OperatorError(message, remedy))
    return sentences


def handle(profile: ProfileRow) -> str:
    """Return the account's handle, or its label in quotes: TikTok does not return a handle."""
    return f"@{profile.username}" if profile.username else f"“{profile.name}”"


# --- reading ---------------------------------------------------------------------------------------------------------


def get(db: Database, profile_id: str) -> ProfileRow:
    profile = profile_rows.find(db, profile_id)
    if profile is None:
        raise NotFound("There is no profile with this id.")
    return profile


def check_name(name: str) -> str:
    """Return the label, trimmed. Raises InvalidRequest at `name`."""
    name = name.strip()
    if not is_label(name):
        raise InvalidRequest.at("name", message="must be one line of visible text")
    if len(name) > MAX_LABEL_LENGTH:
        raise InvalidRequest.at("name", message=f"may have at most {MAX_LABEL_LENGTH} characters and has {len(name)}")
    return name


def account_columns(identity: Identity, profile: ProfileRow | None, now: str) -> dict[str, Any]:
    """Return the columns for the account data of a network. Missing data do not change stored values.

    The label follows the account's name unless the owner has changed the label.
    """
    former = profile.account_name if profile else None
    name = identity.name or former or identity.username or to_label(identity.account_id)
    columns: dict[str, Any] = {"account_name": name, "account_read_at": now}
    if identity.username is not None:
        columns["username"] = identity.username
    if identity.picture_url is not None:
        columns["picture_url"] = identity.picture_url
    columns["facts"] = {**(profile.facts if profile else {}), **identity.facts}
    if profile is not None and profile.name == profile.account_name:
        columns["name"] = name
    return columns


# --- changing --------------------------------------------------------------------------------------------------------


def rename(rt: Runtime, tx: Database, profile_id: str, name: str) -> None:
    """Change the label. Deliveries that have ended keep the previous label."""
    profile = get(tx, profile_id)
    name = check_name(name)
    profile_rows.update(tx, profile_id, name=name, updated_at=tx.stamp)
    audit_log.record(tx, AuditAction.PROFILE_RENAMED, profile_id, name, provider=profile.provider, former=profile.name)


def note_choice_labels(rt: Runtime, profile_id: str, key: str, labels: Mapping[str, str]) -> None:
    """Store the network's labels for the values of this option. A failed write is ignored."""
    stored_labels = profile_rows.choice_labels(rt.db, profile_id, key)
    changed = {value: label for value, label in labels.items() if stored_labels.get(value) != label}
    if changed:
        with contextlib.suppress(Unavailable):
            rt.db.write(lambda tx: profile_rows.put_choice_labels(tx, profile_id, key, changed))


def disconnect(rt: Runtime, tx: Database, profile_id: str) -> None:
    """Disconnect the account. The tokens stay until their revocation (`upkeep.py`)."""
    profile = get(tx, profile_id)
    if profile.status == ProfileStatus.DISCONNECTED:
        return
    profile_rows.update(
        tx,
        profile_id,
        status=ProfileStatus.DISCONNECTED,
        disconnected_at=tx.stamp,
        updated_at=tx.stamp,
        expires_at=None,
        reason=None,
    )
    delivery_rows.wake_begun(tx, profile_id)
    tx.call_after_commit(rt.wakeup.run_soon, CausedTask.REVOCATION)
    audit_log.record(tx, AuditAction.PROFILE_DISCONNECTED, profile_id, profile.name, provider=profile.provider)


# --- stored options: the defaults of every post to the profile --------------------------------------------------------
#
# The network checks them when they are stored, so a misspelled key does not fail a delivery later.


def read_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Return `KEY=VALUE` texts as a mapping. Raises InvalidRequest."""
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InvalidRequest.at(
                pair or "An empty text", message="is not KEY=VALUE; KEY= without a value removes KEY"
            )
        if key in options:
            raise InvalidRequest.at(key, message="is given twice")
        options[key] = value.strip()
    return options


def set_options(rt: Runtime, tx: Database, profile_id: str, changes: Mapping[str, str]) -> Options:
    """Add these options to the stored options, and return the result. An empty value removes an option.

    A value is JSON if that fits the option, and otherwise text. Raises NotFound, or InvalidRequest.
    """
    profile = get(tx, profile_id)
    provider = rt.providers[profile.provider]
    stored: Options = dict(profile.options)
    problems: list[FieldError] = []
    for key, text in changes.items():
        value = option_tables.read_value(provider.option_table, key, text) if text else None  # None removes the option
        problems += provider.read_options({key: value})[1]
        stored = provider.merge_options(stored, {key: value})
    if problems:
        raise _refused(problems)
    return _store_options(rt, tx, profile, stored, changes)


def replace_options(rt: Runtime, tx: Database, profile_id: str, options: Mapping[str, Any]) -> Options:
    """Replace the stored options, and return the result. Raises as `set_options` does."""
    profile = get(tx, profile_id)
    changed = [key for key in {**profile.options, **options} if profile.options.get(key) != options.get(key)]
    return _store_options(rt, tx, profile, options, changed)


def check_options(rt: Runtime, profile: ProfileRow, wanted: Mapping[str, Any]) -> Options:
    """Return these options under their canonical names. Raises InvalidRequest with every wrong key."""
    provider = rt.providers[profile.provider]
    options, problems = provider.read_options(wanted)
    if problems:
        raise _refused(problems)
    if (reply := option_tables.find_post_option(provider.option_table)) and reply.name in options:
        message = f"{reply.name} belongs to one post, so a profile cannot store it. Give it with each post."
        raise _refused([FieldError(("providerOptions", profile.provider, reply.name), message)])
    if option_tables.is_too_large(options):
        raise InvalidRequest.at("providerOptions", profile.provider, message=option_tables.TOO_LARGE)
    return options


def _store_options(
    rt: Runtime, tx: Database, profile: ProfileRow, wanted: Mapping[str, Any], changed: Collection[str]
) -> Options:
    options = check_options(rt, profile, wanted)
    if changed:
        profile_rows.update(tx, profile.id, options=options, updated_at=tx.stamp)
        action, name = AuditAction.PROFILE_OPTIONS_SET, profile.name
        audit_log.record(tx, action, profile.id, name, provider=profile.provider, options=sorted(changed))
    return options


def _refused(problems: Sequence[FieldError]) -> InvalidRequest:
    return InvalidRequest(" ".join(problem.message for problem in problems), problems)
