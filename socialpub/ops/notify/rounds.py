"""One round: what needs the owner now, compared with what they know, becomes a message that is written down.

Message and what it tells are written in one transaction, so that a process may die at any line: nothing is told twice
or forgotten. A copy that was restored and is not resumed tells of nothing but that: all else is its original's to tell.
"""

from datetime import timedelta

from socialpub.accounts.remedies import Door
from socialpub.core.cause_kinds import CauseKind
from socialpub.core.clock import stamp
from socialpub.db import appliance_state, failed_deliveries, notifications, told_causes
from socialpub.db.told_causes import ToldCause
from socialpub.db.transaction import Tx
from socialpub.ops import causes
from socialpub.ops.causes import Cause
from socialpub.ops.notify import absence, drafts, failures, messages, services, telling
from socialpub.ops.notify.failures import Failures
from socialpub.ops.notify.messages import Sender
from socialpub.ops.notify.telling import CauseChanges, Due
from socialpub.runtime import Runtime

KEPT = timedelta(days=7)
"""What could not be sent for so long is not sent any more: what still lasts is told anew by then."""


def begin(rt: Runtime, tx: Tx) -> None:
    """Before the first round of a process: these are the services, and what failed before there was any is not told."""
    names = {service.id: service.name for service in services.list_all(rt, tx)}
    clean(rt, tx)
    notifications.set_services(tx, names)
    failures.begin(rt, tx)


def forget_original(tx: Tx) -> None:
    """Do not repeat what the original of a restored database has sent, or was about to send."""
    if told_causes.are_kept(tx):
        failures.note_told(tx, failed_deliveries.newest_entry(tx.reader))
        told_causes.forget_all(tx)
        notifications.forget_sending(tx)


def take(rt: Runtime) -> bool:
    """One round; whether there is a new message."""
    now = rt.now()
    restored = appliance_state.restored_from(rt.reader)
    failed = failures.find(rt)
    found = {cause.key: cause for cause in _find(rt, failed, restored)}
    known = {
        key: one for key, one in told_causes.read(rt.reader).items() if not restored or one.kind == CauseKind.PAUSED
    }
    look = telling.look(known, found, now)
    due = telling.due(look.known, now)
    today = notifications.count_since(rt.reader, stamp(now.replace(hour=0, minute=0, second=0, microsecond=0)))
    limit = rt.settings.notify.daily_limit
    if due and today < limit:
        last_of_day = limit if today + 1 == limit else None
        text = messages.compose(due, found, sender(rt), now, last_of_day=last_of_day)
        rt.write(_tell, look, due, text, failed, now_known=telling.after_telling(due, now))
        return True
    held = telling.hold_back(due)
    if look.changed or look.forgotten or held:
        rt.write(_note, look, held)
    return False


def sender(rt: Runtime) -> Sender:
    return Sender(rt.settings.base_url, appliance_state.restored_from(rt.reader))


def clean(rt: Runtime, tx: Tx) -> None:
    """Forget old messages, and those that the original of a restored copy has sent or will send itself."""
    oldest = stamp(tx.now - KEPT)
    if appliance_state.restored_from(tx):
        oldest = max(oldest, appliance_state.paused_at(tx) or oldest)
    notifications.forget_before(tx, oldest)


def _find(rt: Runtime, failed: Failures, restored: str | None) -> list[Cause]:
    door = Door.DASHBOARD if rt.settings.dashboard.enabled else Door.SHELL
    found = [cause for cause in causes.find(rt, door) if cause.calls]
    found += drafts.find(rt)
    found += [cause for cause in (absence.find(rt), failed.cause) if cause is not None]
    wanted = [kind for kind in rt.settings.notify.causes if not restored or kind == CauseKind.PAUSED]
    return [cause for cause in found if cause.kind in wanted]


def _note(rt: Runtime, tx: Tx, look: CauseChanges, now_known: list[ToldCause]) -> None:
    told_causes.forget(tx, look.forgotten)
    told_causes.put(tx, [*look.changed, *now_known])


def _tell(
    rt: Runtime,
    tx: Tx,
    look: CauseChanges,
    due: Due,
    text: tuple[str, str],
    failed: Failures,
    *,
    now_known: list[ToldCause],
) -> None:
    _note(rt, tx, look, now_known)
    notifications.add(tx, *text)
    if any(one.kind == CauseKind.DELIVERY for one in due.begun):
        failures.note_told(tx, failed.through)
