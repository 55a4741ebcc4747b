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
from socialpub.db.models import Delivery, ProfileStatus, Progress, State
from socialpub.db.transaction import Tx
from socialpub.providers.outcomes import Again, Done, Held, More, Published, Refused, Unknown, Wait
from socialpub.publishing import (
    deliveries,
    equal_content,
    holds,
    log_entries,
    looks,
    owner_wait,
    post_status,
    read_back,
    scheduling,
    sending_delays,
)
from socialpub.publishing.attempts import AttemptOutcome
from socialpub.publishing.deliveries import OUTCOME_UNKNOWN
from socialpub.publishing.read_back import LOOK_FIRST
from socialpub.publishing.results import Limited, Missing, NeedsOwner, Result, Retry, Run, Undecidable
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
    stored = Progress(**json.loads(row["progress"]))
    delivery.progress.stopped = stored.stopped
    # A clock that was set during the call has moved these.
    delivery.due_at, delivery.started_at, delivery.committed_at = row["due_at"], row["started_at"], row["committed_at"]
    delivery.progress.since = stored.since
    delivery.progress.deaths = 0
    committing, asked, scopes = delivery.commits_next, delivery.asks, holds.scopes_of(delivery)
    scheduling.note_step(tx, delivery, row["run_at"])
    if committing and isinstance(result, Done | Published | Unknown):
        scheduling.keep_distance(rt, tx, delivery)
    match result:
        case Done(memo):
            _advance(delivery, memo)
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, run.message, step=-1)
            _update_holds(tx, delivery, result, run, committing, asked, scopes)
            return _go_on(rt, tx, delivery)
        case More(memo):
            delivery.memo, delivery.progress.tries = memo, 0
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.WAITING, "Goes on.")
            deliveries.requeue(rt, tx, delivery, 0)
        case Again():
            _go_back(rt, tx, delivery, result, run)
        case Wait(named, reason, memo):
            seconds = cooldowns.sensible(named) or 60 * _backoff(delivery)
            delivery.memo = memo or delivery.memo
            _clear(delivery, committing)
            delivery.progress.tries = 0
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, reason)
        case Limited():
            _clear(delivery, committing)
            seconds = result.seconds if result.seconds is not None else 60 * _backoff(delivery)
            until = after(tx.stamp, min(seconds, cooldowns.LONGEST_SECONDS))
            give_up_after = rt.settings.publishing.give_up_after
            for endpoint in result.endpoints:
                cooldowns.begin(tx, delivery.profile_id, endpoint, until, result.message, give_up_after)
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, result.message, result.code)
        case Held(reason, code):
            _clear(delivery, committing)
            probe_at = _hold(tx, delivery, result)
            if deliveries.stopped(tx, delivery):
                return None
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.HELD, reason, code, probe_at)
            deliveries.requeue(rt, tx, delivery, 0, ring=False)
            return None
        case Retry(message, code, named):
            _clear(delivery, committing)
            seconds = 5 * _backoff(delivery) if named is None else named
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.RETRYING, message, code)
        case Published():
            _publish(rt, tx, delivery, result, run)
        case Refused():
            _refuse(rt, tx, delivery, result, run, committing)
        case NeedsOwner(message, code):
            _clear(delivery, committing)
            _wait_for_owner(rt, tx, delivery, run, message, code)
        case Unknown(message, code, memo):
            delivery.memo = memo or delivery.memo
            deliveries.record_attempt(
                tx, delivery, run, AttemptOutcome.UNKNOWN, f"{message} The account is read back.", code
            )
            read_back.begin(rt, delivery, message)
            deliveries.requeue(rt, tx, delivery, read_back.LOOK_AFTER_SECONDS[0])
        case Missing():
            looks.judge(rt, tx, delivery, run, result)
        case Undecidable(hint):
            deliveries.fail_unconfirmed(tx, delivery, hint, run)
    _update_holds(tx, delivery, result, run, committing, asked, scopes)
    return None


def _copy(delivery: Delivery) -> Delivery:
    """Settling may fail half-way and be done again: what the caller holds stays as it was."""
    return replace(delivery, progress=replace(delivery.progress, again=dict(delivery.progress.again)))


def _update_holds(
    tx: Tx, delivery: Delivery, result: Result, run: Run, committing: bool, asked: bool, scopes: tuple[str, ...]
) -> None:
    """What this run shows of what is held: of the app only a commit that was answered, of questions any answer, of a
    step that it went well. A run that shows nothing gives its turn as the probe back."""
    if not holds.any_hold(tx):
        return
    if committing and (isinstance(result, Done | Published) or (_is_refusal(result) and run.answered)):
        _release(tx, delivery.provider, holds.PUBLISHING)
    told = isinstance(result, Done | More | Again | Wait | Missing | Published)
    if asked and (told or (run.answered and isinstance(result, Refused | Undecidable))):
        _release(tx, delivery.provider, holds.QUESTIONS)
    if isinstance(result, Done | More) and not asked:
        _release(tx, delivery.provider, scopes[-1])
    match result:
        case Published() | Refused() | NeedsOwner() | Undecidable():
            holds.give_back(tx, delivery.provider, scopes, tx.stamp)
        case More() | Again() | Wait() | Missing():
            holds.give_back(tx, delivery.provider, scopes, max(tx.stamp, delivery.run_at))


