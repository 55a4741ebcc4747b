"""The sentences of the audit log, for pages and commands."""

from collections.abc import Callable
from dataclasses import replace

from socialpub.accounts import key_limits
from socialpub.core import actor
from socialpub.db.tables.audit_log import AuditAction, AuditEntry
from socialpub.providers.registry import LABELS

_STAMPS = ("scheduled_at", "expires_at", "copied_at")


def describe_actor(name: str) -> str:
    key = actor.parse_key(name)
    if key is not None:
        return f"API key “{key[1]}” ({key[0]})"
    return {
        actor.COMMAND: "owner, at the terminal",
        actor.DASHBOARD: "owner, in the dashboard",
        actor.SYSTEM: "socialpub itself",
        actor.VISITOR: "a browser that is not signed in",
    }.get(name, name)


def describe(entry: AuditEntry) -> str:
    """Return what was done. An action of a newer version appears as its name."""
    write = _SENTENCES.get(entry.action)
    return f"{entry.action}." if write is None else f"{write(entry)}."


def describe_on_post(entry: AuditEntry) -> str:
    """Return what was done to the post of this page, without its name."""
    return describe(replace(entry, label=None, subject_id=None))


def with_times(entry: AuditEntry, write: Callable[[str], str]) -> AuditEntry:
    """Return the entry with `write(stamp)` in place of every stamp in its details."""
    times = {name: write(entry.detail[name]) for name in _STAMPS if isinstance(entry.detail.get(name), str)}
    return replace(entry, detail={**entry.detail, **times})


def _account(entry: AuditEntry) -> str:
    provider = str(entry.detail.get("provider", ""))
    return f"the {LABELS.get(provider, provider)} profile “{entry.label}”"


def _key_created(entry: AuditEntry) -> str:
    scope = "write" if entry.detail.get("scope") == "write" else "read only"
    until = f", valid until {entry.detail['expires_at']}" if "expires_at" in entry.detail else ""
    limits = key_limits.list_names(entry.detail.get("posts_per_day"), approval=bool(entry.detail.get("approval")))
    return f"Created the API key “{entry.label}” ({', '.join([scope, *limits])}{until})"


def _options_set(entry: AuditEntry) -> str:
    return f"Set default options of {_account(entry)}: {', '.join(entry.detail.get('options', ()))}"


def _board_created(entry: AuditEntry) -> str:
    kind = "secret board" if entry.detail.get("privacy") == "secret" else "board"
    return f"Created the {kind} “{entry.detail.get('board')}” of {_account(entry)}"


def _resumed(entry: AuditEntry) -> str:
    if "copied_at" not in entry.detail:
        return "Resumed publishing"
    word = ", stating that the original installation sent nothing" if entry.detail.get("nothing_was_sent") else ""
    return f"Resumed publishing after the restore of a backup of {entry.detail['copied_at']}{word}"


def _tried(entry: AuditEntry) -> str:
    networks = entry.detail.get("networks", ())
    return f"Retried the networks that refuse this app: {', '.join(LABELS.get(name, name) for name in networks)}"


def _backup_made(entry: AuditEntry) -> str:
    secret = " with secret.key in it" if entry.detail.get("holds_secret") else ""
    return f"Made a backup{secret}: {entry.detail.get('posts')} posts and {entry.detail.get('media_files')} media files"


def _with_browser(entry: AuditEntry, done: str) -> str:
    place = f" from {entry.detail['address']}" if entry.detail.get("address") else ""
    return f"{done}{place} ({entry.label})" if entry.label else f"{done}{place}"


def _failed(entry: AuditEntry, done: str) -> str:
    return _with_browser(entry, done) if entry.subject_id else f"{done} from more IP addresses, which are not listed"


def _post(entry: AuditEntry, done: str) -> str:
    if entry.label:
        return f"{done} the post “{entry.label}”"
    return f"{done} the post {entry.subject_id}" if entry.subject_id else f"{done} this post"


