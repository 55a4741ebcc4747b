"""When the last copy was made, and whether the last try succeeded: what overview and doctor remind of."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from socialpub.accounts.remedies import Door
from socialpub.core.clock import parse
from socialpub.db import appliance_state, trail
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.runtime import Runtime

OLD = timedelta(days=7)
"""A copy older than this would cost more than it saves."""


def remedy(door: Door = Door.SHELL) -> str:
    """How a copy is made."""
    how = "press “Download a copy” under System" if door is Door.DASHBOARD else "socialpub backup FILE"
    return f"Make one, and keep it on another disk: {how}"


@dataclass(frozen=True, slots=True)
class LastCopy:
    """What is known of the copies that were made here."""

    made_at: str | None
    """The instant that the last one is of; None when there has been none."""
    failed_at: str | None
    """When a later try failed."""

    def reminder(self, now: datetime) -> str | None:
        """Why the owner should make one, as a sentence; None when all is well."""
        if self.made_at is None:
            tried = f" The last try, at {self.failed_at}, failed." if self.failed_at else ""
            return f"No copy of this installation has ever been made.{tried}"
        if self.failed_at is not None:
            return f"The copy that was to be made at {self.failed_at} failed; the last one is of {self.made_at}."
        age = now - parse(self.made_at)
        return None if age <= OLD else f"The last copy was made {age.days} days ago, at {self.made_at}."


def read(reader: Reader) -> LastCopy:
    return LastCopy(
        appliance_state.get(reader, appliance_state.COPIED_AT),
        appliance_state.get(reader, appliance_state.COPY_FAILED_AT),
    )


def note_made(rt: Runtime, tx: Tx, copied_at: str, *, posts: int, media_files: int, holds_secret: bool) -> None:
    """A copy lies on the disk, as of this instant."""
    appliance_state.put(tx, appliance_state.COPIED_AT, copied_at)
    appliance_state.remove(tx, appliance_state.COPY_FAILED_AT)
    trail.record(tx, TrailAction.COPY_MADE, posts=posts, media_files=media_files, holds_secret=holds_secret)


def note_failed(rt: Runtime, tx: Tx) -> None:
    """Somebody wanted a copy and has none."""
    appliance_state.put(tx, appliance_state.COPY_FAILED_AT, tx.stamp)
