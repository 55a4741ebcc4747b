"""Deliveries that wait for their owner: the account must be connected again first (contract section 4).

They stay pending for as long as a post may be late, and go out once the account is connected.
"""

from socialpub.accounts import profiles, remedies
from socialpub.core.clock import stamp
from socialpub.db import delivery_rows
from socialpub.db.models import Delivery, Profile, ProfileStatus, State
from socialpub.db.transaction import Tx
from socialpub.publishing import deliveries, scheduling
from socialpub.publishing.attempts import AttemptOutcome
from socialpub.publishing.results import Run
from socialpub.runtime import Runtime


def reason(profile: Profile) -> str:
    """Why the account must be connected again, and how."""
    return sentence(profile.provider, profile.reason or "the network refuses its tokens")


def sentence(provider: str, why: str) -> str:
    how = remedies.sentence(remedies.reconnect_anywhere(provider))
    return f"The account must be connected again: {why.rstrip('.')}. {how}"


def begin(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None = None) -> None:
    """Wait for the account to be connected, or end when it was not in time."""
    until = scheduling.startable_until(rt, tx, delivery)
    if delivery.progress.stopped:
        hint = f"Stopped by the owner while the account could not be asked. {message} Look at the account."
        deliveries.fail_unconfirmed(tx, delivery, hint, run, code=code)
        return
    if until <= tx.now:
        _end_late(rt, tx, delivery, run, message, code)
        return
    delivery.progress.waits_for_owner, delivery.progress.reconnected_at = True, None
    delivery.state, delivery.held_by = State.QUEUED, None
    delivery.run_at = stamp(until)
    deliveries.record_attempt(tx, delivery, run, AttemptOutcome.HELD, message, code, delivery.run_at)
    delivery_rows.store(tx, delivery)


def ended_late(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """End a delivery whose account was connected again, and not in time. Returns whether it was ended."""
    profile, until = profiles.find(tx, delivery.profile_id), scheduling.startable_until(rt, tx, delivery)
    if until >= tx.now or profile is None or profile.status is not ProfileStatus.ACTIVE:
        return False
    _end_late(rt, tx, delivery, Run(tx.stamp), "The account had to be connected again.")
    return True


def _end_late(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None = None) -> None:
    hours = deliveries.hours(rt.settings.publishing.max_lateness)
    late = f"It was not connected within {hours} of the post's time."
    if delivery.may_be_public:
        deliveries.fail_unconfirmed(tx, delivery, f"{message} {late} Look at the account.", run, code=code)
    else:
        text = f"Not sent: {message[0].lower()}{message[1:]} {late} Create the post again afterwards."
        deliveries.fail(tx, delivery, State.FAILED, text, run, code=code)