def _post_created(entry: AuditEntry) -> str:
    at = entry.detail.get("scheduled_at")
    return _post(entry, "Created") + (f", scheduled for {at}" if at else "")


_SENTENCES: dict[str, Callable[[AuditEntry], str]] = {
    AuditAction.KEY_CREATED: _key_created,
    AuditAction.KEY_REVOKED: lambda entry: f"Revoked the API key “{entry.label}”",
    AuditAction.KEY_KEPT: lambda entry: f"Kept the API key “{entry.label}” of a restored backup",
    AuditAction.PROFILE_CONNECTED: lambda entry: f"Connected {_account(entry)}",
    AuditAction.PROFILE_RECONNECTED: lambda entry: f"Connected {_account(entry)} again",
    AuditAction.PROFILE_IMPORTED: lambda entry: f"Imported tokens for {_account(entry)}",
    AuditAction.PROFILE_RENAMED: lambda entry: f"Renamed {_account(entry)}, formerly “{entry.detail.get('former')}”",
    AuditAction.PROFILE_DISCONNECTED: lambda entry: f"Disconnected {_account(entry)}",
    AuditAction.PROFILE_OPTIONS_SET: _options_set,
    AuditAction.PROFILE_REFRESHED: lambda entry: f"Renewed the tokens of {_account(entry)}",
    AuditAction.PROFILE_BOARD_CREATED: _board_created,
    AuditAction.PROFILE_SECTION_CREATED: lambda entry: (
        f"Created the section “{entry.detail.get('section')}” of the board “{entry.detail.get('board')}” of "
        f"{_account(entry)}"
    ),
    AuditAction.PUBLISHING_PAUSED: lambda _: "Paused publishing",
    AuditAction.PUBLISHING_RESUMED: _resumed,
    AuditAction.PUBLISHING_TRIED: _tried,
    AuditAction.PUBLISHING_RESTORED: lambda entry: f"Restored a backup of {entry.detail.get('copied_at')}, paused",
    AuditAction.BACKUP_MADE: _backup_made,
    AuditAction.BACKUP_FAILED: lambda entry: f"Could not make a backup: {str(entry.detail.get('reason')).rstrip('.')}",
    AuditAction.SECRET_ROTATED: lambda _: "Created a new secret.key and encrypted all stored secrets again",
    AuditAction.SECRET_RENEWED: lambda _: "Created a new secret.key to replace a lost one",
    AuditAction.NOTIFY_ADDED: lambda entry: f"Added the notification address {entry.label}",
    AuditAction.NOTIFY_REMOVED: lambda entry: f"Removed the notification address {entry.label}",
    AuditAction.WEBHOOK_ADDED: lambda entry: (
        f"Added the webhook {entry.label}: {', '.join(entry.detail.get('events', ()))}"
    ),
    AuditAction.WEBHOOK_REMOVED: lambda entry: f"Removed the webhook {entry.label}",
    AuditAction.PASSWORD_SET: lambda _: "Set the dashboard's password",
    AuditAction.SIGNED_IN: lambda entry: _with_browser(entry, "Signed in"),
    AuditAction.SIGN_IN_FAILED: lambda entry: _failed(entry, "Wrong password"),
    AuditAction.SIGN_INS_REFUSED: lambda entry: _failed(entry, "Refused to sign in after ten wrong passwords"),
    AuditAction.SIGNED_OUT: lambda entry: _with_browser(entry, "Signed out"),
    AuditAction.SESSION_ENDED: lambda entry: _with_browser(entry, "Ended a session"),
    AuditAction.POST_CREATED: _post_created,
    AuditAction.POST_EDITED: lambda entry: _post(entry, "Edited") + f": {', '.join(entry.detail.get('fields', ()))}",
    AuditAction.POST_APPROVED: lambda entry: _post(entry, "Approved"),
    AuditAction.POST_CANCELED: lambda entry: _post(entry, "Canceled"),
    AuditAction.POST_STOPPED: lambda entry: _post(entry, "Stopped"),
    AuditAction.POST_RETRIED: lambda entry: _post(entry, "Retried the failed deliveries of"),
}
