"""What the trail tells, in English: for pages and commands alike.

A sentence begins with what was done and names what it was done to; who did it stands beside it.
"""

from collections.abc import Callable
from dataclasses import replace

from socialpub.core import actor
from socialpub.db.trail import TrailAction, TrailEntry
from socialpub.providers.registry import LABELS

_STAMPS = ("scheduled_at", "expires_at", "copied_at")
"""Details that are instants."""


def who(name: str) -> str:
    """The actor of an entry."""
    key = actor.key_of(name)
    if key is not None:
        return f"API key “{key[1]}” ({key[0]})"
    return {
        actor.COMMAND: "owner, at the terminal",
        actor.DASHBOARD: "owner, in the dashboard",
        actor.SYSTEM: "socialpub itself",
        actor.VISITOR: "a browser that is not signed in",
    }.get(name, name)


def what(entry: TrailEntry) -> str:
    """What was done, as a sentence. An action of a newer version is shown by its name."""
    write = _SENTENCES.get(entry.action)
    return f"{entry.action}." if write is None else f"{write(entry)}."


def what_to_this(entry: TrailEntry) -> str:
    """The same on the page of the post that it was done to, which needs no name there."""
    return what(replace(entry, label=None, subject_id=None))


def with_times(entry: TrailEntry, write: Callable[[str], str]) -> TrailEntry:
    """Return the entry with `write(stamp)` in place of every stamp in its details."""
    shown = {name: write(entry.detail[name]) for name in _STAMPS if isinstance(entry.detail.get(name), str)}
    return replace(entry, detail={**entry.detail, **shown})


def _account(entry: TrailEntry) -> str:
    provider = str(entry.detail.get("provider", ""))
    return f"the {LABELS.get(provider, provider)} profile “{entry.label}”"


def _key_created(entry: TrailEntry) -> str:
    scope = "write" if entry.detail.get("scope") == "write" else "read only"
    until = f", valid until {entry.detail['expires_at']}" if "expires_at" in entry.detail else ""
    return f"Made the API key “{entry.label}” ({scope}{until})"


def _options_set(entry: TrailEntry) -> str:
    return f"Set default options of {_account(entry)}: {', '.join(entry.detail.get('options', ()))}"


def _board_created(entry: TrailEntry) -> str:
    kind = "secret board" if entry.detail.get("privacy") == "secret" else "board"
    return f"Created the {kind} “{entry.detail.get('board')}” of {_account(entry)}"


def _resumed(entry: TrailEntry) -> str:
    if "copied_at" not in entry.detail:
        return "Resumed publishing"
    word = ", saying that the original sent nothing" if entry.detail.get("nothing_was_sent") else ""
    return f"Resumed publishing after the restore of a backup of {entry.detail['copied_at']}{word}"


def _tried(entry: TrailEntry) -> str:
    networks = entry.detail.get("networks", ())
    return f"Had networks tried again that refuse this app: {', '.join(LABELS.get(name, name) for name in networks)}"


def _copy_made(entry: TrailEntry) -> str:
    secret = " with secret.key in it" if entry.detail.get("holds_secret") else ""
    return f"Made a backup{secret}: {entry.detail.get('posts')} posts and {entry.detail.get('media_files')} media files"


def _with_browser(entry: TrailEntry, done: str) -> str:
    place = f" from {entry.detail['address']}" if entry.detail.get("address") else ""
    return f"{done}{place} ({entry.label})" if entry.label else f"{done}{place}"


def _failed(entry: TrailEntry, done: str) -> str:
    return _with_browser(entry, done) if entry.subject_id else f"{done} from more addresses, which are not listed"


def _post(entry: TrailEntry, done: str) -> str:
    if entry.label:
        return f"{done} the post “{entry.label}”"
    return f"{done} the post {entry.subject_id}" if entry.subject_id else f"{done} this post"


def _post_created(entry: TrailEntry) -> str:
    at = entry.detail.get("scheduled_at")
    return _post(entry, "Created") + (f", scheduled for {at}" if at else "")


_SENTENCES: dict[str, Callable[[TrailEntry], str]] = {
    TrailAction.KEY_CREATED: _key_created,
    TrailAction.KEY_REVOKED: lambda entry: f"Revoked the API key “{entry.label}”",
    TrailAction.KEY_KEPT: lambda entry: f"Kept the API key “{entry.label}” of a restored backup",
    TrailAction.PROFILE_CONNECTED: lambda entry: f"Connected {_account(entry)}",
    TrailAction.PROFILE_RECONNECTED: lambda entry: f"Connected {_account(entry)} again",
    TrailAction.PROFILE_IMPORTED: lambda entry: f"Imported tokens for {_account(entry)}",
    TrailAction.PROFILE_RENAMED: lambda entry: f"Renamed {_account(entry)}, formerly “{entry.detail.get('former')}”",
    TrailAction.PROFILE_DISCONNECTED: lambda entry: f"Disconnected {_account(entry)}",
    TrailAction.PROFILE_OPTIONS_SET: _options_set,
    TrailAction.PROFILE_REFRESHED: lambda entry: f"Renewed the tokens of {_account(entry)}",
    TrailAction.PROFILE_BOARD_CREATED: _board_created,
    TrailAction.PROFILE_SECTION_CREATED: lambda entry: (
        f"Created the section “{entry.detail.get('section')}” of the board “{entry.detail.get('board')}” of "
        f"{_account(entry)}"
    ),
    TrailAction.PUBLISHING_PAUSED: lambda _: "Paused publishing",
    TrailAction.PUBLISHING_RESUMED: _resumed,
    TrailAction.PUBLISHING_TRIED: _tried,
    TrailAction.PUBLISHING_RESTORED: lambda entry: f"Restored a backup of {entry.detail.get('copied_at')}, paused",
    TrailAction.COPY_MADE: _copy_made,
    TrailAction.COPY_FAILED: lambda entry: f"Could not make a backup: {str(entry.detail.get('reason')).rstrip('.')}",
    TrailAction.SECRET_ROTATED: lambda _: "Made a new secret.key, and sealed everything anew",
    TrailAction.SECRET_RENEWED: lambda _: "Made a new secret.key in place of a lost one",
    TrailAction.NOTIFY_ADDED: lambda entry: f"Added the notification address {entry.label}",
    TrailAction.NOTIFY_REMOVED: lambda entry: f"Removed the notification address {entry.label}",
    TrailAction.PASSWORD_SET: lambda _: "Set the dashboard's password",
    TrailAction.SIGNED_IN: lambda entry: _with_browser(entry, "Signed in"),
    TrailAction.SIGN_IN_FAILED: lambda entry: _failed(entry, "Wrong password"),
    TrailAction.SIGN_INS_REFUSED: lambda entry: _failed(entry, "Refused to sign in after ten wrong passwords"),
    TrailAction.SIGNED_OUT: lambda entry: _with_browser(entry, "Signed out"),
    TrailAction.SESSION_ENDED: lambda entry: _with_browser(entry, "Ended a session"),
    TrailAction.POST_CREATED: _post_created,
    TrailAction.POST_EDITED: lambda entry: _post(entry, "Changed") + f": {', '.join(entry.detail.get('fields', ()))}",
    TrailAction.POST_CANCELED: lambda entry: _post(entry, "Canceled"),
    TrailAction.POST_STOPPED: lambda entry: _post(entry, "Stopped"),
    TrailAction.POST_RETRIED: lambda entry: _post(entry, "Published again what failed of"),
}
