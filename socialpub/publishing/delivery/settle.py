"""Settle a step: store what its result means for the delivery."""

import random
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from socialpub.core import logging
from socialpub.core.clock import after
from socialpub.db import appliance_state
from socialpub.db.connection import Row, Tx
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.phases import Committing, CommittingAgain, ConfirmingInherited, Processing, ProcessingInherited
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import counters, delivery_rows, holds, log_entries, profile_rows, waits
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.providers.base import Again, Done, Held, More, Published, Refused, Unknown, Wait
from socialpub.providers.errors import MAX_WAIT_SECONDS, plausible_wait
from socialpub.publishing.delivery import deliveries, read_back, transitions, waiting
from socialpub.publishing.delivery.deliveries import OUTCOME_UNKNOWN, Run
from socialpub.publishing.delivery.read_back import CHECK_ACCOUNT, NotFoundOnAccount
from socialpub.publishing.delivery.step import Limited, NeedsReauth, Result, Retry, Undecidable
from socialpub.publishing.delivery.transitions import PhaseEvent
from socialpub.publishing.posts import post_status
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.settlement")


def settle(rt: Runtime, tx: Tx, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Store the result of a step. Return the delivery if its next step runs at once."""
    row = delivery_rows.state_of(tx, delivery.id)
    if row is None or State(row.state).final:
        return None
    if (row.state, row.held_by) != (State.RUNNING, rt.process.name) and not isinstance(result, Published):
        return None  # another process took the row; only a post that is certainly up still counts
    delivery = _as_stored(delivery, row)
    committing, asked, scopes = delivery.commits_next, delivery.asks, holds.scopes_of(delivery)
    waiting.note_step(tx, delivery, row.run_at)
    if committing and isinstance(result, Done | Published | Unknown):
        waiting.keep_distance(rt, tx, delivery)
    match result:
        case Done(memo):
            step_name = _advance(delivery, memo)
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, run.message, step_name=step_name)
            _update_holds(tx, delivery, result, run, committing, asked, scopes)
            return _go_on(rt, tx, delivery)
        case More(memo):
            delivery.memo, delivery.progress.tries = memo, 0
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.WAITING, "Goes on.")
            deliveries.requeue(rt, tx, delivery, 0)
        case Again():
            _go_back(rt, tx, delivery, result, run)
        case Wait(named, reason, memo):
            seconds = plausible_wait(named) or 60 * _backoff(delivery)
            delivery.memo = memo or delivery.memo
            _clear(delivery, committing)
            delivery.progress.tries = 0
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, reason)
        case Limited():
            _clear(delivery, committing)
            seconds = result.seconds if result.seconds is not None else 60 * _backoff(delivery)
            until = after(tx.stamp, min(seconds, MAX_WAIT_SECONDS))
            give_up_after = rt.settings.publishing.give_up_after
            for endpoint in result.endpoints:
                waits.begin_cooldown(tx, delivery.profile_id, endpoint, until, result.message, give_up_after)
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, result.message, result.code)
        case Held(reason, code):
            _clear(delivery, committing)
            probe_at = _hold(tx, delivery, result)
            if deliveries.stopped(tx, delivery):
                return None
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.HELD, reason, code, probe_at)
            deliveries.requeue(rt, tx, delivery, 0, notify=False)
            return None
        case Retry(message, code, named):
            _clear(delivery, committing)
            seconds = 5 * _backoff(delivery) if named is None else named
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.RETRYING, message, code)
        case Published():
            _publish(rt, tx, delivery, result, run)
        case Refused():
            _refuse(rt, tx, delivery, result, run, committing)
        case NeedsReauth(message, code):
            _clear(delivery, committing)
            _wait_for_reconnect(rt, tx, delivery, run, message, code)
        case Unknown(message, code, memo):
            delivery.memo = memo or delivery.memo
            deliveries.record_attempt(
                tx, delivery, run, AttemptOutcome.UNKNOWN, f"{message} The account is read back.", code
            )
            read_back.begin(rt, delivery, message)
            deliveries.requeue(rt, tx, delivery, read_back.READ_BACK_AFTER_SECONDS[0])
        case NotFoundOnAccount():
            _conclude(rt, tx, delivery, run, result)
        case Undecidable(hint):
            deliveries.fail_unconfirmed(tx, delivery, hint, run)
    _update_holds(tx, delivery, result, run, committing, asked, scopes)
    return None


def _as_stored(delivery: Delivery, row: Row) -> Delivery:
    """Return a copy with what may have changed during the call: a stop, and the times that a set clock has moved.

    A settlement may fail half-way and run again, so the caller's delivery stays as it was.
    """
    own, stored = delivery.progress, Progress.read(row.progress)
    phase = stored.phase if stored.phase.name is own.phase.name else own.phase
    return replace(
        delivery,
        due_at=row.due_at,
        started_at=row.started_at,
        committed_at=row.committed_at,
        progress=replace(own, phase=phase, stopped=stored.stopped, deaths=0, again=dict(own.again)),
    )


def _update_holds(
    tx: Tx, delivery: Delivery, result: Result, run: Run, committing: bool, asked: bool, scopes: tuple[str, ...]
) -> None:
    """Release what this run proves to be accepted again: publishing by an answered commit, questions by any answer,
    a step by its success. A run that proves nothing returns its probe."""
    if not holds.any_hold(tx):
        return
    if committing and (isinstance(result, Done | Published) or (_is_refusal(result) and run.answered)):
        _release(tx, delivery.provider, holds.PUBLISHING)
    answered = isinstance(result, Done | More | Again | Wait | NotFoundOnAccount | Published)
    if asked and (answered or (run.answered and isinstance(result, Refused | Undecidable))):
        _release(tx, delivery.provider, holds.QUESTIONS)
    if isinstance(result, Done | More) and not asked:
        _release(tx, delivery.provider, scopes[-1])
    match result:
        case Published() | Refused() | NeedsReauth() | Undecidable():
            holds.release_probe(tx, delivery.provider, scopes, tx.stamp)
        case More() | Again() | Wait() | NotFoundOnAccount():
            holds.release_probe(tx, delivery.provider, scopes, max(tx.stamp, delivery.run_at))


def _is_refusal(result: Result) -> bool:
    return isinstance(result, Refused) and not result.reauth


def _hold(tx: Tx, delivery: Delivery, held: Held) -> str:
    publishing, *step = holds.scopes_of(delivery)
    scope = step[0] if held.this_step and step else publishing
    if not holds.is_held(tx, delivery.provider, scope):
        # Log this once: every probe meets the same response.
        message = f"the network refuses this app; {holds.what(scope)}"
        about = {"provider": delivery.provider, "reason": held.reason, "code": held.code}
        tx.after_commit(partial(log.warning, message, **about))
    return holds.begin(tx, delivery.provider, scope, held.reason, held.code)


def _release(tx: Tx, provider: str, scope: str) -> None:
    if holds.release(tx, provider, scope):
        message = f"the network accepts this app again; {holds.released(scope)}"
        tx.after_commit(partial(log.info, message, provider=provider))


def _advance(delivery: Delivery, memo: Mapping[str, Any]) -> str:
    """Continue after the step that is done. Return the name of that step.

    What was read back and has arrived continues after the commit, whatever the step was.
    """
    accepted = delivery.phase.reads_back or delivery.commits_next
    done = delivery.commit_step if delivery.phase.reads_back else delivery.step
    delivery.memo = dict(memo) or delivery.memo
    delivery.step, delivery.progress.tries = done + 1, 0
    if not accepted:
        transitions.enter_step(delivery)
    elif isinstance(delivery.phase, ConfirmingInherited):
        transitions.move(delivery, PhaseEvent.ACCEPTED, why=read_back.MAYBE_SENT)
    else:
        transitions.move(delivery, PhaseEvent.ACCEPTED)
    return (delivery.plan or [("start", "")])[done][0]


def _go_on(rt: Runtime, tx: Tx, delivery: Delivery) -> Delivery | None:
    """Run the next step at once, unless it has to wait."""
    if deliveries.stopped(tx, delivery):
        return None
    waits = (
        appliance_state.paused_at(tx) or waiting.find_cooldown(tx, delivery) or waiting.equal_comes_first(tx, delivery)
    )
    if waits or rt.stopping.is_set():
        deliveries.requeue(rt, tx, delivery, 0)
        return None
    delivery.run_at = tx.stamp
    read_back.confirm_first(rt, delivery)
    deliveries.announce(rt, tx, delivery)
    delivery_rows.store(tx, delivery)
    return delivery


def _go_back(rt: Runtime, tx: Tx, delivery: Delivery, again: Again, run: Run) -> None:
    """Return to an earlier step, as the network demands."""
    phase = delivery.phase
    if isinstance(phase, ProcessingInherited):
        hint = f"{again.reason.rstrip('.')}, which the original may have done. {CHECK_ACCOUNT}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
        return
    if isinstance(phase, Processing) and phase.message:  # no further call is made
        deliveries.fail(tx, delivery, State.FAILED, phase.message, run)
        return
    next_at = after(tx.stamp, again.seconds)
    deliveries.record_attempt(tx, delivery, run, AttemptOutcome.RETRYING, again.reason, next_at=next_at)
    times = delivery.progress.again
    times[again.reason] = times.get(again.reason, 0) + 1
    delivery.memo = again.memo
    if isinstance(phase, Processing):
        transitions.move(delivery, PhaseEvent.VOIDED)
    delivery.step = [name for name, _ in delivery.plan or ()].index(again.step)
    if isinstance(phase, Committing | CommittingAgain) and not delivery.commits_next:
        transitions.move(delivery, PhaseEvent.WENT_BACK)
    transitions.enter_step(delivery)
    if not delivery.unknown_calls:
        delivery.committed_at = None
    if not deliveries.stopped(tx, delivery):
        deliveries.requeue(rt, tx, delivery, again.seconds)


def _conclude(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, found: NotFoundOnAccount) -> None:
    """Read back again later, or end what the read-backs were for."""
    read_back.note_readback(rt, delivery, found.seen_at)
    seconds = read_back.seconds_until_next(rt, delivery)
    if seconds is not None:
        message = "The account does not show the post yet; looking again."
        deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, message)
        return
    event, message = read_back.conclude(rt, delivery, found)
    match event:
        case PhaseEvent.ABSENT:
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, message)
            transitions.move(delivery, event)
            transitions.enter_step(delivery)
            deliveries.requeue(rt, tx, delivery, 0)
        case PhaseEvent.CLOSED:
            deliveries.close(rt, tx, delivery, run, message)
        case PhaseEvent.FAILED:
            deliveries.fail(tx, delivery, State.FAILED, message, run)
        case _:
            deliveries.fail_unconfirmed(tx, delivery, message, run)


def _publish(rt: Runtime, tx: Tx, delivery: Delivery, post: Published, run: Run) -> None:
    transitions.move(delivery, PhaseEvent.PUBLISHED)
    try:
        delivery_rows.update(
            tx,
            delivery.id,
            state=State.PUBLISHED,
            published_at=tx.stamp,
            provider_post_id=post.post_id,
            url=post.url,
            owner=None,
        )
    except sqlite3.IntegrityError:
        hint = f"The network answered with {post.post_id}, which is another post's. Look at the account."
        deliveries.fail(tx, delivery, State.UNCONFIRMED, OUTCOME_UNKNOWN + hint, run, AttemptOutcome.UNKNOWN)
        return
    deliveries.record_attempt(
        tx, delivery, run, AttemptOutcome.PUBLISHED, " ".join(delivery.memo.get("notes", ())) or None
    )
    profile_rows.count_post(tx, delivery.profile_id)
    counters.count_sending_delay(tx, delivery)
    log_entries.record(tx, delivery.id, "published")
    post_status.settle_if_resolved(tx, delivery.post_id)


def _refuse(rt: Runtime, tx: Tx, delivery: Delivery, refused: Refused, run: Run, committing: bool) -> None:
    if refused.rest_seconds:
        until = after(tx.stamp, min(refused.rest_seconds, MAX_WAIT_SECONDS))
        give_up_after = rt.settings.publishing.give_up_after
        waits.begin_cooldown(tx, delivery.profile_id, waits.ANY_ENDPOINT, until, refused.message, give_up_after)
    if refused.too_long:
        profile_rows.expect_account_data(tx, delivery.profile_id)
    # Of a delivery that came with a backup before its commit, the original may have begun another task since.
    of_another = delivery.phase.inherited and bool(getattr(delivery.phase, "why", ""))
    if refused.reauth and not refused.verdict:
        _clear(delivery, committing)
        _wait_for_reconnect(rt, tx, delivery, run, refused.message, refused.code)
        return
    if refused.reauth:
        profile_rows.require_reauth(tx, delivery.profile_id, refused.message)
    end = partial(deliveries.fail, tx, delivery, State.FAILED, refused.message, run, content=refused.content)
    if refused.verdict and not of_another:
        end(AttemptOutcome.REFUSED, refused.code)
    elif delivery.phase.may_be_public and not delivery.asks:
        # The call before this one may have arrived, and may be the reason for the refusal.
        deliveries.close(rt, tx, delivery, run, refused.message, refused.code, AttemptOutcome.REFUSED)
    elif delivery.phase.may_be_public:
        # A refused question is no verdict on the post.
        deliveries.fail_unconfirmed(tx, delivery, refused.message, run, AttemptOutcome.REFUSED, refused.code)
    else:
        end(AttemptOutcome.REFUSED, refused.code)


def _wait_for_reconnect(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None) -> None:
    """Wait for the account to be connected again, unless it was connected or disconnected during the call."""
    if deliveries.stopped(tx, delivery):
        return
    profile = profile_rows.find(tx, delivery.profile_id)
    if profile is not None and profile.status is ProfileStatus.DISCONNECTED:
        ended = "The profile was disconnected meanwhile."
        deliveries.ask_later(rt, tx, delivery, run, 1.0, AttemptOutcome.RETRYING, ended)
        return
    if profile is not None and run.grant is not None and profile.access_token == run.grant:
        profile_rows.require_reauth(tx, delivery.profile_id, message)
    elif profile is not None and profile.status is ProfileStatus.ACTIVE:
        again = "The account was connected again meanwhile."
        deliveries.ask_later(rt, tx, delivery, run, 1.0, AttemptOutcome.RETRYING, again)
        return
    deliveries.wait_for_reconnect(rt, tx, delivery, run, message, code)


def _clear(delivery: Delivery, committing: bool) -> None:
    """Clear the mark of a commit that certainly did not happen. An earlier one may have."""
    if committing and not delivery.unknown_calls:
        delivery.committed_at = None


def _backoff(delivery: Delivery) -> float:
    """1, 2, 4 … 180, with up to a quarter of jitter on top, never below."""
    delivery.progress.tries += 1
    return float(min(2 ** (delivery.progress.tries - 1), 180)) * (1 + random.random() / 4)
