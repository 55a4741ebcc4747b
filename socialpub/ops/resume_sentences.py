"""What going on after a pause means and came to, in the words that every door says it with."""

from collections.abc import Iterator, Sequence

from socialpub.accounts import remedies
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.accounts.remedies import Door
from socialpub.core import commands, durations
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state
from socialpub.db.transaction import Reader
from socialpub.publishing.resume import Resumed

CONTINUES = "Publishing continues: what is due is sent, oldest first."
STILL_SCHEDULED = (
    "Still scheduled, and sent at its time unless the account shows it by then. The original may have changed or "
    "canceled some of it since the backup: cancel here what should not go out."
)


def paused(reader: Reader, door: Door) -> tuple[str, str] | None:
    """That nothing goes out, why, and how that ends; None when publishing goes on."""
    restored_from, paused_at = appliance_state.restored_from(reader), appliance_state.paused_at(reader)
    if paused_at is None:
        return None
    if restored_from is not None:
        return (
            f"This installation was restored from a backup of {restored_from} and is still paused.",
            f"Stop the original for good. Then {remedies.resume(door)}.",
        )
    return f"Publishing has been paused since {paused_at}.", f"To continue, {remedies.resume(door)}."


def results(resumed: Resumed) -> Iterator[str]:
    """What was resumed, sentence by sentence, but for what is too late."""
    yield CONTINUES
    if resumed.read_back:
        were = "1 delivery was" if resumed.read_back == 1 else f"{resumed.read_back} deliveries were"
        yield f"{were} due since the backup: socialpub reads the accounts back and sends none of them."


def too_late(posts: int, settings: Settings) -> str | None:
    """The sentence about posts that nothing sends any more; None when there is none."""
    if not posts:
        return None
    are = "1 post is" if posts == 1 else f"{posts} posts are"
    most = durations.write(settings.publishing.max_lateness)
    return f"{are} more than {most} late (publishing.max_lateness) and will not be sent."


KEYS_MAY_BE_REVOKED = "A key that was revoked after the backup is valid again."


def valid_keys(keys: Sequence[UnrevokedKey]) -> str:
    """How many keys came with a restored backup."""
    if len(keys) == 1:
        return "1 API key came with the restored backup and is valid."
    return f"{len(keys)} API keys came with the restored backup and are valid."


def valid_key(key: UnrevokedKey) -> str:
    """One of these keys: name, id, scope and last use."""
    used = f"last used at {key.last_used_at}" if key.last_used_at else "never used"
    return f"“{key.name}” ({key.id}, {key.scope}), {used}"


def decide_keys(door: Door) -> str:
    """How the owner settles these keys."""
    if door is Door.DASHBOARD:
        return "Press “Keep keys” on the overview, or revoke the keys under Keys."
    return (
        f"To revoke them, run `{commands.line('admin', 'resume', '--revoke-keys')}`. "
        f"To keep them, run `{commands.line('admin', 'resume', '--keep-keys')}`. "
        f"Either command also ends a pause. To revoke a single key, run `{commands.line('admin', 'revoke-key', 'ID')}`."
    )