def _is_refusal(result: Result) -> bool:
    return isinstance(result, Refused) and not result.reauth


def _hold(tx: Tx, delivery: Delivery, held: Held) -> str:
    publishing, *step = holds.scopes_of(delivery)
    scope = step[0] if held.this_step and step else publishing
    if not holds.is_held(tx, delivery.provider, scope):
        # Once: what is held meets the same answer at every probe.
        message = f"the network refuses this app; {holds.what(scope)}"
        about = {"provider": delivery.provider, "reason": held.reason, "code": held.code}
        tx.after_commit(partial(log.warning, message, **about))
    return holds.begin(tx, delivery.provider, scope, held.reason, held.code)


def _release(tx: Tx, provider: str, scope: str) -> None:
    if holds.release(tx, provider, scope):
        message = f"the network accepts this app again; {holds.released(scope)}"
        tx.after_commit(partial(log.info, message, provider=provider))


def _advance(delivery: Delivery, memo: Mapping[str, Any]) -> None:
    delivery.memo = dict(memo) or delivery.memo
    # What was read back and has arrived goes on after the commit, wherever the plan stood.
    delivery.step = (delivery.commit_step if delivery.progress.reading_back else delivery.step) + 1
    delivery.progress.tries = 0
    # Read back and found to have arrived: what the following steps see decides.
    delivery.progress.reading_back = delivery.progress.confirming = False
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
    read_back.confirm_first(rt, delivery)
    deliveries.announce(rt, tx, delivery)
    delivery_rows.store(tx, delivery)
    return delivery


def _go_back(rt: Runtime, tx: Tx, delivery: Delivery, again: Again, run: Run) -> None:
    if delivery.progress.restored:
        hint = f"{again.reason.rstrip('.')}, which the original may have done. {LOOK_FIRST}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
        return
    deliveries.record_attempt(
        tx, delivery, run, AttemptOutcome.RETRYING, again.reason, next_at=after(tx.stamp, again.seconds)
    )
    delivery.progress.again[again.reason] = delivery.progress.again.get(again.reason, 0) + 1
    delivery.memo = again.memo
    if delivery.past_commit_step:
        # The network's own verdict: what the commit began will never be a post.
        progress = delivery.progress
        progress.commits, progress.unknown, progress.since, progress.dated_since = 0, None, None, None
    delivery.step = [name for name, _ in delivery.plan or ()].index(again.step)
    if not delivery.progress.commits:
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
    sending_delays.record(tx, delivery)
    log_entries.record(tx, delivery.id, "published")
    post_status.settle_if_resolved(tx, delivery.post_id)


def _refuse(rt: Runtime, tx: Tx, delivery: Delivery, refused: Refused, run: Run, committing: bool) -> None:
    if refused.rest_seconds:
        until = after(tx.stamp, min(refused.rest_seconds, cooldowns.LONGEST_SECONDS))
        give_up_after = rt.settings.publishing.give_up_after
        cooldowns.begin(tx, delivery.profile_id, cooldowns.ANY_ENDPOINT, until, refused.message, give_up_after)
    if refused.too_long:
        profile_rows.expect_account_data(tx, delivery.profile_id)
    # Of a copy's delivery that was not past its commit yet, the original may have begun another task since.
    of_another = delivery.progress.restored and delivery.progress.unknown is not None
    if refused.reauth and not refused.verdict:
        _clear(delivery, committing)
        _wait_for_owner(rt, tx, delivery, run, refused.message, refused.code)
        return
    if refused.reauth:
        profile_rows.require_reauth(tx, delivery.profile_id, refused.message)
    end = partial(deliveries.fail, tx, delivery, State.FAILED, refused.message, run, content=refused.content)
    if refused.verdict and not of_another:
        end(AttemptOutcome.REFUSED, refused.code)
    elif delivery.may_be_public and not delivery.asks:
        # The call before this one may have arrived, and this one perhaps was refused because of that.
        deliveries.close(rt, tx, delivery, run, refused.message, refused.code, AttemptOutcome.REFUSED)
    elif delivery.may_be_public:
        # A refused question is no verdict on the post.
        deliveries.fail_unconfirmed(tx, delivery, refused.message, run, AttemptOutcome.REFUSED, refused.code)
    else:
        end(AttemptOutcome.REFUSED, refused.code)


def _wait_for_owner(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None) -> None:
    """The account must be connected again, unless it was connected or disconnected while the call was on its way."""
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
    owner_wait.begin(rt, tx, delivery, run, message, code)


def _clear(delivery: Delivery, committing: bool) -> None:
    """The commit was refused for now or never left: it certainly did not happen. An earlier one may have."""
    if committing and not delivery.progress.commits:
        delivery.committed_at = None


def _backoff(delivery: Delivery) -> float:
    """1, 2, 4 … 180, with up to a quarter of jitter on top, never below."""
    delivery.progress.tries += 1
    return float(min(2 ** (delivery.progress.tries - 1), 180)) * (1 + random.random() / 4)
