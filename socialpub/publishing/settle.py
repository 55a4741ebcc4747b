"""Writing down what became of a step: the complete match over every way it can end."""

import json
import random
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from socialpub.accounts import cooldowns
from socialpub.core import logging
from socialpub.core.clock import after
from socialpub.db import appliance_state, delivery_rows, profile_rows
from socialpub.db.models import Delivery, Progress, State
from socialpub.db.transaction import Tx
from socialpub.providers.outcomes import Again, Done, Held, More, Published, Refused, Unknown, Wait
from socialpub.publishing import deliveries, equal_content, holds, log_entries, post_status, read_back, scheduling
from socialpub.publishing.attempts import AttemptOutcome
from socialpub.publishing.deliveries import OUTCOME_UNKNOWN
from socialpub.publishing.results import Limited, Missing, Result, Retry, Run, Undecidable
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.settlement")


def settle(rt: Runtime, tx: Tx, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Write down what became of a step. The delivery again when it goes on at once, else None."""
    row = delivery_rows.state_of(tx, delivery.id)
    if row is None or State(row["state"]).final:
        return None
    if (row["state"], row["held_by"]) != (State.RUNNING, rt.process.name) and not isinstance(result, Published):
        return None  # the row was taken meanwhile; only a post that is certainly up still counts
    delivery = _copy(delivery)
    delivery.progress.stopped = Progress(**json.loads(row["progress"])).stopped
    committing = delivery.commits_next
    if committing and isinstance(result, Done | Published | Unknown):
        scheduling.keep_distance(rt, tx, delivery)
    match result:
        case Done(memo):
            _advance(delivery, memo)
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, run.message, step=-1)
            if committing:
                _release(tx, delivery.provider)  # a commit that steps follow was taken too
            return _go_on(rt, tx, delivery)
        case More(memo):
            delivery.memo, delivery.progress.tries = memo, 0
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.WAITING, "Goes on.")
            deliveries.requeue(rt, tx, delivery, 0)
        case Again():
            _go_back(rt, tx, delivery, result, run)
        case Wait(seconds, reason, memo):
            delivery.memo = memo or delivery.memo
            _clear(delivery, committing)
            delivery.progress.tries = 0
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, reason)
        case Limited():
            _clear(delivery, committing)
            seconds = result.seconds if result.seconds is not None else 60 * _backoff(delivery)
            until = after(tx.stamp, seconds)
            cooldowns.begin(tx, delivery.profile_id, result.endpoint, until, result.message)
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, result.message, result.code)
        case Held(reason, code):
            _clear(delivery, committing)
            probe_at = _hold(tx, delivery.provider, reason, code)
            if deliveries.stopped(tx, delivery):
                return None
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.HELD, reason, code, probe_at)
            deliveries.requeue(rt, tx, delivery, 0, ring=False)
            return None
        case Retry(message, code):
            _clear(delivery, committing)
            seconds = 5 * _backoff(delivery)
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.RETRYING, message, code)
        case Published():
            _publish(rt, tx, delivery, result, run)
        case Refused():
            _refuse(tx, delivery, result, run, committing)
        case Unknown(message, code):
            deliveries.record_attempt(
                tx, delivery, run, AttemptOutcome.UNKNOWN, f"{message} The account is read back.", code
            )
            read_back.begin(delivery, message)
            deliveries.requeue(rt, tx, delivery, read_back.LOOK_AFTER_SECONDS[0])
        case Missing(whole):
            read_back.look_again(rt, tx, delivery, run, whole)
        case Undecidable(hint):
            deliveries.fail_unconfirmed(tx, delivery, hint, run)
    _update_hold(tx, delivery, result, run, committing)
    return None


def _copy(delivery: Delivery) -> Delivery:
    """Settling may fail half-way and be done again: what the caller holds stays as it was."""
    return replace(delivery, progress=replace(delivery.progress, again=dict(delivery.progress.again)))


def _update_hold(tx: Tx, delivery: Delivery, result: Result, run: Run, committing: bool) -> None:
    """What this run shows of an app that was refused. Only a commit that was answered shows that the app is taken
    again; a run that shows nothing gives its turn as the probe back."""
    match result:
        case Published() | Refused(reauth=False) if committing and (run.answered or isinstance(result, Published)):
            _release(tx, delivery.provider)
        case Published() | Refused() | Undecidable():
            holds.probe_at(tx, delivery.provider, tx.stamp)
        case More() | Again() | Wait():
            holds.probe_at(tx, delivery.provider, max(tx.stamp, delivery.run_at))


def _hold(tx: Tx, provider: str, reason: str, code: str | None) -> str:
    if not holds.is_held(tx, provider):
        # Once: what is held meets the same answer at every probe.
        message = "the network refuses this app; its deliveries are held"
        tx.after_commit(partial(log.warning, message, provider=provider, reason=reason, code=code))
    return holds.begin(tx, provider, reason, code)


def _release(tx: Tx, provider: str) -> None:
    if holds.release(tx, provider):
        message = "the network accepts this app again; held deliveries are sent"
        tx.after_commit(partial(log.info, message, provider=provider))


def _advance(delivery: Delivery, memo: Mapping[str, Any]) -> None:
    delivery.memo = dict(memo) or delivery.memo
    delivery.step += 1
    delivery.progress.tries = 0
    # Read back and found to have arrived: what the following steps see decides.
    delivery.progress.reading_back = False
    delivery.progress.looks = 0
    if not delivery.progress.restored:
        delivery.progress.unknown = None


def _go_on(rt: Runtime, tx: Tx, delivery: Delivery) -> Delivery | None:
    """The next step at once, unless something speaks against it."""
    if deliveries.stopped(tx, delivery):
        return None
    waits = (
        appliance_state.paused_at(tx) or scheduling.cooldown_of(tx, delivery) or equal_content.comes_first(tx, delivery)
    )
    if waits or rt.stopping.is_set():
        deliveries.requeue(rt, tx, delivery, 0)
        return None
    delivery.run_at = tx.stamp
    deliveries.announce(rt, tx, delivery)
    delivery_rows.store(tx, delivery)
    return delivery


def _go_back(rt: Runtime, tx: Tx, delivery: Delivery, again: Again, run: Run) -> None:
    if delivery.progress.restored:
        hint = f"{again.reason.rstrip('.')}, which the original may have done. {read_back.LOOK_FIRST}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
        return
    deliveries.record_attempt(
        tx, delivery, run, AttemptOutcome.RETRYING, again.reason, next_at=after(tx.stamp, again.seconds)
    )
    delivery.progress.again[again.reason] = delivery.progress.again.get(again.reason, 0) + 1
    delivery.memo = again.memo
    delivery.step = [name for name, _ in delivery.plan or ()].index(again.step)
    delivery.committed_at = None
    if not deliveries.stopped(tx, delivery):
        deliveries.requeue(rt, tx, delivery, again.seconds)


def _publish(rt: Runtime, tx: Tx, delivery: Delivery, post: Published, run: Run) -> None:
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
    log_entries.record(tx, delivery.id, "published")
    post_status.settle_if_resolved(tx, delivery.post_id)


def _refuse(tx: Tx, delivery: Delivery, refused: Refused, run: Run, committing: bool) -> None:
    if refused.reauth:
        profile_rows.require_reauth(tx, delivery.profile_id, refused.message)
    if refused.rest_seconds:
        until = after(tx.stamp, refused.rest_seconds)
        cooldowns.begin(tx, delivery.profile_id, cooldowns.ANY_ENDPOINT, until, refused.message)
    # Of a copy's delivery that was not past its commit yet, the original may have begun another task since.
    of_another = delivery.progress.restored and delivery.progress.unknown is not None
    if delivery.past_commit and not committing and (of_another or not refused.verdict):
        # A refused question is no verdict on the post.
        deliveries.fail_unconfirmed(tx, delivery, refused.message, run, AttemptOutcome.REFUSED, refused.code)
    else:
        deliveries.fail(tx, delivery, State.FAILED, refused.message, run, AttemptOutcome.REFUSED, refused.code)


def _clear(delivery: Delivery, committing: bool) -> None:
    """The commit was refused for now or never left: it certainly did not happen."""
    if committing:
        delivery.committed_at = None


def _backoff(delivery: Delivery) -> float:
    """1, 2, 4 … 180, with up to a quarter of jitter on top, never below."""
    delivery.progress.tries += 1
    return float(min(2 ** (delivery.progress.tries - 1), 180)) * (1 + random.random() / 4)
